"""The options of commands that make a plan, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamer.commands import options
from streamer.privacy.terms import Domain
from streamer.settings import LONGEST_SECONDS

if TYPE_CHECKING:
    from streamer.privacy.threshold import Plan


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a plan is made from, as given on the command line."""

    epsilon: options.Epsilon = options.PRIVACY.epsilon
    delta: options.Delta = options.PRIVACY.delta
    contributions: options.Contributions = options.PRIVACY.contributions
    neighbours: options.NeighboursChoice = options.PRIVACY.neighbours
    period: options.Period = options.PRIVACY.period_steps
    calibration: options.Calibration = options.PRIVACY.calibration
    attention: options.AttentionChoice = options.PRIVACY.attention
    step: options.Step = options.STREAM.step_seconds
    beta: options.Beta = options.PRIVACY.beta
    items: options.ItemsCount = options.PRIVACY.items
    items_per_step: options.ItemsPerStep = options.STREAM.items_per_step
    declared: options.Declared = 0
    users: options.Users = options.PRIVACY.users
    domain: options.DomainChoice = Domain.OPEN
    threshold: options.Threshold = options.PRIVACY.threshold

    def plan(self) -> Plan:
        from streamer.privacy.guarantee import Guarantee, check_positive
        from streamer.privacy.threshold import Workload, plan

        check_positive("step", self.step, at_most=LONGEST_SECONDS)
        guarantee = Guarantee(self.epsilon, self.delta, self.contributions, self.neighbours)
        workload = Workload(
            *(self.period, self.items, self.beta, self.domain, self.users, self.step),
            *(self.items_per_step, self.declared),
        )
        return plan(guarantee, workload, self.calibration, self.threshold, self.attention)


def with_plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the command's parameter `asked` by the options of a plan."""
    own, declared = (
        inspect.signature(each, eval_str=True).parameters for each in (command, PlanOptions)
    )

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        asked = PlanOptions(**{name: values.pop(name) for name in declared})
        command(**values, asked=asked)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name in own
        for parameter in (declared.values() if name == "asked" else (own[name],))
    ]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_options
