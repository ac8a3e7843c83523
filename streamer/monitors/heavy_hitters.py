"""Shifting heavy hitters as a library: whole steps in, decisions out.

At each step the paper asks TME "is x held by at least t users?" for every item x. A user
counts for no more items in a step than its budget can pay for, so no answer of a step changes
who counts in another, and all of them can be asked at once. The service, the audit and this
monitor are built from the same two objects: `counting` knows users, `deciding` draws noise.

Users are 64-bit numbers. Items are small whole numbers: positions in a dictionary of the
caller.
"""

from __future__ import annotations

import numpy as np

from streamer.errors import MonitorError
from streamer.monitors.attention import Pace, pace_of
from streamer.monitors.counters import Charges, Counters
from streamer.monitors.counting import Counted, Counting
from streamer.monitors.deciding import Deciding
from streamer.monitors.seam import Decision, Hitter, Holdings, Items, OwnNumbers, Tally, Users
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan

_NUMBERS = OwnNumbers()


class HeavyHitterMonitor:
    """ThresholdMonitorEvolving for all items of a step at once, with budget periods.

    Items stay public over period boundaries, as in the service.
    """

    def __init__(
        self,
        plan: Plan,
        pace: Pace | None = None,
        counting: Counting[int] | None = None,
        deciding: Deciding[int] | None = None,
    ) -> None:
        """`pace`: how often items are asked for their value, the plan's if not given."""
        self.plan = plan
        self._counting: Counting[int] = counting or Counting()
        self._deciding: Deciding[int] = deciding or Deciding()
        # In a declared domain the items are the whole numbers below its size.
        is_declared = plan.workload.domain is Domain.DECLARED
        self._declared = range(plan.workload.items if is_declared else plan.workload.declared)
        self._deciding.begin(plan, pace or pace_of(plan), self._declared)
        self._begin_counting()
        self._period: int | None = None

    @property
    def counters(self) -> Counters:
        """What each user was charged in the current period."""
        return self._counting.counters

    @property
    def public(self) -> tuple[Hitter[int], ...]:
        """What the last step says about each public item: whether it is new, ongoing, back or
        gone, since when, and its last value."""
        return self._deciding.public

    def observe(self, step: int, users: Users, items: Items) -> Decision:
        """Process one whole step: users, in any order, and the item that each of them holds.

        A user may come several times, with up to `items_per_step` different items of the plan's
        workload, the latest first: they count in this order. Steps must increase: no step is
        decided twice.
        """
        counted = self.count(step, users, items)
        decision = self.decide(counted.tally)
        self.charge(counted, decision)
        return decision

    def count(self, step: int, users: Users, items: Items) -> Counted[int]:
        """The active holders of each item in a step."""
        self._enter(step // self.plan.workload.period_steps)
        if self.plan.workload.domain is Domain.DECLARED:
            _check_declared(items, len(self._declared))
        order = np.argsort(users, kind="stable")
        return self._counting.count(step, Holdings(users[order], items[order], _NUMBERS))

    def decide(self, tally: Tally[int]) -> Decision:
        """Which items are reported in the tally's step."""
        return self._deciding.decide(tally)

    def charge(self, counted: Counted[int], decision: Decision) -> Charges:
        """Charge the active holders of every item that is reported or gone, and return what each
        is charged."""
        return self._counting.charge(counted, decision)

    def _enter(self, period: int) -> None:
        if self._period is not None and period < self._period:
            raise MonitorError(
                f"period {period} cannot follow period {self._period}: its budgets are gone, and "
                "no step is decided twice"
            )
        if self._period is not None and period > self._period:
            self._begin_counting()
        self._period = period

    def _begin_counting(self) -> None:
        plan = self.plan
        self._counting.begin(plan.guarantee.contributions, plan.workload.items_per_step)


def _check_declared(items: Items, number: int) -> None:
    if items.max(initial=0) >= number:
        raise MonitorError(f"item {items.max()} is not in the declared domain")
