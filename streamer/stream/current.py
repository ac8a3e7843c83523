"""Which items are public now, since when, and whether they are growing.

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

from streamer.monitors.states import State
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
    """The latest record of an item, its last record with a value, the first step of the stretch
    in which it is public, and the trend of its values.

    `valued` is None if that record is older than what is known.
    """

    latest: ResultRecord
    valued: ResultRecord | None
    since: int
    trend: Trend


@dataclass(frozen=True, slots=True)
class _Value:
    """An estimate, and how far below and above it the number of users may be."""

    estimate: int
    below: int
    above: int

    @classmethod
    def of(cls, result: ResultRecord) -> _Value | None:
        """None: the record has no value."""
        estimate, low, high = result.estimate, result.low, result.high
        if estimate is None:
            return None
        if low is UNSET or low is None or high is UNSET or high is None:  # written by 0.1.0
            return cls(estimate, result.margin, result.margin)
        # Near the threshold the whole interval may be below the estimate.
        return cls(estimate, estimate - low, max(0, high - estimate))


@dataclass(slots=True)
class _Run:
    """Records of one stretch in which an item is public."""

    since: int
    latest: ResultRecord
    rest: int
    """How many steps after its latest record the item is checked again."""
    values: deque[_Value]
    valued: ResultRecord | None = None

    def is_current(self, step: int) -> bool:
        """A reported item is not checked again for `rest` steps: its report stays valid."""
        return self.latest.state is not State.GONE and step - self.latest.step < self.rest

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
        """Items that are public after the last step, or were reported earlier and are resting
        since then; the largest last value first."""
        if self._through is None:
            return []
        current = [run for run in self._runs.values() if run.is_current(self._through)]
        found = [CurrentItem(run.latest, run.valued, run.since, _trend(run)) for run in current]
        found.sort(key=lambda each: (-_last_estimate(each), each.latest.item))
        return found

    def _note(self, results: Iterable[ResultRecord]) -> None:
        for result in results:
            run = self._runs.get(result.item)
            if run is None or not _continues(run, result):
                since = result.step if result.since is UNSET else result.since
                run = _Run(since, result, self._refresh_steps, deque(maxlen=_COMPARED))
                self._runs[result.item] = run
            run.latest, run.rest = result, self._refresh_steps
            value = _Value.of(result)
            if value is not None:
                run.valued = result
                run.values.append(value)


def results_by_step(publication: Publication) -> defaultdict[int, list[ResultRecord]]:
    by_step: defaultdict[int, list[ResultRecord]] = defaultdict(list)
    for result in publication.results:
        by_step[result.step].append(result)
    return by_step


def _continues(run: _Run, result: ResultRecord) -> bool:
    """Whether a record belongs to the same stretch. Those of 0.1.0 do not say so."""
    if result.since is UNSET:
        return run.continues_at(result.step)
    return run.since == result.since


def _last_estimate(item: CurrentItem) -> int:
    estimate = None if item.valued is None else item.valued.estimate
    return 0 if estimate is None else estimate


def _trend(run: _Run) -> Trend:
    """Compare the later half of the reports with the earlier half."""
    values = list(run.values)
    if len(values) <= 1:
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
