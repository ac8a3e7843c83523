"""What a terminal shows of a stream: the recent past, what is trending now, the guarantee.

The data comes from a page's API, from topics or from a board in this process; all of it has
passed the monitor. Items are untrusted strings: print them only through `visible`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from streamer.privacy.terms import Attention
from streamer.stream.timing import duration, parse_rfc3339
from streamer.web.answers import ClosedStep, Current, CurrentHitter, Promise, Published
from streamer.web.ground_truth import TruthAnswer

PAST = 400
"""Step records to keep: enough for the widest terminal."""
_MOST_RESULTS = 200
"""Results to keep per step, those with the largest last values: nobody looks at more in a
terminal."""
_LONGEST_ITEM = 400


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What only a simulation knows."""

    answer: TruthAnswer
    outbreaks: frozenset[str]
    """The items of all outbreaks, running or not."""
    running: frozenset[str]
    """The items of running outbreaks."""
    exhausted: float
    """Share of users who have no reports left."""
    left_out: int
    """Steps that could not be simulated in time."""


@dataclass(slots=True)
class Scene:
    """Implements `Listener`; calls `changed` after every change."""

    title: str
    subject: str
    place: str
    """A sentence: where else to look, and how to stop."""
    truth: Callable[[], GroundTruth] | None = None
    trouble: str = ""
    promise: Promise | None = None
    current: Current | None = None
    latest: CurrentHitter | None = None
    """The largest current report: each carries the terms it was made under."""
    resting: int = 1
    """Steps before a reported item is checked again, if no guarantee is known."""
    step_length: float = 60.0
    """Seconds of the last step, as its record says: while no guarantee is known."""
    steps: deque[ClosedStep] = field(default_factory=lambda: deque(maxlen=PAST))
    changed: Callable[[], object] = lambda: None
    _estimates: dict[str, int] = field(default_factory=dict)
    """The last estimates of the items of the last step."""

    @property
    def threshold(self) -> int | None:
        if self.promise is not None:
            return self.promise.threshold
        return None if self.latest is None else self.latest.threshold

    @property
    def refresh(self) -> int:
        if self.promise is None:
            return self.resting
        return 1 if self.has_states else self.promise.refresh_steps

    @property
    def has_states(self) -> bool:
        """Whether a public item stays so until it is gone."""
        return self.promise is not None and self.promise.attention == Attention.CHANGES

    @property
    def step_seconds(self) -> float:
        return self.step_length if self.promise is None else self.promise.step_seconds

    @property
    def terms(self) -> list[str]:
        """The guarantee in two short sentences; empty until it is known."""
        promise, latest = self.promise, self.latest
        if promise is not None:
            period = duration(round(promise.period_steps * promise.step_seconds * 1000))
            valid = ""
            if self.has_states:
                valid = "; that an item is still there is free"
            elif promise.refresh_steps > 1:
                length = duration(round(promise.refresh_steps * promise.step_seconds * 1000))
                valid = f"; each report is valid for {length}"
            return _sentences(promise, period, valid)
        return [] if latest is None else _sentences(latest, "one budget period", "")

    def state(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self.changed()

    def guarantee(self, promise: Promise) -> None:
        self.promise = promise
        self.changed()

    def published(self, published: Published) -> None:
        for step in published.steps:
            self.step_length = _seconds(step)
            self.steps.append(self._largest(step))
        if published.hitters is not None:
            self.current = published.hitters
            if published.hitters.hitters:
                self.latest = published.hitters.hitters[0]
        self.changed()

    def _largest(self, step: ClosedStep) -> ClosedStep:
        before = self._estimates
        self._estimates = {
            result.item: before.get(result.item, 0) if result.estimate is None else result.estimate
            for result in step.results
        }
        largest = sorted(step.results, key=lambda result: -self._estimates[result.item])
        return structs.replace(step, results=tuple(largest[:_MOST_RESULTS]))

    def reset(self) -> None:
        self.steps.clear()
        self._estimates.clear()
        self.current = self.latest = None
        self.changed()


def _seconds(record: ClosedStep) -> float:
    """How long a step takes, from the record of one or of a run."""
    steps = 1 if record.first is None else record.step - record.first + 1
    return (parse_rfc3339(record.end) - parse_rfc3339(record.start)) / 1000 / steps


def _sentences(terms: Promise | CurrentHitter, period: str, valid: str) -> list[str]:
    delta = f"{terms.delta:g}".replace("e-0", "e-")
    reports = "report" if terms.contributions == 1 else "reports"
    # Loud reports cost less, so a user may count in more of them.
    return [
        f"ε = {terms.epsilon:g}, δ = {delta} for everything one user does in {period}.",
        f"Each user has a budget of {terms.contributions:,} {reports}{valid}.",
    ]


def visible(text: str) -> str:
    """Safe to print on a terminal: characters that are not printable, or that change the
    direction of writing, are escaped."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:_LONGEST_ITEM]
    )
    return shown if len(text) <= _LONGEST_ITEM else f"{shown}…"
