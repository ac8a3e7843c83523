"""A day that a real service would have, played against the monitor.

What lasts, and what breaks out beside it: how much of it does a plan make public, and for how
long do the users' budgets last? The day is simulated (`fleet/day.py`), the monitor is the real
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from streamer.fleet.fleet import Fleet
from streamer.fleet.holdings import held_steps
from streamer.monitors.attention import Pace, pace_of
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import Hitter
from streamer.monitors.states import State
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import RandomBytes, secure_bytes
from streamer.privacy.terms import Attention, Method
from streamer.privacy.threshold import Plan, Workload, plan

COMPARED_REFRESHES = (1, 6, 60)
FOUND_WITHIN = 2
"""Steps in which an outbreak must be reported to be found, from its first one on."""


@dataclass(frozen=True, slots=True)
class DayResult:
    """What was public on a day.

    `pairs`: how many pairs of a step and an item had at least τ holders, budget or not.
    `public_pairs`: in how many of them the item was public: in this step, or, if it rests after a
    report, fewer than `refresh_steps` steps before. `found`: how many of the outbreaks were
    reported in their first two steps. `exhausted`: how many of the users had no budget left at
    noon.
    """

    pairs: int
    public_pairs: int
    outbreaks: int
    found: int
    users: int
    exhausted: int
    public: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)
    """Steps, from the first one, and items with at least τ holders or of an outbreak that were
    public in them."""

    @property
    def public_share(self) -> float:
        """1 if no item had τ holders: then none was missed."""
        return self.public_pairs / self.pairs if self.pairs else 1.0

    @property
    def exhausted_share(self) -> float:
        return self.exhausted / self.users


@dataclass(frozen=True, slots=True)
class DayRow:
    """A rule by which a day is watched, and what it makes of it."""

    name: str
    threshold: int
    result: DayResult


def compare_rules(
    fleet: Fleet,
    guarantee: Guarantee,
    random_bytes: RandomBytes = secure_bytes,
    played: Callable[[], object] = lambda: None,
) -> list[DayRow]:
    """The fleet's day under the rules of 0.1.0, where every report has its price, and under the
    defaults. `played`: called after every step of each rule."""
    workload = Workload(fleet.steps, 100_000, 0.05, users=1_000_000)
    exact = plan(guarantee, workload, Method.EXACT)
    changes = plan(guarantee, replace(workload, items_per_step=3))
    watched = [
        *(
            (f"0.1.0, refresh {steps}", exact, Pace(refresh_steps=steps))
            for steps in COMPARED_REFRESHES
        ),
        ("changes", changes, pace_of(changes)),
    ]
    return [
        DayRow(name, planned.threshold, play_day(fleet, planned, pace, random_bytes, played))
        for name, planned, pace in watched
    ]


def play_day(
    fleet: Fleet,
    plan: Plan,
    pace: Pace,
    random_bytes: RandomBytes = secure_bytes,
    played: Callable[[], object] = lambda: None,
) -> DayResult:
    """Play the fleet's steps, half of them before noon; each outbreak has an item of its own."""
    deciding: Deciding[int] = Deciding(partial(NoisyThreshold, random_bytes=random_bytes))
    monitor = HeavyHitterMonitor(plan, pace, deciding=deciding)
    tau, noon = plan.guaranteed_weight, fleet.first_step + fleet.steps // 2
    catalogue = fleet.catalogue()
    outbreaks = {catalogue.number(outbreak.item) for outbreak in fleet.outbreaks}
    first_reports: dict[int, int] = {}
    public = _Public(pace)
    shown: list[tuple[int, int]] = []
    pairs = public_pairs = exhausted = 0
    for held in held_steps(fleet, plan.workload.items_per_step):
        if held.step == noon:
            exhausted = monitor.counters.exhausted
        decision = monitor.observe(held.step, held.users, held.items)
        for item in decision.items.tolist():
            first_reports.setdefault(item, held.step)
        public.take(held.step, monitor.public)
        above = set(np.flatnonzero(held.holders >= tau).tolist())
        pairs += len(above)
        public_pairs += sum(public.shows(item, held.step) for item in above)
        shown += [
            (held.step - fleet.first_step, item)
            for item in sorted(above | outbreaks)
            if public.shows(item, held.step)
        ]
        played()
    return DayResult(
        pairs,
        public_pairs,
        len(fleet.outbreaks),
        _found(fleet, first_reports),
        fleet.users,
        exhausted,
        tuple(shown),
    )


class _Public:
    """Which items a reader sees as public."""

    def __init__(self, pace: Pace) -> None:
        # With changes an item that is public has an answer in every step.
        self._rest = 1 if pace.attention is Attention.CHANGES else pace.refresh_steps
        self._last: dict[int, int] = {}

    def take(self, step: int, hitters: Sequence[Hitter[int]]) -> None:
        self._last.update({each.item: step for each in hitters if each.state is not State.GONE})

    def shows(self, item: int, step: int) -> bool:
        return item in self._last and step - self._last[item] < self._rest


def _found(fleet: Fleet, first_reports: dict[int, int]) -> int:
    catalogue = fleet.catalogue()
    deadlines = {
        catalogue.number(outbreak.item): fleet.first_step + outbreak.start + FOUND_WITHIN
        for outbreak in fleet.outbreaks
    }
    return sum(
        item in first_reports and first_reports[item] < deadline
        for item, deadline in deadlines.items()
    )
