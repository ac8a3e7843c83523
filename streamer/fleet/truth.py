"""The ground truth of a simulated step: the number of users of each item.

Each user counts once for every item that it holds in the step. No simulated user holds more
items than the service counts of each by default. Bad records do not count.
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
    items, users = np.unique(held_items(happened), return_counts=True)
    kept = users >= floor
    counts = [
        TrueCount(happened.step, catalogue.text(item), number)
        for item, number in zip(items[kept].tolist(), users[kept].tolist(), strict=True)
    ]
    return sorted(counts, key=lambda count: (-count.users, count.item))


def held_items(happened: FleetStep) -> NDArray[np.int64]:
    """The items that users hold in this step: each as often as it has users."""
    events = happened.events
    counted = events.kinds == Kind.EVENT
    users, items = events.users[counted], events.items[counted]
    order = np.lexsort((items, users))
    users, items = users[order], items[order]
    repeated = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    return np.asarray(items[np.append(True, ~repeated)[: len(items)]])


def truth_lines(counts: Sequence[TrueCount]) -> list[bytes]:
    """Each count as JSON, without newlines."""
    return [_encoder.encode(count) for count in counts]
