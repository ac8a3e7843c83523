"""What the users of a simulated fleet do in each step: who is active, and who has which item.

A pure function of the fleet. Transmission comes after it, with a random generator of its own:
duplicates, delays, wrong clocks and bad records never change what the users did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.fleet.catalogue import PERSONAL_ITEMS
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak

Numbers = NDArray[np.int64]

_NONE = -1
"""In place of the number of an item."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The events of a step (counted from 1970), in columns of equal length.

    `users` are numbers below the size of the fleet, `items` are numbers of its catalogue: a user
    with several items, all of them different, has as many rows. `times` are in milliseconds
    since 1970.
    """

    step: int
    users: Numbers
    items: Numbers
    times: Numbers


def activities(fleet: Fleet) -> Iterator[Activity]:
    """What the users do, step by step."""
    population = _Population(fleet)
    for number in range(fleet.steps):
        yield population.advance(number)


class _Population:
    """One state per user is kept between steps, so a stream of any length fits into memory."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._catalogue = fleet, fleet.catalogue()
        self._rng, _ = fleet.generators()
        self._on = self._chance(fleet.users, fleet.active)
        # Leaving and joining balance at the wanted share; both are probabilities, at most 1.
        share = fleet.active
        self._going = min(1 / fleet.session, (1 - share) / share) if share else 1.0
        self._coming = self._going * share / (1 - share) if share < 1 else 1.0
        law = np.cumsum(np.arange(1, fleet.items + 1, dtype=np.float64) ** -fleet.exponent)
        self._law = law / law[-1]
        self._affected: dict[int, Numbers] = {}
        self._reserved = np.zeros(fleet.users, dtype=bool)
        self._lasting = self._choose_lasting()

    def advance(self, number: int) -> Activity:
        """The events of step `number`, counted from the first one."""
        fleet, rng = self._fleet, self._rng
        if number:
            moves = rng.random(fleet.users, dtype=np.float32)
            self._on = np.where(self._on, moves >= self._going, moves < self._coming)
        holders, held = self._outbreaks(number)
        self._on[holders] = True
        users = np.flatnonzero(self._on | (self._lasting != _NONE))
        lasting, affected = self._lasting[users], np.searchsorted(users, holders)
        free = np.flatnonzero(lasting == _NONE)
        items = lasting.copy()
        items[free] = self._draw_items(users[free])
        items[affected] = held
        offsets = rng.integers(0, fleet.step_ms, len(users))
        # Leaves room before named items, so that an earlier one of the user never ties with them.
        named = lasting != _NONE
        named[affected] = True
        np.maximum(offsets, 1, out=offsets, where=named)
        again = np.flatnonzero(self._chance(len(users), fleet.earlier))
        others = self._draw_items(users[again])
        others = np.where(others == items[again], (others + 1) % fleet.items, others)
        # Users with a lasting item whom an outbreak affects have the lasting one earlier.
        both = affected[lasting[affected] != _NONE]
        again, others = np.concatenate((again, both)), np.concatenate((others, lasting[both]))
        before = (rng.random(len(again)) * offsets[again]).astype(np.int64)
        step = fleet.first_step + number
        return Activity(
            step,
            np.concatenate((users, users[again])),
            np.concatenate((items, others)),
            fleet.step_start(step) + np.concatenate((offsets, before)),
        )

    def _outbreaks(self, number: int) -> tuple[Numbers, Numbers]:
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
                items.append(np.full(size, self._catalogue.number(outbreak.item)))
        return np.concatenate(holders), np.concatenate(items)

    def _choose(self, outbreak: Outbreak) -> Numbers:
        """As many users as the outbreak has at its peak, currently active users first."""
        free = self._rng.permutation(np.flatnonzero(~self._reserved))
        active_first = free[np.argsort(~self._on[free], kind="stable")]
        chosen = active_first[: outbreak.size]
        self._reserved[chosen] = True
        return chosen

    def _choose_lasting(self) -> Numbers:
        """The lasting item of each user, or none."""
        lasting = np.full(self._fleet.users, _NONE)
        if self._fleet.lasting:
            numbers = [self._catalogue.number(one.item) for one in self._fleet.lasting]
            items = np.repeat(numbers, [one.size for one in self._fleet.lasting])
            lasting[: len(items)] = items
            self._rng.shuffle(lasting)
        return lasting

    def _draw_items(self, users: Numbers) -> Numbers:
        """An item for each of these users: a personal one or a background one."""
        own = self._chance(len(users), self._fleet.personal)
        background = np.searchsorted(self._law, self._rng.random(len(users)), side="right")
        pages = self._rng.integers(0, PERSONAL_ITEMS, len(users))
        personal = self._catalogue.shared + users * PERSONAL_ITEMS + pages
        return np.where(own, personal, background)

    def _chance(self, size: int, share: float) -> NDArray[np.bool_]:
        return self._rng.random(size, dtype=np.float32) < share
