"""What a simulated fleet sends in each step, in columns.

`simulate` is a pure function of the fleet: the same fleet sends the same records. What its
users do is in `population.py`; here it is transmitted, twice, late or broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamer.fleet.bad_records import Kind
from streamer.fleet.fleet import Fleet
from streamer.fleet.population import Activity, Numbers, activities


@dataclass(frozen=True, slots=True)
class Events:
    """Columns of equal length, one row per record.

    `users` are numbers below the size of the fleet, `items` are numbers of its catalogue.
    `times` are the times in the records, `arrivals` when they arrive; both in milliseconds
    since 1970. `kinds` says which of them are valid events (see `Kind`).
    """

    users: Numbers
    items: Numbers
    times: Numbers
    arrivals: Numbers
    kinds: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def bad(self) -> int:
        """Number of records that are not valid events."""
        return int(np.count_nonzero(self.kinds != Kind.EVENT))

    def take(self, rows: Numbers | slice) -> Self:
        return type(self)(*(column[rows] for column in self._columns()))

    def followed_by(self, others: Self) -> Self:
        pairs = zip(self._columns(), others._columns(), strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.users, self.items, self.times, self.arrivals, self.kinds


@dataclass(frozen=True, slots=True)
class FleetStep:
    """All records whose time is in `step` (counted from 1970), in no particular order."""

    step: int
    events: Events


def simulate(fleet: Fleet) -> Iterator[FleetStep]:
    """What the fleet sends, step by step."""
    line = _Line(fleet)
    for activity in activities(fleet):
        yield FleetStep(activity.step, line.transmit(activity))


def in_arrival_order(fleet: Fleet, steps: Iterable[FleetStep]) -> Iterator[Events]:
    """The records of consecutive steps, sorted by arrival.

    Holds back only records that a record of a later step can still precede: events of a
    fast clock arrive before their own time.
    """
    fastest = fleet.skew_ms if fleet.skewed else 0
    waiting: Events | None = None
    for happened in steps:
        waiting = happened.events if waiting is None else waiting.followed_by(happened.events)
        # The waiting records are sorted already, which makes a stable sort fast.
        waiting = waiting.take(np.argsort(waiting.arrivals, kind="stable"))
        horizon = fleet.step_start(happened.step + 1) - fastest
        ready = int(np.searchsorted(waiting.arrivals, horizon))
        yield waiting.take(slice(None, ready))
        waiting = waiting.take(slice(ready, None))
    if waiting is not None:
        yield waiting


class _Line:
    """The transmission: some events arrive twice, some late, some broken."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        _, self._rng = fleet.generators()
        ahead = self._rng.integers(-fleet.skew_ms, fleet.skew_ms + 1, fleet.users, dtype=np.int32)
        ahead[self._rng.random(fleet.users, dtype=np.float32) >= fleet.skewed] = 0
        self._ahead = ahead

    def transmit(self, activity: Activity) -> Events:
        """The records that arrive for the events of a step."""
        users, times = activity.users, activity.times
        arrivals = times - self._ahead[users]
        delayed = self._some(len(users), self._fleet.delayed)
        arrivals[delayed] += self._delays(len(delayed))
        kinds = np.full(len(users), Kind.EVENT, dtype=np.uint8)
        events = Events(users, activity.items, times, arrivals, kinds)
        again = events.take(self._some(len(users), self._fleet.duplicates))
        again.arrivals[:] += self._delays(len(again))
        return events.followed_by(again).followed_by(self._bad_records(events, activity.step))

    def _bad_records(self, events: Events, step: int) -> Events:
        """With users, items and times that would change the counts if they were accepted."""
        items = events.items[self._some(len(events), self._fleet.bad)]
        users = self._rng.integers(0, self._fleet.users, len(items))
        start = self._fleet.step_start(step)
        times = start + self._rng.integers(0, self._fleet.step_ms, len(items))
        kinds = self._rng.integers(1, len(Kind), len(items), dtype=np.uint8)
        return Events(users, items, times, times, kinds)

    def _some(self, size: int, share: float) -> Numbers:
        return np.flatnonzero(self._rng.random(size, dtype=np.float32) < share)

    def _delays(self, size: int) -> Numbers:
        return self._rng.integers(0, self._fleet.delay_ms + 1, size)
