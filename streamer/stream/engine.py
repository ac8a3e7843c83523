"""The engine: closes steps one after the other and decides what is reported in each.

It knows no broker, no file and no clock. *Count* the active holders of each item,
*decide* with fresh noise, *charge* the holders of what is reported. What it returns must
be durable before anything of it is published and before the next step is closed: the
engine has moved on, and no step is ever decided twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.counters import Counters, Users
from streamer.monitors.heavy_hitters import Decider, Decision, Tally, count_holders
from streamer.monitors.refresh import Refresh
from streamer.privacy.threshold import Plan
from streamer.stream.buffer import StepBuffer
from streamer.stream.intake import Intake
from streamer.stream.periods import Period, Terms
from streamer.stream.records import Decided, Hitter


class StepDecider(Protocol):
    """Decides a step; `numbers` says which item has which number in the tally."""

    def decide(
        self, step: int, numbers: Mapping[str, int], tally: Tally, resting: Collection[int]
    ) -> Decision: ...


class FreshNoise:
    """The product's decider: new noise from the CSPRNG for every item and step."""

    def __init__(self, plan: Plan) -> None:
        self._decider = Decider(plan)

    def decide(
        self, step: int, numbers: Mapping[str, int], tally: Tally, resting: Collection[int]
    ) -> Decision:
        del step, numbers
        return self._decider.decide(tally, resting)


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an engine must know of the past to go on: all of it is in the journal."""

    closed: int
    """The last closed step."""
    period: Period
    users: Users
    charges: NDArray[np.uint16]
    """The users charged in this period, in rising order, and how often."""
    resting: Mapping[str, int] = field(default_factory=dict)
    """Items that rest, and the step in which each is asked about again."""


@dataclass(frozen=True, slots=True)
class Turnout:
    """How many events and users a step had, and how many of them no longer count: raw."""

    events: int = 0
    users: int = 0
    exhausted: int = 0


class Engine:
    """Steps in, decisions out."""

    def __init__(
        self,
        intake: Intake,
        terms: Terms,
        state: EngineState | None = None,
        decider: Callable[[Plan], StepDecider] = FreshNoise,
    ) -> None:
        self.intake = intake
        self.terms = terms
        """The terms of the periods to come; the current period keeps its own."""
        self._make_decider = decider
        self.closed: int | None = None
        self.turnout = Turnout()
        """Of the last closed step."""
        self.period: Period | None = None
        self._refresh: Refresh[str] = Refresh()
        if state is not None:
            self.closed = state.closed
            self._begin(state.period)
            self.counters.restore(state.users, state.charges)
            self._refresh.restore(state.resting)

    @property
    def charged(self) -> int:
        """How many users were charged in this period."""
        return self.counters.charged if self.period else 0

    @property
    def exhausted(self) -> int:
        """How many users no longer count in this period."""
        return self.counters.exhausted if self.period else 0

    @property
    def terms_pending(self) -> bool:
        """Whether other terms than the current ones begin with the next period."""
        return self.period is not None and self.period.terms != self.terms

    def start_at(self, step: int) -> None:
        """The first step of a new stream."""
        if self.closed is not None:
            raise MonitorError(f"step {self.closed} is closed: the stream goes on after it")
        if self.intake.open_steps[:1] and self.intake.open_steps[0] < step:
            raise MonitorError(
                f"step {self.intake.open_steps[0]} has events and comes before {step}"
            )
        self.closed = step - 1

    def has_closed(self, step: int) -> bool:
        return self.closed is not None and self.closed >= step

    def close_next(self, through: int) -> Decided:
        """Decide the next step up to `through`, which is not closed; a run of empty steps at
        once."""
        if self.closed is None:
            raise MonitorError("the stream has no first step yet")
        step = self.closed + 1
        if step > through:
            raise MonitorError(f"step {through} is closed: no step is decided twice")
        buffer = self.intake.take(step)
        decided = self._empty(step, through) if buffer is None else self._decide(step, buffer)
        self.closed = decided.step
        return decided

    def _decide(self, step: int, buffer: StepBuffer) -> Decided:
        period = self._enter(step)
        contents = buffer.contents()
        resting = self._resting(step, contents.numbers)
        active = self.counters.active(contents.users)
        spent = len(active) - int(np.count_nonzero(active))
        self.turnout = Turnout(len(buffer), len(contents.users), spent)
        tally = count_holders(contents.items[active])
        decision = self._decider.decide(step, contents.numbers, tally, resting)
        charged = contents.users[active & np.isin(contents.items, decision.items)]
        self.counters.charge(charged)
        hitters = _named(decision, contents.numbers)
        self._refresh.note(step, [hitter.item for hitter in hitters])
        return Decided(step, step, period, hitters, charged)

    def _empty(self, first: int, through: int) -> Decided:
        """Nobody holds anything: nothing is asked, nobody is charged."""
        last = min([through, *(step - 1 for step in self.intake.open_steps)])
        if self.terms_pending and self.period is not None and first < self.period.end:
            last = min(last, self.period.end - 1)
        self.turnout = Turnout()
        return Decided(last, first, self._enter(last))

    def _enter(self, step: int) -> Period:
        """The period of this step, begun if it is new."""
        if self.period is None:
            self._begin(Period.containing(step, self.terms))
        elif step >= self.period.end:
            self._begin(self.period.at(step, self.terms))
        if self.period is None:
            raise MonitorError("a period must have begun")
        return self.period

    def _begin(self, period: Period) -> None:
        """Fresh counters: in a new period nobody was charged."""
        self.counters = Counters(period.terms.contributions)
        self.period = period
        self._decider = self._make_decider(period.plan)
        self._refresh.steps = period.terms.refresh_steps

    def _resting(self, step: int, numbers: Mapping[str, int]) -> list[int]:
        resting = self._refresh.resting(step)
        return [numbers[item] for item in resting if item in numbers]


def _named(decision: Decision, numbers: Mapping[str, int]) -> tuple[Hitter, ...]:
    """The reported items by name and in the order of their names."""
    names = list(numbers)
    hitters = (
        Hitter(names[number], estimate)
        for number, estimate in zip(
            decision.items.tolist(), decision.estimates.tolist(), strict=True
        )
    )
    return tuple(sorted(hitters, key=lambda hitter: hitter.item))
