"""What passes between counting and deciding: tallies one way, decisions the other.

Counting knows users and draws no noise; deciding draws noise and never sees a user. These
values are all that either learns from the other, and could be sent over a topic.

Items are numbered within a step, so that counting and deciding work on arrays. `numbers`
maps items to numbers; the caller chooses the type of items (texts in the service).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.states import State
from streamer.privacy.prices import FULL


class AnItem(Protocol):
    """What can be an item: something with an order, such as a text or a number."""

    def __hash__(self) -> int: ...

    def __lt__(self, other: Any, /) -> bool: ...


Item = TypeVar("Item", bound=AnItem)
Users = NDArray[np.uint64]
"""Users as 64-bit numbers: positions in a list in the library, pseudonyms in the service."""
Items = NDArray[np.int64]
"""Items as their numbers within a step."""
Units = NDArray[np.uint16]
"""What is charged, in units of `privacy.prices`."""


class Numbering(Protocol[Item]):
    """Which item has which number in a step."""

    def __contains__(self, item: object) -> bool: ...

    def __getitem__(self, item: Item) -> int: ...

    def names(self, items: Items) -> list[Item]: ...


@dataclass(frozen=True, slots=True)
class Holdings(Generic[Item]):
    """What users hold in a step, as pairs of a user and an item, each pair once.

    Users are in ascending order. A user has at most as many items as count in a step, the latest
    first: if its budget is short, those at the end do not count.
    """

    users: Users
    items: Items
    numbers: Numbering[Item]


@dataclass(frozen=True, slots=True)
class Tally(Generic[Item]):
    """How many active users hold each item of a step: items in ascending order, with a holder."""

    step: int
    items: Items
    holders: NDArray[np.int64]
    numbers: Numbering[Item]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answers of a step: items in ascending order with their noisy counts f̂.

    `prices`: what each report costs every active holder of its item. `gone`: public items that
    are no longer there, in ascending order; that answer has the full price.
    """

    step: int
    items: Items
    estimates: NDArray[np.int64]
    prices: Units
    gone: Items = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def flat(cls, step: int, items: Items, estimates: NDArray[np.int64]) -> Decision:
        """Every report at the full price."""
        return cls(step, items, estimates, np.full(len(items), FULL, dtype=np.uint16))


@dataclass(frozen=True, slots=True)
class Hitter(Generic[Item]):
    """What a step says about an item: it is public, or has just gone.

    `estimate`: the noisy number of holders; None if the step has no value of the item.
    `since`: the first step of this stretch in which the item is public. `valued_at`: the step
    of its last value. Ledgers of 0.1.0 have neither: there every hitter has a value.
    """

    item: Item
    estimate: int | None
    state: State = State.NEW
    since: int | None = None
    valued_at: int | None = None


class Numbers(dict[Item, int]):
    """Numbers items in the order in which they are first looked up.

    Most lookups are for known items, and those run no Python code.
    """

    def __missing__(self, item: Item) -> int:
        self[item] = number = len(self)
        return number

    def names(self, items: Items) -> list[Item]:
        """The items with these numbers."""
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
