"""Budget periods and the terms that are fixed for each period."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from streamer.monitors.attention import Pace
from streamer.privacy.guarantee import Guarantee, check_whole
from streamer.privacy.interval import interval
from streamer.privacy.terms import Attention, Domain, Method, Neighbours
from streamer.privacy.threshold import MOST_STEPS, Plan, Workload, plan


@dataclass(frozen=True, slots=True)
class Terms:
    """All settings that the guarantee of a period depends on, under the settings' names.

    They are stored in the ledger as declared here, so names and order must not change.
    """

    epsilon: float
    delta: float
    contributions: int
    neighbours: Neighbours
    calibration: Method
    period_steps: int
    refresh_steps: int
    beta: float
    items: int
    threshold: int | None = None
    """Set by the user; None if planned."""
    users: int = 0
    """0 in ledgers of 0.1.0, which did not limit the number of published unique items."""
    step_seconds: float = 60.0
    """The length of a step: it says how many steps a year has."""
    items_per_step: int = 1
    """1 in ledgers of 0.1.0, which counted one item of a user in a step."""
    declared_items: tuple[str, ...] = ()
    """Asked about in every step, in ascending order."""
    open_domain: bool = True
    """Whether other items than the declared ones are asked about."""
    attention: Attention = Attention.EVERY_STEP
    """Ledgers of 0.1.0 ask every item for its value in every step."""
    value_every_steps: int | None = None
    """Set by the user; None if planned."""

    def __post_init__(self) -> None:
        check_whole("refresh_steps", self.refresh_steps, 1, MOST_STEPS)
        if self.value_every_steps is not None:
            check_whole("value_every_steps", self.value_every_steps, 1, MOST_STEPS)

    def declares(self, item: str) -> bool:
        place = bisect_left(self.declared_items, item)
        return self.declared_items[place : place + 1] == (item,)

    def pace(self, planned: Plan) -> Pace:
        """How often items are asked for their value."""
        value_every_steps = self.value_every_steps or planned.value_every_steps
        return Pace(self.attention, self.refresh_steps, value_every_steps)

    def plan(self) -> Plan:
        return _plan(self)


@lru_cache(maxsize=8)
def _plan(terms: Terms) -> Plan:
    """Made once for all periods with the same terms: it takes a while."""
    guarantee = Guarantee(terms.epsilon, terms.delta, terms.contributions, terms.neighbours)
    declared = len(terms.declared_items)
    is_open = terms.open_domain
    workload = Workload(
        *(terms.period_steps, terms.items if is_open else declared, terms.beta),
        domain=Domain.OPEN if is_open else Domain.DECLARED,
        users=terms.users,
        step_seconds=terms.step_seconds,
        items_per_step=terms.items_per_step,
        declared=declared if is_open else 0,
    )
    return plan(guarantee, workload, terms.calibration, terms.threshold, terms.attention)


@dataclass(frozen=True, slots=True)
class Before:
    """The last period with a different length: the step after it, its number and its length."""

    end: int
    number: int
    length: int


@dataclass(frozen=True, slots=True)
class Period:
    """A budget period: its number, its first step, its terms and the plan for them.

    The plan is stored with the period and never recomputed: a newer version that plans
    differently must change neither the noise nor what is published again.
    """

    number: int
    first: int
    terms: Terms
    plan: Plan
    margin: int
    before: Before | None = None
    """The periods before this length, if it was changed."""

    @classmethod
    def containing(cls, step: int, terms: Terms) -> Period:
        """The first period of a new stream: periods begin at multiples of their length."""
        number = step // terms.period_steps
        return cls._planned(number, number * terms.period_steps, terms)

    @property
    def end(self) -> int:
        """The first step after the period."""
        return self.first + self.terms.period_steps

    @property
    def pace(self) -> Pace:
        """How often items are asked for their value in this period."""
        return self.terms.pace(self.plan)

    def interval(self, item: str, estimate: int) -> tuple[int, int]:
        """The numbers of users that explain a report: from low to high.

        Whatever the number of users is, at least 95% of the reports of an item have it in their
        interval. A report says that the estimate reached the item's threshold: near the
        threshold the interval reaches far below the estimate, and may lie wholly below it.
        """
        return interval(self.plan.law, self.threshold_of(item), estimate)

    def threshold_of(self, item: str) -> int:
        """The least noisy count with which an item is reported."""
        return self.plan.threshold_of(self.terms.declares(item))

    def number_at(self, step: int) -> int:
        """The number of the period that contains a step, this period or an earlier one."""
        if self.before is not None and step < self.before.end:
            return self.before.number - (self.before.end - 1 - step) // self.before.length
        behind = max(0, self.first - step)
        return self.number - -(-behind // self.terms.period_steps)

    def at(self, step: int, terms: Terms) -> Period:
        """The period that contains a later step; new terms take effect with the next period."""
        if step < self.end:
            return self
        skipped = (step - self.end) // terms.period_steps
        first = self.end + skipped * terms.period_steps
        before = self.before
        if terms.period_steps != self.terms.period_steps:
            before = Before(self.end, self.number, self.terms.period_steps)
        return self._planned(self.number + 1 + skipped, first, terms, before)

    @classmethod
    def _planned(
        cls, number: int, first: int, terms: Terms, before: Before | None = None
    ) -> Period:
        planned = terms.plan()
        return cls(number, first, terms, planned, planned.law.margin(), before)
