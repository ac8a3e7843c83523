"""The only metrics that name items: what is public now, taken from publications only."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from streamer.operations.growth import Growth
from streamer.operations.instruments import CHANGES, Instruments
from streamer.settings import LINKED_ITEM
from streamer.stream.current import CurrentHitters, CurrentItem
from streamer.stream.publication import Audience, Publication
from streamer.stream.timing import StepTiming


class HitterGauge(Audience):
    """Shows only the largest public items: a metric must not have too many label values."""

    def __init__(
        self,
        instruments: Instruments,
        timing: StepTiming,
        most_items: int,
        link_template: str | None = None,
    ) -> None:
        self._instruments = instruments
        self._by_item = (
            instruments.hitter_estimate,
            instruments.hitter_low,
            instruments.hitter_high,
            instruments.hitter_since_seconds,
            instruments.hitter_growth,
            instruments.hitter_info,
        )
        self._timing = timing
        self._most_items = most_items
        self._link_template = link_template or ""
        self._current = CurrentHitters()
        self._growth = Growth(timing.length_ms)
        self._through: int | None = None

    def restored(self, publications: Sequence[Publication]) -> None:
        """Changes that were published before the process started are not counted again. Those
        that it published itself without knowing, because the broker went away, are."""
        is_new = self._through is not None
        for publication in publications:
            self._take(publication, is_new)
        self._show()

    def published(self, publication: Publication) -> None:
        self._take(publication, is_new=True)
        self._show()

    def _take(self, publication: Publication, is_new: bool) -> None:
        """Apply a publication, unless it was applied before."""
        if self._through is not None and publication.through <= self._through:
            return
        self._through = publication.through
        self._current.take(publication)
        self._growth.take(publication.results)
        for result in publication.results:
            if is_new and result.state in CHANGES:
                self._instruments.changes.labels(result.state).inc()

    def _show(self) -> None:
        current = self._current.now()
        shown = current[: self._most_items]
        self._growth.keep({each.latest.item for each in current})
        for gauge in self._by_item:
            gauge.clear()
        for each in shown:
            self._show_item(each)
        self._instruments.hitters_current.set(len(current))
        self._instruments.hitters_shown.set(len(shown))

    def _show_item(self, current: CurrentItem) -> None:
        instruments, item, valued = self._instruments, current.latest.item, current.valued
        if valued is not None:
            for gauge, value in (
                (instruments.hitter_estimate, valued.estimate),
                (instruments.hitter_low, valued.low),
                (instruments.hitter_high, valued.high),
            ):
                if isinstance(value, int):  # results of 0.1.0 have no interval
                    gauge.labels(item).set(value)
        instruments.hitter_since_seconds.labels(item).set(self._timing.start(current.since) / 1000)
        instruments.hitter_growth.labels(item).set(self._growth.of(item))
        link = self._link_template.replace(LINKED_ITEM, quote(item, safe=""))
        instruments.hitter_info.labels(item, link).set(1)
