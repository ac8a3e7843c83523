"""What each user was charged in the current budget period, in units of `privacy.prices`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Units, Users
from streamer.privacy.prices import FULL


@dataclass(frozen=True, slots=True)
class Charges:
    """Users in ascending order, each once, and the units that each is or was charged."""

    users: Users
    units: Units

    @classmethod
    def none(cls) -> Charges:
        return cls(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint16))

    @classmethod
    def full(cls, users: Users) -> Charges:
        """A full charge for each of these users."""
        return cls(users, np.full(len(users), FULL, dtype=np.uint16))

    def __len__(self) -> int:
        """How many users are charged."""
        return len(self.users)

    @property
    def total(self) -> int:
        """The units of all users together."""
        return int(self.units.sum(dtype=np.int64))


class Counters:
    """The units of every user who was charged, ten bytes each.

    A user's budget is `contributions` full charges. A user with less than a full charge left is
    exhausted: whatever a report may cost, it must fit into the budget.
    """

    def __init__(self, contributions: int) -> None:
        self._budget = contributions * FULL
        self._users: Users = np.empty(0, dtype=np.uint64)
        self._units: Units = np.empty(0, dtype=np.uint16)
        self._exhausted: Users = np.empty(0, dtype=np.uint64)

    def restore(self, charges: Charges) -> None:
        """Restore saved counters."""
        self._users, self._units = charges.users.copy(), charges.units.copy()
        self._exhausted = self._users[self._spent(self._units)]

    def snapshot(self) -> Charges:
        """The users charged so far, and the units of each."""
        return Charges(self._users, self._units.copy())

    @property
    def charged(self) -> int:
        """How many users were charged at least once."""
        return len(self._users)

    @property
    def exhausted(self) -> int:
        """How many users no longer count."""
        return len(self._exhausted)

    def active(self, users: Users) -> NDArray[np.bool_]:
        """Which of these users still count. Fastest if they are sorted."""
        if not len(self._exhausted):
            return np.ones(len(users), dtype=np.bool_)
        return ~_find(self._exhausted, users)[1]

    def affordable(self, users: Users) -> NDArray[np.int32]:
        """How many full charges each of these users has left."""
        return (self._budget - self.units(users).astype(np.int32)) // FULL

    def units(self, users: Users) -> Units:
        """The units that each of these users was charged."""
        places, known = _find(self._users, users)
        units = np.zeros(len(users), dtype=np.uint16)
        units[known] = self._units[places[known]]
        return units

    def charge(self, charges: Charges) -> None:
        """Charge users who can afford it."""
        users, units = charges.users, charges.units.copy()
        places, known = _find(self._users, users)
        units[known] += self._units[places[known]]
        self._units[places[known]] = units[known]
        fresh = ~known
        self._users = np.insert(self._users, places[fresh], users[fresh])
        self._units = np.insert(self._units, places[fresh], units[fresh])
        spent = users[self._spent(units)]
        self._exhausted = np.insert(self._exhausted, np.searchsorted(self._exhausted, spent), spent)

    def _spent(self, units: Units) -> NDArray[np.bool_]:
        return units > self._budget - FULL


def _find(ordered: Users, users: Users) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of these users is or belongs among the others, and whether it is there."""
    places = np.searchsorted(ordered, users)
    if not len(ordered):
        return places, np.zeros(len(users), dtype=np.bool_)
    return places, ordered[np.minimum(places, len(ordered) - 1)] == users
