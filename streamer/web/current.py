"""Which items many users hold now, for how long, and whether their number grows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from msgspec import structs

from streamer.stream.records import ResultRecord
from streamer.web.answers import CurrentHitter, Trend

_COMPARED = 8
"""So many reports, at most, tell the trend of an item."""
# The margin is two standard deviations of the noise or a little more; a trend is said to
# be one beyond about three.
_CAUTION = math.sqrt(2)


@dataclass(slots=True)
class _Run:
    """Reports of one item, each soon after the one before."""

    since: int
    latest: ResultRecord
    estimates: deque[int]


class CurrentHitters:
    """Follows reports, step by step."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def note(self, results: Iterable[ResultRecord], refresh: int) -> None:
        """The results of later steps than those before; items rest for `refresh` steps."""
        for result in results:
            run = self._runs.get(result.item)
            # An item that is held all the time is asked about every `refresh` steps; one
            # answer may be missed without ending a run.
            if run is None or result.step - run.latest.step > 2 * refresh:
                run = _Run(result.step, result, deque(maxlen=_COMPARED))
                self._runs[result.item] = run
            run.latest = result
            run.estimates.append(result.estimate)

    def at(self, step: int, refresh: int) -> tuple[CurrentHitter, ...]:
        """What was reported in this step, or before it and rests since; the largest first."""
        self._runs = {
            item: run for item, run in self._runs.items() if step - run.latest.step < 2 * refresh
        }
        hitters = [
            CurrentHitter(**structs.asdict(run.latest), trend=_trend(run), since=run.since)
            for run in self._runs.values()
            if step - run.latest.step < refresh
        ]
        return tuple(sorted(hitters, key=lambda hitter: (-hitter.estimate, hitter.item)))


def _trend(run: _Run) -> Trend:
    """The later half of its reports against the half before."""
    estimates = list(run.estimates)
    if len(estimates) == 1:
        return Trend.NEW
    before, after = estimates[: len(estimates) // 2], estimates[len(estimates) // 2 :]
    noise = run.latest.margin * math.sqrt(1 / len(before) + 1 / len(after))
    change = fmean(after) - fmean(before)
    if abs(change) <= _CAUTION * noise:
        return Trend.STEADY
    return Trend.GROWING if change > 0 else Trend.SHRINKING
