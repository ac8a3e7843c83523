"""The events of one open step, as columns: twenty bytes an event and the names of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.counters import Users
from streamer.monitors.heavy_hitters import Items

_FIRST_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class StepContents:
    """What each user holds in a step: users in rising order, each once.

    Items are numbered in the order in which they were first seen; `numbers` says how.
    """

    users: Users
    items: Items
    numbers: dict[str, int]


class StepBuffer:
    """Collects events in any order; what comes out depends on the events alone."""

    def __init__(self) -> None:
        self._users: Users = np.empty(_FIRST_CAPACITY, dtype=np.uint64)
        self._items: NDArray[np.uint32] = np.empty(_FIRST_CAPACITY, dtype=np.uint32)
        self._times: NDArray[np.int64] = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self._size = 0
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return self._size

    def add(self, users: Users, names: Sequence[str], times: NDArray[np.int64]) -> None:
        """Events by user, item and event time."""
        start, end = self._size, self._size + len(users)
        if end > len(self._users):
            self._grow(end)
        numbers = self._numbers
        self._users[start:end] = users
        self._items[start:end] = [numbers.setdefault(name, len(numbers)) for name in names]
        self._times[start:end] = times
        self._size = end

    def contents(self) -> StepContents:
        """One item a user: that of the latest event time, the greater text among equals."""
        users = self._users[: self._size]
        order = np.argsort(users)
        users = users[order]
        repeated = users[1:] == users[:-1]
        if repeated.any():
            order = self._last_of_each(order, repeated)
            users = self._users[order]
        return StepContents(users, self._items[order].astype(np.int64), self._numbers)

    def _last_of_each(
        self, order: NDArray[np.int64], repeated: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """From events ordered by user, keep the one that counts of each user."""
        firsts = np.flatnonzero(np.append(True, ~repeated))
        group = np.cumsum(np.append(0, ~repeated))
        times = self._times[order]
        latest = np.maximum.reduceat(times, firsts)
        rivals, group = order[times == latest[group]], group[times == latest[group]]
        tied = group[1:] == group[:-1]
        if tied.any():
            # Only among events of one user and one moment the items' texts decide.
            shared = np.append(tied, False) | np.append(False, tied)
            ranks = np.zeros(len(rivals), dtype=np.int64)
            ranks[shared] = self._ranks(self._items[rivals[shared]])
            by_rank = np.lexsort((ranks, group))
            rivals = rivals[by_rank]
        return np.asarray(rivals[np.append(~tied, True)])

    def _ranks(self, items: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The order of these items by their text: numbers depend on who came first."""
        distinct, inverse = np.unique(items, return_inverse=True)
        names = list(self._numbers)
        by_text = sorted(range(len(distinct)), key=lambda place: names[distinct[place]])
        ranks = np.empty(len(distinct), dtype=np.int64)
        ranks[by_text] = np.arange(len(distinct))
        return ranks[inverse]

    def _grow(self, size: int) -> None:
        capacity = max(size, len(self._users) * 3 // 2)
        self._users = _larger(self._users, self._size, capacity)
        self._items = _larger(self._items, self._size, capacity)
        self._times = _larger(self._times, self._size, capacity)


Number = TypeVar("Number", bound=np.generic)


def _larger(column: NDArray[Number], size: int, capacity: int) -> NDArray[Number]:
    grown = np.empty(capacity, dtype=column.dtype)
    grown[:size] = column[:size]
    return grown
