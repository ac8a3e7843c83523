"""Which reported items are current, since when, and whether they are growing.

Computed from publications only, so it is safe to show anywhere.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from msgspec import UNSET

from streamer.stream.publication import Publication
from streamer.stream.records import ResultRecord

_COMPARED = 8
"""The trend of an item is computed from up to this many of its latest reports."""
# An interval reaches slightly more than two standard deviations of the noise. A change counts as
# a trend beyond about three.
_CAUTION = math.sqrt(2)


class Trend(StrEnum):
    """How the latest reports of an item compare with earlier ones."""

    NEW = "new"
    GROWING = "growing"
    STEADY = "steady"
    SHRINKING = "shrinking"


@dataclass(frozen=True, slots=True)
class CurrentItem:
    """The latest report of an item, the step of its first report in the run, and the trend."""

    latest: ResultRecord
    since: int
    trend: Trend


@dataclass(frozen=True, slots=True)
class _Value:
    """An estimate, and how far below and above it the number of users may be."""

    estimate: int
    below: int
    above: int

    @classmethod
    def of(cls, result: ResultRecord) -> _Value:
        if result.low is UNSET or result.high is UNSET:  # written by 0.1.0
            return cls(result.estimate, result.margin, result.margin)
        # Near the threshold the whole interval may be below the estimate.
        above = max(0, result.high - result.estimate)
        return cls(result.estimate, result.estimate - result.low, above)


@dataclass(slots=True)
class _Run:
    """Consecutive reports of one item, without a long gap."""

    since: int
    latest: ResultRecord
    rest: int
    """How many steps after its latest report the item is checked again."""
    values: deque[_Value]

    def is_current(self, step: int) -> bool:
        """A reported item is not checked again for `rest` steps: its report stays valid."""
        return step - self.latest.step < self.rest

    def continues_at(self, step: int) -> bool:
        """A single missed report does not end a run."""
        return step - self.latest.step <= 2 * self.rest


class CurrentHitters:
    """The current items after a sequence of publications."""

    def __init__(self, refresh_steps: int = 1) -> None:
        """`refresh_steps`: how long a reported item rests, unless publications say otherwise."""
        self._refresh_steps = refresh_steps
        self._runs: dict[str, _Run] = {}
        self._through: int | None = None

    def __len__(self) -> int:
        """How many items are tracked, current or not."""
        return len(self._runs)

    def take(self, publication: Publication) -> None:
        """Apply a publication; steps that were applied before are skipped."""
        if publication.period is not None:
            self._refresh_steps = publication.period.terms.refresh_steps
        by_step = results_by_step(publication)
        for record in publication.steps:
            if self._through is None or record.step > self._through:
                self._note(by_step[record.step])
                self._through = record.step
        through = self._through
        if through is not None:
            self._runs = {
                item: run for item, run in self._runs.items() if run.continues_at(through)
            }

    def now(self) -> list[CurrentItem]:
        """Items that were reported in the last step, or earlier and are resting since then; the
        largest estimate first."""
        if self._through is None:
            return []
        current = [run for run in self._runs.values() if run.is_current(self._through)]
        current.sort(key=lambda run: (-run.latest.estimate, run.latest.item))
        return [CurrentItem(run.latest, run.since, _trend(run)) for run in current]

    def _note(self, results: Iterable[ResultRecord]) -> None:
        for result in results:
            run = self._runs.get(result.item)
            if run is None or not run.continues_at(result.step):
                run = _Run(result.step, result, self._refresh_steps, deque(maxlen=_COMPARED))
                self._runs[result.item] = run
            run.latest, run.rest = result, self._refresh_steps
            run.values.append(_Value.of(result))


def results_by_step(publication: Publication) -> defaultdict[int, list[ResultRecord]]:
    by_step: defaultdict[int, list[ResultRecord]] = defaultdict(list)
    for result in publication.results:
        by_step[result.step].append(result)
    return by_step


def _trend(run: _Run) -> Trend:
    """Compare the later half of the reports with the earlier half."""
    values = list(run.values)
    if len(values) == 1:
        return Trend.NEW
    before, after = values[: len(values) // 2], values[len(values) // 2 :]
    change = fmean(each.estimate for each in after) - fmean(each.estimate for each in before)
    upper, lower = (after, before) if change > 0 else (before, after)
    # Without a trend, the truth lies between: below the upper half and above the lower half.
    noise = math.hypot(
        _of_mean(each.below for each in upper), _of_mean(each.above for each in lower)
    )
    if abs(change) <= _CAUTION * noise:
        return Trend.STEADY
    return Trend.GROWING if change > 0 else Trend.SHRINKING


def _of_mean(deviations: Iterable[int]) -> float:
    """The deviation of the mean of independent values."""
    known = list(deviations)
    return math.hypot(*known) / len(known)
