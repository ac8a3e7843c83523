"""The events of one open step, as columns: twenty bytes per event, plus the item names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Holdings, Numbers, Users

_FIRST_ROOM, _LARGEST_ROOM = 64, 1 << 16


class _Block:
    """Room for some events. A full buffer gets another block, so growing never copies."""

    def __init__(self, room: int) -> None:
        self.users: Users = np.empty(room, dtype=np.uint64)
        self.items: NDArray[np.uint32] = np.empty(room, dtype=np.uint32)
        self.times: NDArray[np.int64] = np.empty(room, dtype=np.int64)


class StepBuffer:
    """Collects events. The result depends on the events only, not on their order."""

    def __init__(self) -> None:
        self._blocks = [_Block(_FIRST_ROOM)]
        self._room = _FIRST_ROOM
        """How many more events fit into the last block."""
        self._size = 0
        self._numbers: Numbers[str] = Numbers()

    def __len__(self) -> int:
        return self._size

    def add(self, users: Users, names: Sequence[str], times: NDArray[np.int64]) -> None:
        """Add events, given by user, item and event time."""
        items = np.fromiter(map(self._numbers.__getitem__, names), np.uint32, len(names))
        start = 0
        while start < len(users):
            if not self._room:
                self._room = min(self._size, _LARGEST_ROOM)
                self._blocks.append(_Block(self._room))
            block, number = self._blocks[-1], min(self._room, len(users) - start)
            place = len(block.users) - self._room
            there, here = slice(place, place + number), slice(start, start + number)
            block.users[there] = users[here]
            block.items[there] = items[here]
            block.times[there] = times[here]
            self._room -= number
            self._size += number
            start += number

    def holdings(self) -> Holdings[str]:
        """One item per user: that of the latest event; ties go to the item that sorts last."""
        users, items = self._users, self._items
        order = np.argsort(users)
        ordered = users[order]
        repeated = ordered[1:] == ordered[:-1]
        if repeated.any():
            order = self._last_of_each(order, repeated)
            ordered = users[order]
        return Holdings(ordered, items[order].astype(np.int64), self._numbers)

    @property
    def _users(self) -> Users:
        return np.concatenate([block.users for block in self._blocks])[: self._size]

    @property
    def _items(self) -> NDArray[np.uint32]:
        return np.concatenate([block.items for block in self._blocks])[: self._size]

    @property
    def _times(self) -> NDArray[np.int64]:
        return np.concatenate([block.times for block in self._blocks])[: self._size]

    def _last_of_each(
        self, order: NDArray[np.int64], repeated: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """From events ordered by user, keep the one event per user that counts.

        Most users have a single event. Everything but the last lines handles the others.
        """
        first = np.append(True, ~repeated)
        several = np.flatnonzero(~first | np.append(repeated, False))
        events, first = order[several], first[several]
        times = self._times[events]
        group = np.cumsum(first) - 1
        latest = times == np.maximum.reduceat(times, np.flatnonzero(first))[group]
        rivals, group = several[latest], group[latest]
        tied = group[1:] == group[:-1]
        if tied.any():
            # The items' texts decide only between events of the same user and time.
            shared = np.append(tied, False) | np.append(False, tied)
            ranks = np.zeros(len(rivals), dtype=np.int64)
            ranks[shared] = self._ranks(self._items[order[rivals[shared]]])
            rivals = rivals[np.lexsort((ranks, group))]
        keep = np.ones(len(order), dtype=np.bool_)
        keep[several] = False
        keep[rivals[np.append(~tied, True)]] = True
        return order[keep]

    def _ranks(self, items: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The rank of these items by text, because their numbers depend on the order of arrival."""
        distinct, inverse = np.unique(items, return_inverse=True)
        names = list(self._numbers)
        by_text = sorted(range(len(distinct)), key=lambda place: names[distinct[place]])
        ranks = np.empty(len(distinct), dtype=np.int64)
        ranks[by_text] = np.arange(len(distinct))
        return ranks[inverse]
