"""Shifting heavy hitters as the paper writes it: one question per item and step.

The reference that the vectorised form is tested against, and a library for small data: the
cost is the number of items times the number of users.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from operator import eq
from typing import Generic

from streamer.errors import MonitorError
from streamer.monitors.perturbation import Noise
from streamer.monitors.refresh import Refresh
from streamer.monitors.seam import Hitter, Item
from streamer.monitors.threshold_monitor import ThresholdMonitorEvolving
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan


class ShiftingHeavyHitters(Generic[Item]):
    """At each step, TME is asked f_x(y) = 1{y = x} for every item x.

    With a `domain`, all of its items are asked about; without, the items that an active user
    holds. Covers one budget period; further steps raise MonitorError.
    """

    def __init__(
        self,
        users: int,
        plan: Plan,
        domain: Collection[Item] | None = None,
        refresh: int = 1,
        noise: Noise | None = None,
    ) -> None:
        if (domain is None) != (plan.workload.domain is Domain.OPEN):
            raise MonitorError(
                "the plan and the monitor disagree on whether the domain is declared"
            )
        if domain is not None and len(domain) != plan.workload.items:
            raise MonitorError(
                f"the domain has {len(domain)} items, the plan is for {plan.workload.items}"
            )
        self._monitor = ThresholdMonitorEvolving(users, plan.calibration, plan.threshold, noise)
        self._domain = domain
        self._refresh: Refresh[Item] = Refresh(refresh)
        self._period_steps = plan.workload.period_steps
        self._step = 0

    @property
    def monitor(self) -> ThresholdMonitorEvolving:
        return self._monitor

    def observe(self, data: Sequence[Item | None]) -> list[Hitter[Item]]:
        """The heavy hitters of the next step; data[j] is what user j holds, or None."""
        if self._step == self._period_steps:
            raise MonitorError("the budget period is over: create a new monitor for the next one")
        if len(data) != len(self._monitor.active):
            raise MonitorError(
                f"the data have {len(data)} users, the monitor has {len(self._monitor.active)}"
            )
        hitters = []
        for item in self._questions(data):
            answer = self._monitor.ask(data, partial(eq, item))
            if answer.above and answer.estimate is not None:
                hitters.append(Hitter(item, int(answer.estimate)))
        self._refresh.note(self._step, [hitter.item for hitter in hitters])
        self._step += 1
        return hitters

    def _questions(self, data: Sequence[Item | None]) -> list[Item]:
        resting = self._refresh.resting(self._step)
        if self._domain is not None:
            asked = set(self._domain)
        else:
            active = self._monitor.active
            asked = {x for x, counts in zip(data, active, strict=True) if counts and x is not None}
        return sorted(asked - resting, key=repr)
