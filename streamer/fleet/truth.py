"""The ground truth of a simulated step: the number of users of each item.

It counts as the service counts. Each user counts once, for the item with the latest time in
the step; with several at that time, for the greatest text. Bad records do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.fleet.bad_records import Kind
from streamer.fleet.catalogue import Catalogue
from streamer.fleet.simulation import FleetStep

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class TrueCount:
    """The number of users who have the item in the step: one line of a truth file."""

    step: int
    item: str
    users: int


@dataclass(frozen=True, slots=True)
class TrueStep:
    """The ground truth of a step.

    `users`: the number of users of each item above some floor. `fewer`: the number of other
    items. `singles`: how many of those belong to a single user.
    """

    step: int
    users: Mapping[str, int]
    fewer: int
    singles: int


def true_counts(happened: FleetStep, catalogue: Catalogue, floor: int) -> list[TrueCount]:
    """The items with at least `floor` users, largest number of users first."""
    items, users = np.unique(held_items(happened, catalogue), return_counts=True)
    kept = users >= floor
    counts = [
        TrueCount(happened.step, catalogue.text(item), number)
        for item, number in zip(items[kept].tolist(), users[kept].tolist(), strict=True)
    ]
    return sorted(counts, key=lambda count: (-count.users, count.item))


def held_items(happened: FleetStep, catalogue: Catalogue) -> NDArray[np.int64]:
    """The item of each user who counts in this step, sorted by user number."""
    events = happened.events
    counted = events.kinds == Kind.EVENT
    users, items, times = events.users[counted], events.items[counted], events.times[counted]
    size = int(users.max(initial=-1)) + 1
    latest = np.full(size, -1, dtype=np.int64)
    np.maximum.at(latest, users, times)
    last = times == latest[users]
    users, items = users[last], items[last]
    held = np.full(size, -1, dtype=np.int64)
    held[users] = items
    # Duplicates have the same item; any difference is a tie between items.
    for place in np.flatnonzero(held[users] != items).tolist():
        rivals = (int(held[users[place]]), int(items[place]))
        held[users[place]] = max(rivals, key=catalogue.text)
    return held[held >= 0]


def truth_lines(counts: Sequence[TrueCount]) -> list[bytes]:
    """Each count as JSON, without newlines."""
    return [_encoder.encode(count) for count in counts]
