"""The engine: closes steps in order and decides what is reported in each.

It has no broker, file or clock. It combines *counting*, which knows users, and *deciding*,
which draws noise. A decision must be durable before any of it is published and before the
next step is closed: the engine has moved on, and no step is ever decided twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamer.errors import MonitorError
from streamer.monitors.counters import Charges, Counters
from streamer.monitors.counting import Counting
from streamer.monitors.deciding import Deciding, MakeQuestions, NoisyThreshold
from streamer.stream.buffer import StepBuffer
from streamer.stream.decided import Decided
from streamer.stream.intake import Intake
from streamer.stream.periods import Period, Terms

AskedBy = MakeQuestions[str]
"""Creates the questions of a period: the real ones, or scripted ones in tests."""


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an engine needs from the past to continue. All of it is in the journal."""

    closed: int
    """The last closed step."""
    period: Period
    charges: Charges
    """Of this period."""
    recent: Sequence[Decided] = ()
    """The last decisions, oldest first: they say which items are public and which rest."""


@dataclass(frozen=True, slots=True)
class Turnout:
    """How many events, users and exhausted users a step had. Raw numbers: not publishable.

    `held`: how many pairs of a user and an item the events come down to; the other events repeat
    one of them, or are of older items than count.
    """

    events: int = 0
    users: int = 0
    exhausted: int = 0
    held: int = 0


class Engine:
    """Steps in, decisions out."""

    def __init__(
        self,
        intake: Intake,
        terms: Terms,
        state: EngineState | None = None,
        asked_by: AskedBy = NoisyThreshold,
    ) -> None:
        self.intake = intake
        self.terms = terms
        """The terms of future periods; the current period keeps its own."""
        self._counting: Counting[str] = Counting()
        self._deciding: Deciding[str] = Deciding(asked_by)
        self.closed: int | None = None
        self.turnout = Turnout()
        """Of the last closed step."""
        self.period: Period | None = None
        if state is not None:
            self.closed = state.closed
            intake.begin(state.closed + 1)
            self._begin(state.period)
            self.counters.restore(state.charges)
            past = ((each.step, each.period.pace, each.hitters) for each in state.recent)
            self._deciding.restore(state.closed, past)

    @property
    def counters(self) -> Counters:
        """Who was charged how much in this period."""
        return self._counting.counters

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
        """Whether the next period starts with different terms."""
        return self.period is not None and self.period.terms != self.terms

    def start_at(self, step: int) -> None:
        """Set the first step of a new stream."""
        if self.closed is not None:
            raise MonitorError(f"step {self.closed} is closed: the stream continues after it")
        earlier = self.intake.open_steps[:1]
        if earlier and earlier[0] < step:
            raise MonitorError(f"cannot start at step {step}: step {earlier[0]} has events")
        self.closed = step - 1
        self.intake.begin(step)

    def has_closed(self, step: int) -> bool:
        return self.closed is not None and self.closed >= step

    def close_next(self, through: int) -> Decided:
        """Decide the next step, or the next run of empty steps, up to `through`, which must not
        be closed yet."""
        if self.closed is None:
            raise MonitorError("the stream has no first step yet")
        step = self.closed + 1
        if step > through:
            raise MonitorError(f"step {through} is closed: no step is decided twice")
        if self.period is None:
            self._enter(step)
        buffer = self.intake.take(step)
        if buffer is None and not self._deciding.asks_unheld:
            decided = self._empty(step, through)
        else:
            decided = self._decide(step, StepBuffer() if buffer is None else buffer)
        self.closed = decided.step
        return decided

    def _decide(self, step: int, buffer: StepBuffer) -> Decided:
        period = self._enter(step)
        terms = period.terms
        # What is never asked about does not take the place of something that is.
        only = None if terms.open_domain else terms.declared_items
        holdings = buffer.holdings(terms.items_per_step, only)
        counted = self._counting.count(step, holdings)
        decision = self._deciding.decide(counted.tally)
        charges = self._counting.charge(counted, decision)
        self.turnout = Turnout(len(buffer), counted.users, counted.exhausted, len(counted.active))
        return Decided(step, step, period, self._deciding.public, charges)

    def _empty(self, first: int, through: int) -> Decided:
        """No user holds an item and none is public: no question is asked and nobody is charged."""
        last = min([through, *(step - 1 for step in self.intake.open_steps)])
        if self.terms_pending and self.period is not None and first < self.period.end:
            last = min(last, self.period.end - 1)
        self.turnout = Turnout()
        return Decided(last, first, self._enter(last))

    def _enter(self, step: int) -> Period:
        """The period of this step; starts a new one if needed."""
        if self.period is None:
            self._begin(Period.containing(step, self.terms))
        elif step >= self.period.end:
            self._begin(self.period.at(step, self.terms))
        if self.period is None:
            raise MonitorError("no budget period has begun")
        return self.period

    def _begin(self, period: Period) -> None:
        """Start a period with fresh counters: nobody has been charged in it."""
        self.period = period
        self._counting.begin(period.terms.contributions, period.terms.items_per_step)
        self._deciding.begin(period.plan, period.pace, period.terms.declared_items)
