"""The events of one open step, as columns: twenty bytes per event, plus the item names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Holdings, Numbers, Users

_Items = NDArray[np.uint32]
_FIRST_ROOM, _LARGEST_ROOM = 64, 1 << 16
_FEW = 16
"""With up to this many events of each user, looking back one by one is faster than a sort."""


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

    def holdings(self, items_per_step: int, only: Iterable[str] | None = None) -> Holdings[str]:
        """Up to this many items per user, the latest first; `only`: from among these items.

        An item is as late as its latest event. Of items that are equally late, the one that sorts
        last goes first.
        """
        users, items = self._users, self._items
        if only is None:
            order = np.argsort(users)
        else:
            wanted = [self._numbers[item] for item in only if item in self._numbers]
            events = np.flatnonzero(np.isin(items, wanted))
            order = events[np.argsort(users[events])]
        users, items = users[order], items[order]
        repeated = users[1:] == users[:-1]
        if repeated.any():
            kept = self._put_latest_first(order, items, repeated, items_per_step)
            users, items = users[kept], items[kept]
        return Holdings(users, items.astype(np.int64), self._numbers)

    @property
    def _users(self) -> Users:
        return np.concatenate([block.users for block in self._blocks])[: self._size]

    @property
    def _items(self) -> NDArray[np.uint32]:
        return np.concatenate([block.items for block in self._blocks])[: self._size]

    @property
    def _times(self) -> NDArray[np.int64]:
        return np.concatenate([block.times for block in self._blocks])[: self._size]

    def _put_latest_first(
        self, order: NDArray[np.int64], items: _Items, repeated: NDArray[np.bool_], most: int
    ) -> NDArray[np.bool_]:
        """Put the items of each user in their order, and return which of them count.

        `items`: of events ordered by user. Most users hold one item, however many events they
        have. Only the others' events are looked at.
        """
        kept = np.append(True, ~repeated)
        differs = np.append(False, repeated & (items[1:] != items[:-1]))
        if not differs.any():
            return kept
        mixed = np.append(repeated, False) | ~kept
        begins = np.flatnonzero(kept[mixed])
        number = np.diff(begins, append=np.count_nonzero(mixed))
        several = np.logical_or.reduceat(differs[mixed], begins)
        mixed[mixed] = np.repeat(several, number)
        chosen = slice(None) if mixed.all() else mixed  # a slice copies nothing
        times = self._times[order[chosen]]
        items[chosen], kept[chosen] = self._latest(items[chosen], times, number[several], most)
        return kept

    def _latest(
        self, items: _Items, times: NDArray[np.int64], number: NDArray[np.int64], most: int
    ) -> tuple[_Items, NDArray[np.bool_]]:
        """The items of users who have these numbers of events, the latest first, and which count:
        up to `most` different ones of each.

        Sorts are stable because these are the fastest where most is in order already.
        """
        user = np.repeat(np.arange(len(number)), number)
        # A step has less than 2**35 milliseconds, so there is room for 2**28 users.
        key = user * (np.ptp(times) + 1)
        key -= times
        order = np.argsort(key, kind="stable")
        key, items = key[order], items[order]
        tied = key[1:] == key[:-1]
        if tied.any():
            # The items' texts decide only between events of the same user and time.
            shared = np.append(tied, False) | np.append(False, tied)
            rivals = items[shared]
            items[shared] = rivals[np.lexsort((-self._ranks(rivals), key[shared]))]
        counts = ~_seen_before(user, items, number.max())
        if number.max() > most:
            different = np.cumsum(counts)
            before = different[np.cumsum(number) - number] - 1
            counts &= different - np.repeat(before, number) <= most
        return items, counts

    def _ranks(self, items: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The rank of these items by text, because their numbers depend on the order of arrival."""
        distinct, inverse = np.unique(items, return_inverse=True)
        names = list(self._numbers)
        by_text = sorted(range(len(distinct)), key=lambda place: names[distinct[place]])
        ranks = np.empty(len(distinct), dtype=np.int64)
        ranks[by_text] = np.arange(len(distinct))
        return ranks[inverse]


def _seen_before(user: NDArray[np.int64], items: _Items, longest: int) -> NDArray[np.bool_]:
    """Which events are of an item that an event of the same user is of before. Users are in
    ascending order, and none has more than `longest` events."""
    seen = np.zeros(len(items), dtype=np.bool_)
    if longest <= _FEW:
        for apart in range(1, longest):
            same = user[apart:] == user[:-apart]
            seen[apart:] |= same & (items[apart:] == items[:-apart])
    else:
        pairs = user << 32 | items
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        seen[order[1:][pairs[1:] == pairs[:-1]]] = True
    return seen
