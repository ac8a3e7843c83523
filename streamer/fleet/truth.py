"""What is true of a simulated step: how many users hold each item, as the product counts.

Each user counts once, for the item of the latest time written in the user's events of
the step; of several at that time, for the greatest text. Bad records do not count.
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
    """So many users hold the item in the step: one line of the truth."""

    step: int
    item: str
    users: int


@dataclass(frozen=True, slots=True)
class TrueStep:
    """What is true of a step.

    `users`: of the items that are worth naming, those above some floor. `fewer`: how many
    further items there are, `singles`: how many of them only one user holds.
    """

    step: int
    users: Mapping[str, int]
    fewer: int
    singles: int


def true_counts(happened: FleetStep, catalogue: Catalogue, floor: int) -> list[TrueCount]:
    """The items that at least `floor` users hold, those of the most users first."""
    items, users = np.unique(held_items(happened, catalogue), return_counts=True)
    kept = users >= floor
    counts = [
        TrueCount(happened.step, catalogue.text(item), number)
        for item, number in zip(items[kept].tolist(), users[kept].tolist(), strict=True)
    ]
    return sorted(counts, key=lambda count: (-count.users, count.item))


def held_items(happened: FleetStep, catalogue: Catalogue) -> NDArray[np.int64]:
    """The item of each user who counts in this step, in the order of the users' numbers."""
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
    # An event written twice agrees with itself; what differs now is a tie between items.
    for place in np.flatnonzero(held[users] != items).tolist():
        rivals = (int(held[users[place]]), int(items[place]))
        held[users[place]] = max(rivals, key=catalogue.text)
    return held[held >= 0]


def truth_lines(counts: Sequence[TrueCount]) -> list[bytes]:
    """Each count as JSON, without the newline."""
    return [_encoder.encode(count) for count in counts]
