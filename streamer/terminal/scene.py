"""What a terminal knows of a stream: the recent past, what many users hold now, the guarantee.

It is told by a page's API, by topics or by a board in this process, always of what passed
the monitor. Items are hostile strings: `visible` is the only way to a terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from streamer.stream.timing import duration
from streamer.web.answers import ClosedStep, Current, CurrentHitter, Promise, Published
from streamer.web.ground_truth import TruthAnswer

PAST = 400
"""Records of closed steps that are kept: enough for the widest terminal."""
_MOST_RESULTS = 200
"""Of a step that are kept, the largest: nobody looks at more in a terminal."""
_LONGEST_ITEM = 400


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What only a simulation can know."""

    answer: TruthAnswer
    outbreaks: frozenset[str]
    """The items of all outbreaks, whenever they are."""
    running: frozenset[str]
    """The items of those that go on."""
    exhausted: float
    """Share of the users whose reports are used up."""
    left_out: int
    """Steps that could not be simulated in time."""


@dataclass(slots=True)
class Scene:
    """Implements `Listener`; whoever draws is called after every change."""

    title: str
    subject: str
    place: str
    """What is watched, and where else it can be seen, in words."""
    truth: Callable[[], GroundTruth] | None = None
    trouble: str = ""
    promise: Promise | None = None
    current: Current | None = None
    latest: CurrentHitter | None = None
    """Every report tells the terms that it was made under."""
    resting: int = 1
    """Steps that a reported item rests, if there is no guarantee that tells."""
    steps: deque[ClosedStep] = field(default_factory=lambda: deque(maxlen=PAST))
    changed: Callable[[], object] = lambda: None

    @property
    def threshold(self) -> int | None:
        if self.promise is not None:
            return self.promise.threshold
        return None if self.latest is None else self.latest.threshold

    @property
    def refresh(self) -> int:
        return self.resting if self.promise is None else self.promise.refresh_steps

    @property
    def terms(self) -> list[str]:
        """The guarantee in two short sentences; none before it is known."""
        promise, latest = self.promise, self.latest
        if promise is not None:
            period = duration(round(promise.period_steps * promise.step_seconds * 1000))
            rest = ""
            if promise.refresh_steps > 1:
                resting = duration(round(promise.refresh_steps * promise.step_seconds * 1000))
                rest = f"; a reported item rests for {resting}"
            return _sentences(promise, period, rest)
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
            largest = sorted(step.results, key=lambda result: -result.estimate)
            self.steps.append(structs.replace(step, results=tuple(largest[:_MOST_RESULTS])))
        if published.hitters is not None:
            self.current = published.hitters
            if published.hitters.hitters:
                self.latest = published.hitters.hitters[0]
        self.changed()

    def reset(self) -> None:
        self.steps.clear()
        self.current = self.latest = None
        self.changed()


def _sentences(terms: Promise | CurrentHitter, period: str, rest: str) -> list[str]:
    delta = f"{terms.delta:g}".replace("e-0", "e-")
    reports = "report" if terms.contributions == 1 else "reports"
    return [
        f"ε = {terms.epsilon:g}, δ = {delta} for all that one user does in {period}.",
        f"A user counts for at most {terms.contributions:,} {reports}{rest}.",
    ]


def visible(text: str) -> str:
    """A text that a terminal shows and never acts upon: what is not plainly printable, and
    what turns the direction of writing, stands there as an escape."""
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text[:_LONGEST_ITEM]
    )
    return shown if len(text) <= _LONGEST_ITEM else f"{shown}…"
