"""Who holds what in the steps of a simulated fleet: played at full speed, without records.

`held_steps` shows a fleet to a monitor in the same process. `latest_items` is the rule by which
events count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.fleet.catalogue import Catalogue
from streamer.fleet.fleet import Fleet
from streamer.fleet.population import Numbers, activities


@dataclass(frozen=True, slots=True)
class HeldStep:
    """A step (counted from 1970) as pairs of a user and an item that count, and its ground truth.

    Of each user the latest item comes first. Items are numbers of the fleet's catalogue.
    `holders`: the number of users who have each item, at the item's number, whether it counts
    for them or not.
    """

    step: int
    users: NDArray[np.uint64]
    items: Numbers
    holders: Numbers


def held_steps(fleet: Fleet, items_per_step: int) -> Iterator[HeldStep]:
    """The steps of the fleet; up to `items_per_step` items of a user count in each."""
    catalogue = fleet.catalogue()
    for activity in activities(fleet):
        users, items = latest_items(
            activity.users, activity.items, activity.times, catalogue, items_per_step
        )
        # All items of a user in an activity are different.
        holders = np.bincount(activity.items)
        yield HeldStep(activity.step, users.astype(np.uint64), items, holders)


def latest_items(
    users: Numbers, items: Numbers, times: Numbers, catalogue: Catalogue, most: int
) -> tuple[Numbers, Numbers]:
    """The items that count, as pairs of a user and an item: the latest item of each user, in the
    order of user numbers, then the latest of the others, up to `most` of each user.

    Of several items at the same time the one with the greatest text comes first.
    """
    holders, held = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for _ in range(most):
        if not len(users):
            break
        latest = _latest(users, items, times, catalogue)
        holders.append(np.flatnonzero(latest >= 0))
        held.append(latest[holders[-1]])
        others = items != latest[users]
        users, items, times = users[others], items[others], times[others]
    return np.concatenate(holders), np.concatenate(held)


def _latest(users: Numbers, items: Numbers, times: Numbers, catalogue: Catalogue) -> Numbers:
    """The latest item of each user, at the user's number; -1 for users without any."""
    size = int(users.max()) + 1
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
    return held
