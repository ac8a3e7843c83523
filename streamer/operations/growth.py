"""By how many users items have grown: more than the intervals of their values explain.

The last value of an item is compared with a single earlier one, an hour or more before it, or
with the first one while the item is public for less. So it shows with the first value after the
growth, and ends when the next hour has none. (The trend on the live page averages up to eight
values: it finds smaller changes, but with a value an hour it needs hours, and lasts for hours.)
Computed here and not in PromQL: this is restored after a restart, and compares values of one
stretch only, whatever Prometheus has scraped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from streamer.stream.records import ResultRecord

_HOUR_MS = 3_600_000
_MOST_VALUES = 64
"""Of an item. With more values in an hour, the earliest of these is compared."""


@dataclass(frozen=True, slots=True)
class _Value:
    """The interval of a value, and the step it is of."""

    step: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The latest values of an item since it became public."""

    since: int
    values: deque[_Value] = field(default_factory=lambda: deque(maxlen=_MOST_VALUES))


class Growth:
    """Follows the values of public items."""

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self._stretches: dict[str, _Stretch] = {}

    def take(self, results: Iterable[ResultRecord]) -> None:
        """The results of a step; called for all known steps, in order."""
        for result in results:
            since, low, high = result.since, result.low, result.high
            # Results of 0.1.0 have none of these.
            if isinstance(since, int) and isinstance(low, int) and isinstance(high, int):
                stretch = self._stretches.get(result.item)
                if stretch is None or stretch.since != since:
                    stretch = self._stretches[result.item] = _Stretch(since)
                stretch.values.append(_Value(result.step, low, high))
                self._drop_earlier(stretch.values)

    def keep(self, items: Collection[str]) -> None:
        """Forget all others: they are not public any more."""
        self._stretches = {
            item: stretch for item, stretch in self._stretches.items() if item in items
        }

    def of(self, item: str) -> int:
        """The lower end of the last interval minus the upper end of the earlier one, in users; 0
        if the intervals meet, or the item has shrunk, or there is nothing to compare."""
        stretch = self._stretches.get(item)
        if stretch is None:
            return 0
        return max(0, stretch.values[-1].low - stretch.values[0].high)

    def _drop_earlier(self, values: deque[_Value]) -> None:
        """All but the last of those that are an hour or more before the latest."""
        latest = values[-1].step
        while len(values) > 1 and (latest - values[1].step) * self._step_ms >= _HOUR_MS:
            values.popleft()
