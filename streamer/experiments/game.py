"""The privacy game: many trials at once, each with its own user and items, in one monitor.

In each trial the adversary chooses everybody's data and must find out which of two worlds the
trial is in; the worlds differ in the history of a single user. Trials are independent, because
a monitor's noise is fresh per item and its counters are per user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.attention import Pace
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import Tally
from streamer.privacy.threshold import Plan

Scores = NDArray[np.float64]
Trials = NDArray[np.int64]
VALUES_ALONE = Pace(remembers=False)
"""Every item is asked for its value in every step."""
Start = Callable[[Pace], HeavyHitterMonitor]
"""Creates the monitor under attack, a new one for each world, with the pace of the attack."""


@dataclass(frozen=True, slots=True)
class Attack:
    """`play(game, world)` returns the scores of a game's trials in world 0 or 1.

    `pace`: how often the attacked monitor asks for values.
    """

    name: str
    play: Callable[[Game, int], Scores]
    trials: int
    pace: Pace = VALUES_ALONE


@dataclass(frozen=True, slots=True)
class Answers:
    """What the adversary sees in a step, per item: whether it was reported, and f̂ if so; whether
    it is gone."""

    above: NDArray[np.bool_]
    estimates: NDArray[np.int64]
    gone: NDArray[np.bool_]


class Game:
    """Trials played at once. User i belongs to trial i; the adversary adds other holders."""

    def __init__(self, monitor: HeavyHitterMonitor, trials: int) -> None:
        self.monitor = monitor
        self.plan: Plan = monitor.plan
        self.trials = trials
        self._step = 0

    @property
    def now(self) -> int:
        """The step that is played next."""
        return self._step

    @property
    def rounds_left(self) -> int:
        """Steps left in the budget period, which is the length of a game."""
        return self.plan.workload.period_steps - self._step

    def step(self, users: Trials, held: Trials, asked: Trials, others: Trials | int) -> Answers:
        """Play one step: these users hold these items; `others` more hold each item in `asked`.

        The others are different users in every step, so none of them is charged twice.
        """
        counted = self.monitor.count(self._step, users.astype(np.uint64), held)
        decision = self.monitor.decide(_with_others(counted.tally, asked, others))
        self.monitor.charge(counted, decision)
        self._step += 1
        known = (asked, held, decision.items, decision.gone)
        size = 1 + max(items.max(initial=0) for items in known)
        above, gone = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        estimates = np.zeros(size, dtype=np.int64)
        above[decision.items] = True
        estimates[decision.items] = decision.estimates
        gone[decision.gone] = True
        return Answers(above, estimates, gone)


def _with_others(tally: Tally[int], asked: Trials, others: Trials | int) -> Tally[int]:
    """The tally of all users: those of the trials, and `others` for each item in `asked`."""
    size = 1 + max(asked.max(initial=0), tally.items.max(initial=0))
    holders = np.zeros(size, dtype=np.int64)
    holders[tally.items] = tally.holders
    holders[asked] += others
    held = np.flatnonzero(holders)
    return replace(tally, items=held, holders=holders[held])
