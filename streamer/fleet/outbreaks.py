"""Outbreaks in a simulated fleet: which item, how many users, from when, for how long.

Steps are counted from the first simulated one. The shape alone determines the number of
users in each step, so tests know it without running a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from streamer.errors import SettingError
from streamer.fleet.item_option import check_item, split_item

MOST_PLANNED = 100

_PLANNED_ITEMS = (
    "crash:OutOfMemoryError:Feed.kt:{}",
    "error:HTTP-502:/api/checkout/{}",
    "error:TLS-handshake:edge-{}",
    "version:rollback-{}",
)


class Shape(StrEnum):
    """How the number of users changes during an outbreak."""

    FLAT = "flat"
    """All users in every step."""
    RAMP = "ramp"
    """Linear growth, to all users in the last step."""
    SPIKE = "spike"
    """All users in the first step, then a decline that slows down."""


_FORM = f"use ITEM,SIZE,START,LENGTH[,SHAPE], with SHAPE one of {', '.join(Shape)}"


@dataclass(frozen=True, slots=True)
class Outbreak:
    """`size` users have `item` from step `start` for `length` steps, following `shape`."""

    item: str
    size: int
    start: int
    length: int
    shape: Shape = Shape.FLAT

    def __post_init__(self) -> None:
        check_item("outbreak", self.item)
        for name, value, least in (
            ("size", self.size, 1),
            ("start", self.start, 0),
            ("length", self.length, 1),
        ):
            if value < least:
                raise SettingError("outbreak", self.item, f"its {name} must be at least {least}")

    @property
    def end(self) -> int:
        """The first step after it."""
        return self.start + self.length

    def holders(self, step: int) -> int:
        """Number of users who have the item in this step; at least one while it lasts."""
        age = step - self.start
        if not 0 <= age < self.length:
            return 0
        if self.shape is Shape.RAMP:
            return _ceil_ratio(self.size * (age + 1), self.length)
        if self.shape is Shape.SPIKE:
            return _ceil_ratio(self.size * (self.length - age) ** 2, self.length**2)
        return self.size


def parse_outbreak(text: str) -> Outbreak:
    """Parse ITEM,SIZE,START,LENGTH[,SHAPE]; the item may contain commas."""
    before, _, last = text.rpartition(",")
    shape = Shape(last.strip()) if last.strip() in tuple(Shape) else None
    split = split_item(text if shape is None else before, 3)
    if split is None:
        raise SettingError("outbreak", text, _FORM)
    item, (size, start, length) = split
    return Outbreak(item, size, start, length, shape or Shape.FLAT)


def plan_outbreaks(
    number: int, users: int, steps: int, seed: int, others: Iterable[Outbreak] = ()
) -> tuple[Outbreak, ...]:
    """Up to `number` outbreaks of 1% to 10% of the users, generated from the seed.

    An outbreak is skipped if the concurrent ones, including `others`, leave no free user.
    """
    if not 0 <= number <= MOST_PLANNED:
        raise SettingError(
            "outbreaks", number, f"it must be a whole number from 0 to {MOST_PLANNED}"
        )
    rng = np.random.default_rng((seed, number))
    taken = list(others)
    planned = []
    for place in range(number):
        start = int(rng.integers(steps))
        length = max(1, round(steps * rng.uniform(0.1, 0.4)))
        wanted = max(1, round(users * 0.01 * 10 ** rng.random()))
        shape = tuple(Shape)[rng.integers(len(Shape))]
        size = min(wanted, users - holders_at_once(taken, start, start + length))
        if size < 1:
            continue
        item = _PLANNED_ITEMS[place % len(_PLANNED_ITEMS)].format(place + 1)
        planned.append(Outbreak(item, size, start, length, shape))
        taken.append(planned[-1])
    return tuple(planned)


def holders_at_once(outbreaks: Iterable[Outbreak], first: int, end: int) -> int:
    """The largest number of users these outbreaks need in one step from `first` to before `end`."""
    running = [one for one in outbreaks if one.start < end and first < one.end]
    moments = {max(first, one.start) for one in running}
    return max(
        (sum(one.size for one in running if one.start <= now < one.end) for now in moments),
        default=0,
    )


def _ceil_ratio(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
