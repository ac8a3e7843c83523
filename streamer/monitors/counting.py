"""Counting: what users hold, who still counts, the tally, and what a decision costs whom.

Everything here is a function of events and decisions. It draws no random number, so a
counter that dies and starts again, or runs twice, can only repeat itself.
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
    """A step that is counted and waits for its decision: raw, but for what the tally says."""

    holdings: Holdings[Item]
    active: NDArray[np.bool_]
    """Which of the users still count."""
    tally: Tally[Item]

    @property
    def exhausted(self) -> int:
        """How many users hold something and no longer count."""
        return len(self.active) - int(np.count_nonzero(self.active))


class Counting(Generic[Item]):
    """The counters of one budget period, and the steps that are counted with them."""

    def __init__(self, contributions: int = 1) -> None:
        self.begin(contributions)

    def begin(self, contributions: int) -> None:
        """A new budget period: nobody was charged, and each user may be so often."""
        self.counters = Counters(contributions)

    def count(self, step: int, holdings: Holdings[Item]) -> Counted[Item]:
        """The active holders of each item.

        A user counts once in a step: this is what makes the sensitivity 1, so it is checked
        here, for everything that counts.
        """
        users = holdings.users
        if not np.all(users[1:] > users[:-1]):
            raise MonitorError("the users of a step must come in rising order, each once")
        active = self.counters.active(users)
        items, holders = _holders(holdings.items[active])
        return Counted(holdings, active, Tally(step, items, holders, holdings.numbers))

    def charge(self, counted: Counted[Item], decision: Decision) -> Users:
        """Charge the active holders of every reported item; returns who they are."""
        holdings = counted.holdings
        charged = holdings.users[counted.active & np.isin(holdings.items, decision.items)]
        self.counters.charge(charged)
        return charged


def _holders(items: Items) -> tuple[Items, NDArray[np.int64]]:
    """The items that occur, in rising order, and how often each does."""
    counts = np.bincount(items) if len(items) else np.empty(0, dtype=np.int64)
    held = np.flatnonzero(counts)
    return held, counts[held]
