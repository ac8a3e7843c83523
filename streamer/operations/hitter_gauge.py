"""The only metric that names items: current estimates, taken from publications only."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import Gauge

from streamer.stream.current import CurrentHitters
from streamer.stream.publication import Audience, Publication


class HitterGauge(Audience):
    """Shows only the largest current items: a metric must not have too many label values."""

    def __init__(self, gauge: Gauge, most_items: int) -> None:
        self._gauge = gauge
        self._most_items = most_items
        self._current = CurrentHitters()
        self._shown: set[str] = set()

    def restored(self, publications: Sequence[Publication]) -> None:
        for publication in publications:
            self._current.take(publication)
        self._show()

    def published(self, publication: Publication) -> None:
        self._current.take(publication)
        self._show()

    def _show(self) -> None:
        shown = [each.latest for each in self._current.now()[: self._most_items]]
        items = {result.item for result in shown}
        for item in self._shown - items:
            self._gauge.remove(item)
        for result in shown:
            self._gauge.labels(result.item).set(result.estimate)
        self._shown = items
