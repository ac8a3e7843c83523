"""Shifting heavy hitters, vectorised: what the service runs, one step at a time.

At each step the paper asks TME "is x held by at least t users?" for every item x. A user
holds one item a step, so the questions of a step touch disjoint users and can be asked
all at once. The work is three separate operations, so that counting can one day be
spread over machines: *count* the active holders of each item, *decide* with fresh noise
per item, *charge* the holders of what was reported.

Users are 64-bit numbers; items are small whole numbers, positions in a dictionary that
the caller keeps.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.counters import Counters, Users
from streamer.monitors.perturbation import Noise, Perturbation
from streamer.monitors.refresh import Refresh
from streamer.privacy.binomial import draw_below, draw_binomial
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import RandomBytes, secure_bytes
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan

Items = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many active users hold each item: items in rising order, each held by someone."""

    items: Items
    holders: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is reported in a step: items in rising order with their noisy counts f̂."""

    items: Items
    estimates: NDArray[np.int64]


class HeavyHitterMonitor:
    """ThresholdMonitorEvolving for all items of a step at once, with budget periods."""

    def __init__(self, plan: Plan, refresh: int = 1, decider: Decider | None = None) -> None:
        self.plan = plan
        self.counters = Counters(plan.guarantee.contributions)
        self._decider = decider or Decider(plan)
        self._refresh: Refresh[int] = Refresh(refresh)
        self._step: int | None = None
        self._is_open = False

    def observe(self, step: int, users: Users, items: Items) -> Decision:
        """One whole step: users, in any order, and the one item that each of them holds."""
        order = np.argsort(users)
        users, items = users[order], items[order]
        self.begin(step)
        tally = self.count(users, items)
        decision = self.decide(tally)
        self.charge(decision, users, items)
        return decision

    def begin(self, step: int) -> None:
        """Open a step. Steps only go up: what was decided is never decided again."""
        if self._step is not None and step <= self._step:
            raise MonitorError(f"step {step} comes after step {self._step}, which is decided")
        period = self.plan.workload.period_steps
        if self._step is not None and step // period != self._step // period:
            self.counters.clear()
        self._step = step
        self._is_open = True

    def count(self, users: Users, items: Items) -> Tally:
        """The active holders of each item; users in rising order, each once.

        That a user counts once a step is what makes the sensitivity 1, so it is checked.
        """
        if not np.all(users[1:] > users[:-1]):
            raise MonitorError("the users of a step must come in rising order, each once")
        workload = self.plan.workload
        if workload.domain is Domain.DECLARED and items.max(initial=0) >= workload.items:
            raise MonitorError(f"item {items.max()} is not in the declared domain")
        return count_holders(items[self.counters.active(users)])

    def decide(self, tally: Tally) -> Decision:
        """Which items are reported in the open step."""
        step = self._take_open_step()
        decision = self._decider.decide(tally, self._refresh.resting(step))
        self._refresh.note(step, decision.items.tolist())
        return decision

    def charge(self, decision: Decision, users: Users, items: Items) -> Users:
        """Charge the active holders of every reported item; returns who they are."""
        holders = users[np.isin(items, decision.items) & self.counters.active(users)]
        self.counters.charge(holders)
        return holders

    def _take_open_step(self) -> int:
        """The step that was begun; it can be decided once."""
        if self._step is None or not self._is_open:
            raise MonitorError("begin a step first: no step is decided twice")
        self._is_open = False
        return self._step


class Decider:
    """The noisy comparison: from a tally to a decision. It knows no user."""

    def __init__(
        self, plan: Plan, noise: Noise | None = None, random_bytes: RandomBytes = secure_bytes
    ) -> None:
        self._plan = plan
        self._noise = noise or Perturbation(plan.calibration, random_bytes=random_bytes)
        self._large = DiscreteLaplace(plan.calibration.noise_scale, random_bytes)
        self._random_bytes = random_bytes
        if plan.workload.domain is Domain.DECLARED:
            self._unheld_passes = plan.law.precise_at_least(plan.threshold)

    def decide(self, tally: Tally, resting: Collection[int] = ()) -> Decision:
        """Ask about every item of the tally that is not resting.

        In a declared domain the items that nobody holds are asked about too.
        """
        asked = tally
        if resting:
            awake = ~np.isin(tally.items, list(resting))
            asked = Tally(tally.items[awake], tally.holders[awake])
        estimates = asked.holders + self._noise.draw(len(asked.items))
        above = estimates >= self._plan.threshold
        decision = Decision(asked.items[above], estimates[above])
        if self._plan.workload.domain is Domain.DECLARED:
            return self._with_unheld(decision, tally, resting)
        return decision

    def _with_unheld(self, decision: Decision, tally: Tally, resting: Collection[int]) -> Decision:
        """Add the reports among items that nobody holds.

        Each passes with probability Pr[Z >= t], independently: their number is
        binomial, and which ones they are is uniform. Given that it passes, Z - t is
        geometric, whatever v̄ was, because t is not below the cap of v̄.
        """
        resting_unheld = np.fromiter(resting, dtype=np.int64)
        if resting:
            resting_unheld = np.setdiff1d(resting_unheld, tally.items)
        unheld = self._plan.workload.items - len(tally.items) - len(resting_unheld)
        number = draw_binomial(unheld, self._unheld_passes, self._random_bytes)
        if number == 0:
            return decision
        unasked = np.concatenate((tally.items, resting_unheld))
        chosen = _draw_others(self._plan.workload.items, unasked, number, self._random_bytes)
        estimates = self._plan.threshold + _draw_geometric(self._large, number)
        items = np.concatenate((decision.items, chosen))
        order = np.argsort(items)
        return Decision(items[order], np.concatenate((decision.estimates, estimates))[order])


def count_holders(items: Items) -> Tally:
    """How often each item occurs."""
    counts = np.bincount(items) if len(items) else np.empty(0, dtype=np.int64)
    held = np.flatnonzero(counts)
    return Tally(held, counts[held])


def _draw_others(domain: int, excluded: Items, number: int, random_bytes: RandomBytes) -> Items:
    """So many distinct items of the domain, uniformly among those not excluded."""
    others = np.setdiff1d(np.arange(domain), excluded)
    for place in range(number):
        pick = place + draw_below(len(others) - place, random_bytes)
        others[[place, pick]] = others[[pick, place]]
    return np.asarray(others[:number])


def _draw_geometric(noise: DiscreteLaplace, number: int) -> NDArray[np.int64]:
    """Draws of the same scale given that they are not negative: more than half of them are."""
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < number:
        more = noise.draw(2 * number + 16)
        drawn = np.concatenate((drawn, more[more >= 0]))
    return drawn[:number]
