"""Events of a fleet, as columns and as JSON; and how many users hold each item in truth.

A share of the events is about a few heavy items, so that every step has something to
report; the others are spread evenly over all items.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
STEP_MS = 60_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Events: users and items by number, times in milliseconds since 1970."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    times: NDArray[np.int64]

    def part(self, rows: slice) -> "Columns":
        return Columns(self.users[rows], self.items[rows], self.times[rows])


@dataclass(frozen=True)
class Workload:
    """So many events over steps of a minute, in the order of their times."""

    events: int
    users: int
    items: int
    per_step: int = 100_000
    heavy_items: int = 5
    heavy_share: float = 0.1
    first_step: int = 0

    @property
    def steps(self) -> int:
        return -(-self.events // self.per_step)

    @property
    def last_step(self) -> int:
        return self.first_step + self.steps - 1

    @cached_property
    def columns(self) -> Columns:
        generator = np.random.default_rng(1)
        users = generator.integers(0, self.users, self.events)
        items = generator.integers(0, self.items, self.events)
        heavy = generator.random(self.events) < self.heavy_share
        items[heavy] = generator.integers(0, self.heavy_items, int(heavy.sum()))
        times = np.arange(self.events) * STEP_MS // self.per_step
        times += START + self.first_step * STEP_MS
        return Columns(users, items, times)

    def truth(self, items_per_step: int) -> dict[tuple[int, str], int]:
        """The number of users by step and item: up to so many different items of a user count
        in a step, the latest ones; of those of one moment, the greater texts."""
        columns = self.columns
        steps = (columns.times - START) // STEP_MS
        _, ranks = np.unique([name_of(item) for item in range(self.items)], return_inverse=True)
        order = np.lexsort((ranks[columns.items], columns.times, columns.users, steps))[::-1]
        holders = (steps * self.users + columns.users)[order]
        _, latest = np.unique(holders * self.items + columns.items[order], return_index=True)
        latest.sort()
        holders, items, steps = holders[latest], columns.items[order[latest]], steps[order[latest]]
        begins = np.flatnonzero(np.append(True, holders[1:] != holders[:-1]))
        place = np.arange(len(holders)) - np.repeat(begins, np.diff(begins, append=len(holders)))
        counted = place < items_per_step
        held = steps[counted] * self.items + items[counted]
        numbers, counts = np.unique(held, return_counts=True)
        return {
            (number // self.items, name_of(number % self.items)): count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        }


def name_of(item: int) -> str:
    return f"crash:NPE:Screen{item}.java:42"


def render(columns: Columns) -> list[bytes]:
    """Events as JSON, with times to the millisecond."""
    times = np.datetime_as_string(columns.times.astype("datetime64[ms]"), unit="ms")
    rows = zip(columns.users.tolist(), columns.items.tolist(), times.tolist(), strict=True)
    return [
        f'{{"user":"u-{user}","item":"crash:NPE:Screen{item}.java:42","time":"{time}Z"}}'.encode()
        for user, item, time in rows
    ]
