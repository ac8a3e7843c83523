"""How often each user was charged in the current budget period."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Users


class Counters:
    """c(j) for every user with c(j) > 0, ten bytes each; a user at `limit` is exhausted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._users: Users = np.empty(0, dtype=np.uint64)
        self._charges: NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
        self._exhausted: Users = np.empty(0, dtype=np.uint64)

    def restore(self, users: Users, charges: NDArray[np.uint16]) -> None:
        """Restore saved counters: users in ascending order and their charges."""
        self._users, self._charges = users.copy(), charges.copy()
        self._exhausted = users[charges >= self._limit]

    def snapshot(self) -> tuple[Users, NDArray[np.uint16]]:
        """The users charged so far, in ascending order, and how often each."""
        return self._users, self._charges.copy()

    @property
    def charged(self) -> int:
        """How many users were charged at least once."""
        return len(self._users)

    @property
    def exhausted(self) -> int:
        """How many users have reached the limit."""
        return len(self._exhausted)

    def active(self, users: Users) -> NDArray[np.bool_]:
        """Which of these users still count. Fastest if they are sorted."""
        if not len(self._exhausted):
            return np.ones(len(users), dtype=np.bool_)
        return ~_contains(self._exhausted, users)

    def charges(self, users: Users) -> NDArray[np.uint16]:
        """How often each of these users was charged."""
        if not len(self._users):
            return np.zeros(len(users), dtype=np.uint16)
        places = np.minimum(np.searchsorted(self._users, users), len(self._users) - 1)
        return np.where(self._users[places] == users, self._charges[places], np.uint16(0))

    def charge(self, users: Users, charges: NDArray[np.uint16] | int = 1) -> None:
        """Add 1 or the given charges to each of these users: in ascending order, all active."""
        charges = np.broadcast_to(np.asarray(charges, dtype=np.uint16), users.shape)
        places = np.searchsorted(self._users, users)
        known = _contains(self._users, users)
        self._charges[places[known]] += charges[known]
        fresh = ~known
        self._users = np.insert(self._users, places[fresh], users[fresh])
        self._charges = np.insert(self._charges, places[fresh], charges[fresh])
        spent = users[self.charges(users) >= self._limit]
        self._exhausted = np.insert(self._exhausted, np.searchsorted(self._exhausted, spent), spent)


def _contains(ordered: Users, users: Users) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(users), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, users), len(ordered) - 1)
    return np.asarray(ordered[places] == users)
