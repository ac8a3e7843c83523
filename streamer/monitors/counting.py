"""Counting: what users hold, who still counts, the tally, and whom a decision charges.

Everything here is a function of events and decisions. It draws no random numbers, so after a
restart, or when it runs twice, counting gives the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.counters import Charges, Counters
from streamer.monitors.seam import Decision, Holdings, Item, Items, Tally
from streamer.privacy.prices import FULL


@dataclass(frozen=True, slots=True)
class Counted(Generic[Item]):
    """A counted step that waits for its decision. Only the tally is passed on to deciding."""

    holdings: Holdings[Item]
    active: NDArray[np.bool_]
    """Which pairs of a user and an item count."""
    users: int
    """How many users hold an item."""
    exhausted: int
    """How many of them no longer count."""
    tally: Tally[Item]


class Counting(Generic[Item]):
    """The counters of one budget period, and the steps that are counted with them."""

    def __init__(self, contributions: int = 1, items_per_step: int = 1) -> None:
        self.begin(contributions, items_per_step)

    def begin(self, contributions: int, items_per_step: int) -> None:
        """Start a budget period: nobody is charged yet. Each user has a budget of `contributions`
        full charges, and counts for up to `items_per_step` items in a step."""
        self.counters = Counters(contributions)
        self._items_per_step = items_per_step

    def count(self, step: int, holdings: Holdings[Item]) -> Counted[Item]:
        """The active holders of each item.

        Of a user's items no more count than it has full charges left, the first ones: if all of
        them are reported, the step costs no more than the budget that is left.
        """
        users = holdings.users
        active = self.counters.active(users)
        earlier = _earlier_items(holdings, self._items_per_step)
        first, later = earlier == 0, earlier > 0
        number = int(np.count_nonzero(first))
        exhausted = number - int(np.count_nonzero(active & first))
        if number < len(users):
            place = earlier[later]
            begins = np.flatnonzero(place == 1)
            affordable = self.counters.affordable(users[earlier == 1])
            active[later] = place < np.repeat(affordable, np.diff(begins, append=len(place)))
        items, holders = _holders(holdings.items[active])
        tally = Tally(step, items, holders, holdings.numbers)
        return Counted(holdings, active, number, exhausted, tally)

    def charge(self, counted: Counted[Item], decision: Decision) -> Charges:
        """Charge the active holders of every item that is reported or gone, and return what each
        is charged."""
        users, items = counted.holdings.users, counted.holdings.items
        price = np.zeros(items.max(initial=-1) + 1, dtype=np.uint16)
        held = decision.items < len(price)
        price[decision.items[held]] = decision.prices[held]
        price[decision.gone[decision.gone < len(price)]] = FULL
        prices = price[items]
        reported = np.flatnonzero((prices > 0) & counted.active)
        if not len(reported):
            return Charges.none()
        users, prices = users[reported], prices[reported]
        firsts = np.flatnonzero(np.append(True, users[1:] != users[:-1]))
        charges = Charges(users[firsts], np.add.reduceat(prices, firsts, dtype=np.uint16))
        self.counters.charge(charges)
        return charges


def _earlier_items(holdings: Holdings[Item], items_per_step: int) -> NDArray[np.uint16]:
    """For each pair, how many items of the same user stand before it.

    How much a user can change in a step depends on the form of the holdings, so it is checked
    here, for every caller.
    """
    users, items = holdings.users, holdings.items
    if not np.all(users[1:] >= users[:-1]):
        raise MonitorError("the users of a step must be in ascending order")
    earlier = np.zeros(len(users), dtype=np.uint16)
    for apart in range(1, len(users)):
        same = users[apart:] == users[:-apart]
        if not same.any():
            break
        if apart == items_per_step:
            raise MonitorError(
                f"a user holds more than {items_per_step} items in a step, which is the most "
                "that counts"
            )
        if np.any(same & (items[apart:] == items[:-apart])):
            raise MonitorError("a user holds the same item twice in a step")
        earlier[apart:] += same
    return earlier


def _holders(items: Items) -> tuple[Items, NDArray[np.int64]]:
    """The items that occur, in ascending order, and how often."""
    counts = np.bincount(items) if len(items) else np.empty(0, dtype=np.int64)
    held = np.flatnonzero(counts)
    return held, counts[held]
