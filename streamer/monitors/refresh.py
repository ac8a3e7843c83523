"""Refresh: a reported item rests for a while before it is asked about again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic

from streamer.monitors.seam import Item
from streamer.privacy.guarantee import check_whole
from streamer.privacy.threshold import MOST_STEPS


class Refresh(Generic[Item]):
    """After a report at step i an item is not asked about before step i + r.

    Which questions are asked may depend on earlier answers, so this costs no privacy,
    and a persistent heavy hitter charges its holders once every r steps instead of every step.
    With r = 1 no item ever rests.
    """

    def __init__(self, steps: int = 1) -> None:
        check_whole("refresh", steps, 1, MOST_STEPS)
        self.steps = steps
        self._wakes: dict[Item, int] = {}

    def note(self, step: int, items: Iterable[Item]) -> None:
        """These items were reported in this step."""
        if self.steps > 1:
            self._wakes.update(dict.fromkeys(items, step + self.steps))

    def restore(self, wakes: Mapping[Item, int]) -> None:
        """Restore resting items, with the step in which each is asked about again."""
        self._wakes = dict(wakes)

    def resting(self, step: int) -> frozenset[Item]:
        """The items that are not asked about in this step."""
        self._wakes = {item: wakes for item, wakes in self._wakes.items() if step < wakes}
        return frozenset(self._wakes)
