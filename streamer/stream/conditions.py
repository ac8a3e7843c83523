"""Which events should count at all: conditions on single fields, without expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from streamer.stream.paths import Place


class Test(Protocol):
    def __call__(self, value: object) -> bool:
        """Whether a value (None if it is not there) is wanted."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these. A number never equals a boolean or a text."""

    values: tuple[str | int | float | bool, ...]

    def __call__(self, value: object) -> bool:
        return any(
            value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
            for wanted in self.values
        )


@dataclass(frozen=True, slots=True)
class InRange:
    """The value is a number from `least` to `most`, both included."""

    least: float | None
    most: float | None

    def __call__(self, value: object) -> bool:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
        )


@dataclass(frozen=True, slots=True)
class Exists:
    """The value is there, whatever it is; or it is not."""

    wanted: bool

    def __call__(self, value: object) -> bool:
        return (value is not None) == self.wanted


@dataclass(frozen=True, slots=True)
class Condition:
    place: Place
    test: Test

    def holds(self, values: list[object]) -> list[bool]:
        return list(map(self.test, values))
