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
from streamer.monitors.counters import Counters
from streamer.monitors.seam import Decision, Holdings, Item, Items, Tally, Users


@dataclass(frozen=True, slots=True)
class Counted(Generic[Item]):
    """A counted step that waits for its decision. Only the tally is passed on to deciding."""

    holdings: Holdings[Item]
    active: NDArray[np.bool_]
    """Which of the users still count."""
    tally: Tally[Item]

    @property
    def exhausted(self) -> int:
        """How many users hold an item but no longer count."""
        return len(self.active) - int(np.count_nonzero(self.active))


class Counting(Generic[Item]):
    """The counters of one budget period, and the steps that are counted with them."""

    def __init__(self, contributions: int = 1) -> None:
        self.begin(contributions)

    def begin(self, contributions: int) -> None:
        """Start a budget period: nobody is charged yet, each user at most `contributions` times."""
        self.counters = Counters(contributions)

    def count(self, step: int, holdings: Holdings[Item]) -> Counted[Item]:
        """The active holders of each item.

        A user counts once per step. The sensitivity of 1 depends on this, so it is checked here,
        for every caller.
        """
        users = holdings.users
        if not np.all(users[1:] > users[:-1]):
            raise MonitorError("the users of a step must be in ascending order, each once")
        active = self.counters.active(users)
        items, holders = _holders(holdings.items[active])
        return Counted(holdings, active, Tally(step, items, holders, holdings.numbers))

    def charge(self, counted: Counted[Item], decision: Decision) -> Users:
        """Charge the active holders of every reported item, and return them."""
        holdings = counted.holdings
        charged = holdings.users[counted.active & np.isin(holdings.items, decision.items)]
        self.counters.charge(charged)
        return charged


def _holders(items: Items) -> tuple[Items, NDArray[np.int64]]:
    """The items that occur, in ascending order, and how often."""
    counts = np.bincount(items) if len(items) else np.empty(0, dtype=np.int64)
    held = np.flatnonzero(counts)
    return held, counts[held]
