"""What a simulated fleet sends in each step, in columns.

`simulate` is a pure function of the fleet: the same fleet sends the same records.
It keeps one state per user between steps, so a stream of any length fits into memory.
Events and transmission use separate random generators, so duplicates, delays, wrong clocks
and bad records change the stream of a seed but never its ground truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamer.fleet.bad_records import Kind
from streamer.fleet.catalogue import PERSONAL_ITEMS
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Events:
    """Columns of equal length, one row per record.

    `users` are numbers below the size of the fleet, `items` are numbers of its catalogue.
    `times` are the times in the records, `arrivals` when they arrive; both in milliseconds
    since 1970. `kinds` says which of them are valid events (see `Kind`).
    """

    users: _Numbers
    items: _Numbers
    times: _Numbers
    arrivals: _Numbers
    kinds: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def bad(self) -> int:
        """Number of records that are not valid events."""
        return int(np.count_nonzero(self.kinds != Kind.EVENT))

    def take(self, rows: _Numbers | slice) -> Self:
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
    happening, transmission = np.random.default_rng(fleet.seed).spawn(2)
    population, line = _Population(fleet, happening), _Line(fleet, transmission)
    for number in range(fleet.steps):
        step = fleet.first_step + number
        users, items, offsets = population.advance(number)
        yield FleetStep(step, line.transmit(users, items, offsets, fleet.step_start(step)))


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


class _Population:
    """Who is active, and who has which item."""

    def __init__(self, fleet: Fleet, rng: np.random.Generator) -> None:
        self._fleet, self._rng, self._catalogue = fleet, rng, fleet.catalogue()
        self._on = self._chance(fleet.users, fleet.active)
        # Leaving and joining balance at the wanted share; both are probabilities, at most 1.
        share = fleet.active
        self._going = min(1 / fleet.session, (1 - share) / share) if share else 1.0
        self._coming = self._going * share / (1 - share) if share < 1 else 1.0
        law = np.cumsum(np.arange(1, fleet.items + 1, dtype=np.float64) ** -fleet.exponent)
        self._law = law / law[-1]
        self._affected: dict[int, _Numbers] = {}
        self._reserved = np.zeros(fleet.users, dtype=bool)

    def advance(self, number: int) -> tuple[_Numbers, _Numbers, _Numbers]:
        """The events of step `number`: users, items, and milliseconds since its start."""
        fleet, rng = self._fleet, self._rng
        if number:
            moves = rng.random(fleet.users, dtype=np.float32)
            self._on = np.where(self._on, moves >= self._going, moves < self._coming)
        holders, held = self._outbreaks(number)
        self._on[holders] = True
        users = np.flatnonzero(self._on)
        items, offsets = self._draw_items(users), rng.integers(0, fleet.step_ms, len(users))
        rows = np.searchsorted(users, holders)
        items[rows] = held
        # Leaves room before them, so that an earlier item of the user never ties with it.
        offsets[rows] = np.maximum(offsets[rows], 1)
        again = np.flatnonzero(self._chance(len(users), fleet.earlier))
        others = self._draw_items(users[again])
        others = np.where(others == items[again], (others + 1) % fleet.items, others)
        before = (rng.random(len(again)) * offsets[again]).astype(np.int64)
        return (
            np.concatenate((users, users[again])),
            np.concatenate((items, others)),
            np.concatenate((offsets, before)),
        )

    def _outbreaks(self, number: int) -> tuple[_Numbers, _Numbers]:
        """The users affected by outbreaks in this step, and the item of each."""
        holders, items = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        running = list(enumerate(self._fleet.outbreaks))
        for place, outbreak in running:
            if outbreak.end == number:
                self._reserved[self._affected.pop(place)] = False
        for place, outbreak in running:
            if outbreak.start == number:
                self._affected[place] = self._choose(outbreak)
            if size := outbreak.holders(number):
                holders.append(self._affected[place][:size])
                items.append(np.full(size, self._catalogue.outbreak(outbreak.item)))
        return np.concatenate(holders), np.concatenate(items)

    def _choose(self, outbreak: Outbreak) -> _Numbers:
        """As many users as the outbreak has at its peak, currently active users first."""
        free = self._rng.permutation(np.flatnonzero(~self._reserved))
        active_first = free[np.argsort(~self._on[free], kind="stable")]
        chosen = active_first[: outbreak.size]
        self._reserved[chosen] = True
        return chosen

    def _draw_items(self, users: _Numbers) -> _Numbers:
        """An item for each of these users: a personal one or a background one."""
        own = self._chance(len(users), self._fleet.personal)
        background = np.searchsorted(self._law, self._rng.random(len(users)), side="right")
        pages = self._rng.integers(0, PERSONAL_ITEMS, len(users))
        personal = self._catalogue.shared + users * PERSONAL_ITEMS + pages
        return np.where(own, personal, background)

    def _chance(self, size: int, share: float) -> NDArray[np.bool_]:
        return self._rng.random(size, dtype=np.float32) < share


class _Line:
    """The transmission: some events arrive twice, some late, some broken."""

    def __init__(self, fleet: Fleet, rng: np.random.Generator) -> None:
        self._fleet, self._rng = fleet, rng
        ahead = rng.integers(-fleet.skew_ms, fleet.skew_ms + 1, fleet.users, dtype=np.int32)
        ahead[rng.random(fleet.users, dtype=np.float32) >= fleet.skewed] = 0
        self._ahead = ahead

    def transmit(self, users: _Numbers, items: _Numbers, offsets: _Numbers, start: int) -> Events:
        """The records that arrive for the events of a step."""
        times = start + offsets
        arrivals = times - self._ahead[users]
        delayed = self._some(len(users), self._fleet.delayed)
        arrivals[delayed] += self._delays(len(delayed))
        kinds = np.full(len(users), Kind.EVENT, dtype=np.uint8)
        events = Events(users, items, times, arrivals, kinds)
        again = events.take(self._some(len(users), self._fleet.duplicates))
        again.arrivals[:] += self._delays(len(again))
        return events.followed_by(again).followed_by(self._bad_records(events, start))

    def _bad_records(self, events: Events, start: int) -> Events:
        """With users, items and times that would change the counts if they were accepted."""
        items = events.items[self._some(len(events), self._fleet.bad)]
        users = self._rng.integers(0, self._fleet.users, len(items))
        times = start + self._rng.integers(0, self._fleet.step_ms, len(items))
        kinds = self._rng.integers(1, len(Kind), len(items), dtype=np.uint8)
        return Events(users, items, times, times, kinds)

    def _some(self, size: int, share: float) -> _Numbers:
        return np.flatnonzero(self._rng.random(size, dtype=np.float32) < share)

    def _delays(self, size: int) -> _Numbers:
        return self._rng.integers(0, self._fleet.delay_ms + 1, size)
