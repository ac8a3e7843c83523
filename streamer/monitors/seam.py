"""What passes between counting and deciding: tallies one way, decisions the other.

Counting knows users and draws nothing; deciding draws noise and never sees a user. These
values are all that either learns from the other, and could travel over a topic.

Items are numbered within a step, so that a step is counted and decided by array. `numbers`
says which item has which number; what items are (texts in the service) is the caller's
choice.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item", bound=Hashable)
Users = NDArray[np.uint64]
"""Users by 64-bit number: positions in a library's list, pseudonyms in the service."""
Items = NDArray[np.int64]
"""Items by their number in a step."""


class Numbering(Protocol[Item]):
    """Which item has which number in a step."""

    def __contains__(self, item: object) -> bool: ...

    def __getitem__(self, item: Item) -> int: ...

    def names(self, items: Items) -> list[Item]: ...


@dataclass(frozen=True, slots=True)
class Holdings(Generic[Item]):
    """What each user holds in a step: users in rising order, each once, and their items."""

    users: Users
    items: Items
    numbers: Numbering[Item]


@dataclass(frozen=True, slots=True)
class Tally(Generic[Item]):
    """How many active users hold each item of a step: items in rising order, each held."""

    step: int
    items: Items
    holders: NDArray[np.int64]
    numbers: Numbering[Item]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is reported in a step: items in rising order with their noisy counts f̂."""

    step: int
    items: Items
    estimates: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hitter(Generic[Item]):
    """A reported item with its noisy number of holders."""

    item: Item
    estimate: int


class Numbers(dict[Item, int]):
    """Numbers items in the order in which they are first asked for.

    Most items of a step are known when they come again: then no line of Python runs.
    """

    def __missing__(self, item: Item) -> int:
        self[item] = number = len(self)
        return number

    def names(self, items: Items) -> list[Item]:
        """The items of these numbers."""
        if not len(items):
            return []
        names = list(self)
        return [names[number] for number in items.tolist()]


class OwnNumbers:
    """Items that are whole numbers already: each is its own number."""

    def __contains__(self, item: object) -> bool:
        return True

    def __getitem__(self, item: int) -> int:
        return item

    def names(self, items: Items) -> list[int]:
        return list(items.tolist())
