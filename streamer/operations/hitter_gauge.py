"""The only metrics that name items: current estimates and their intervals, taken from
publications only."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import Gauge

from streamer.stream.current import CurrentHitters
from streamer.stream.publication import Audience, Publication


class HitterGauge(Audience):
    """Shows only the largest current items: a metric must not have too many label values."""

    def __init__(self, estimate: Gauge, low: Gauge, high: Gauge, most_items: int) -> None:
        self._gauges = (estimate, low, high)
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
        for gauge in self._gauges:
            for item in self._shown - items:
                gauge.remove(item)
        for result in shown:
            values = (result.estimate, result.low, result.high)
            for gauge, value in zip(self._gauges, values, strict=True):
                if isinstance(value, int):  # results of 0.1.0 have no interval
                    gauge.labels(result.item).set(value)
        self._shown = items
