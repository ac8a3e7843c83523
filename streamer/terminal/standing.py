"""How each item stands after the last step: what is there, what is new first, and what has just
gone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import UNSET

from streamer.monitors.states import State
from streamer.stream.current import Trend
from streamer.web.answers import ClosedStep, Current, CurrentHitter, LastValue, Result

NEW_STEPS = 5
"""An item counts as new, or back, for its first few steps: a single one is easily missed."""
GONE_STEPS, GONE_SECONDS = 5, 300.0
"""How long a gone item is shown: the longer of both."""


@dataclass(frozen=True, slots=True)
class Value:
    """An estimate, its interval in words, and the step of both."""

    step: int
    estimate: int
    interval: str

    @classmethod
    def of(cls, found: Result | CurrentHitter | LastValue, step: int, margin: int) -> Value | None:
        """None: the record has no value. Reports of 0.1.0 have only the margin of the noise."""
        estimate, low, high = found.estimate, found.low, found.high
        if estimate is None:
            return None
        if low is UNSET or low is None or high is UNSET or high is None:
            return cls(step, estimate, f"± {margin:,}")
        return cls(step, estimate, f"({low:,}–{high:,})")


@dataclass(frozen=True, slots=True)
class Standing:
    """An item that is there, or has just gone, with its last value if that is known."""

    item: str
    state: State
    steps: int
    """How many steps it is there, the last one included; or how many it is gone."""
    value: Value | None
    trend: Trend = Trend.NEW
    threshold: int = 0


def standings(current: Current, steps: Iterable[ClosedStep]) -> list[Standing]:
    """Items that are there: those that are new or back first, then the largest."""
    through = current.step
    if through is None:
        return []
    begun = {
        result.item: result.state
        for closed in steps
        if through - closed.step < NEW_STEPS
        for result in closed.results
        if result.state is State.NEW or result.state is State.BACK
    }
    found = [
        Standing(
            hitter.item,
            begun.get(hitter.item, State.NEW)
            if through - hitter.since < NEW_STEPS
            else State.ONGOING,
            through - hitter.since + 1,
            _last_value(hitter),
            hitter.trend,
            hitter.threshold,
        )
        for hitter in current.hitters
    ]
    return sorted(found, key=lambda each: each.state is State.ONGOING)


def just_gone(steps: Iterable[ClosedStep], step_seconds: float) -> list[Standing]:
    """Items that have gone not long ago, the latest first."""
    values: dict[str, Value] = {}
    gone: dict[str, int] = {}
    through = 0
    for closed in steps:
        through = closed.step
        for result in closed.results:
            gone.pop(result.item, None)
            if value := Value.of(result, through, result.margin):
                values[result.item] = value
            if result.state is State.GONE:
                gone[result.item] = through
    shown = max(GONE_STEPS, math.ceil(GONE_SECONDS / step_seconds))
    return [
        Standing(item, State.GONE, through - step, values.get(item))
        for item, step in reversed(gone.items())
        if through - step < shown
    ]


def brief(seconds: float) -> str:
    """A length of time, in at most three digits if it is below three years."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size or seconds == size:
            return f"{round(seconds / size)}{unit}"
    return f"{seconds:.0f}s"


def _last_value(hitter: CurrentHitter) -> Value | None:
    if hitter.value is not None:
        return Value.of(hitter.value, hitter.value.step, hitter.margin)
    # A service of 0.1.0 names no last value: its records are reports.
    return Value.of(hitter, hitter.step, hitter.margin)
