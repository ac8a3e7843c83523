"""Declared items: known to everybody in advance, and asked about in every step, held or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

import numpy as np

from streamer.monitors.seam import Item, Items, Numbering, Tally
from streamer.privacy.binomial import draw_below
from streamer.privacy.randomness import RandomBytes


class DeclaredItems(Generic[Item]):
    """A list of items. An item's place is its position in the list."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._places = {item: place for place, item in enumerate(items)}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._places

    def held(self, tally: Tally[Item]) -> Items:
        """The place of each item of a tally; -1 for an item that is not declared."""
        if not self._places:
            return np.full(len(tally.items), -1, dtype=np.int64)
        names = tally.numbers.names(tally.items)
        return np.fromiter((self._places.get(name, -1) for name in names), np.int64, len(names))

    def places(self, items: Iterable[Item]) -> Items:
        """The places of those of these items that are declared."""
        found = [self._places[item] for item in items if item in self._places]
        return np.array(found, dtype=np.int64)

    def numbers(self, places: Items, numbers: Numbering[Item]) -> Items:
        """The numbers of the items at these places in a step, which get one if they have none."""
        named = [numbers[self._items[place]] for place in places.tolist()]
        return np.array(named, dtype=np.int64)

    def draw(self, number: int, excluded: Items, random_bytes: RandomBytes) -> Items:
        """Distinct places, drawn uniformly from those not excluded."""
        if number == 0:
            return np.empty(0, dtype=np.int64)
        others = np.setdiff1d(np.arange(len(self._items)), excluded)
        for place in range(number):
            pick = place + draw_below(len(others) - place, random_bytes)
            others[[place, pick]] = others[[pick, place]]
        return np.asarray(others[:number])
