"""What is published, and when: a function of decisions and of the clock, never of raw data.

A step with hitters is published at once. Steps without any are recorded one by one as
they close on time; after an outage, or at the end of a file, many of them are due
together, and a long run of them becomes one record. Where such a run begins and ends
must not depend on whether anybody sent anything: one user's event in an otherwise quiet
hour would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from streamer.stream.periods import Period
from streamer.stream.records import Decided, ResultRecord, StepRecord, result_records
from streamer.stream.timing import StepTiming, format_rfc3339

LONG_RUN = 100
"""So many steps without hitters, due together, are recorded one by one; more as a run."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Records that are published together; `through` is the last step that they are about."""

    through: int
    results: tuple[ResultRecord, ...]
    steps: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """All steps up to this one are published; how long the output files were after that."""

    step: int
    outputs: Mapping[str, int] = field(default_factory=dict)


class Recorder:
    """Knows up to where steps were recorded, and what is due."""

    def __init__(self, timing: StepTiming, recorded: int) -> None:
        self._timing = timing
        self.recorded = recorded
        """The last step that has a record."""

    def with_results(self, decided: Decided) -> Publication:
        """A step with hitters, and what is due before it."""
        step = self._record(decided.step, decided.step, len(decided.hitters), decided.period)
        return Publication(
            decided.step,
            tuple(result_records(decided, self._timing)),
            (*self._quiet(decided.step - 1, decided.period), step),
        )

    def without_results(self, closed: int, period: Period) -> Publication | None:
        """All steps up to this one that have no record yet: none of them has hitters."""
        if closed <= self.recorded:
            return None
        return Publication(closed, (), tuple(self._quiet(closed, period)))

    def _quiet(self, last: int, period: Period) -> Iterator[StepRecord]:
        first = self.recorded + 1
        if last - first >= LONG_RUN:
            yield self._record(first, last, 0, period)
        else:
            for step in range(first, last + 1):
                yield self._record(step, step, 0, period)

    def _record(self, first: int, step: int, hitters: int, period: Period) -> StepRecord:
        return StepRecord(
            step=step,
            start=format_rfc3339(self._timing.start(first)),
            end=format_rfc3339(self._timing.end(step)),
            hitters=hitters,
            period=period.number_at(step),
            first=first if first != step else None,
        )
