"""Which hitters are current: a label of a metric must come to an end."""

from __future__ import annotations

from collections.abc import Mapping

from streamer.stream.records import Decided


class CurrentEstimates:
    """The items that were reported when they were asked about last, the largest of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reported: dict[str, tuple[int, int]] = {}
        """By item: the first step in which it is no longer current, and its estimate."""
        self._shown: Mapping[str, int] = {}

    @property
    def items(self) -> set[str]:
        return set(self._shown)

    def after(self, decided: Decided) -> Mapping[str, int]:
        """Estimates of the current items, after this step.

        A reported item is not asked about for some steps: so long its report is current.
        """
        for hitter in decided.hitters:
            ends = decided.step + decided.period.terms.refresh_steps
            self._reported[hitter.item] = (ends, hitter.estimate)
        self._reported = {
            item: (ends, estimate)
            for item, (ends, estimate) in self._reported.items()
            if ends > decided.step
        }
        largest = sorted(self._reported, key=lambda item: (-self._reported[item][1], item))
        self._shown = {item: self._reported[item][1] for item in largest[: self._most]}
        return self._shown
