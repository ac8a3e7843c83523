"""What is published, and when: a function of decisions and of the clock, never of raw data.

A step with hitters is published at once. Steps without any are recorded one by one as
they close on time; after an outage, or at the end of a file, many of them are due
together, and a long run of them becomes one record. Where such a run begins and ends
must not depend on whether anybody sent anything: one user's event in an otherwise quiet
hour would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.records import ResultRecord, StepRecord
from streamer.stream.timing import StepTiming, format_rfc3339

LONG_RUN = 100
"""Up to this many steps without hitters, due together, are recorded one by one; more as a run."""


RECENT_STEPS = 10_000
"""How far back what was published can be looked at."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Records that are published together: all that anything public may learn of a stream."""

    through: int
    """The last step that the records are about."""
    results: tuple[ResultRecord, ...]
    steps: tuple[StepRecord, ...]
    period: Period | None = None
    """The budget period of the last step, with its terms and plan: public settings. None if
    the records were read from topics, which do not name it."""


class Audience:
    """Whatever shows a stream to the public. It learns publications and public settings alone.

    Interested in nothing: an audience overrides what it wants to hear.
    """

    def restored(self, publications: Sequence[Publication]) -> None:
        """What was published before this start, the oldest first."""

    def started(self, terms: Terms) -> None:
        """The stream goes on, or begins; these are the terms of the periods to come."""

    def published(self, publication: Publication) -> None:
        """These records are published."""


@dataclass(frozen=True, slots=True)
class Audiences(Audience):
    """Several audiences, one after the other."""

    all: Sequence[Audience]

    def restored(self, publications: Sequence[Publication]) -> None:
        for audience in self.all:
            audience.restored(publications)

    def started(self, terms: Terms) -> None:
        for audience in self.all:
            audience.started(terms)

    def published(self, publication: Publication) -> None:
        for audience in self.all:
            audience.published(publication)


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
            tuple(self._results(decided)),
            (*self._quiet(decided.step - 1, decided.period), step),
            decided.period,
        )

    def without_results(self, closed: int, period: Period) -> Publication | None:
        """All steps up to this one that have no record yet: none of them has hitters."""
        if closed <= self.recorded:
            return None
        return Publication(closed, (), tuple(self._quiet(closed, period)), period)

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

    def _results(self, decided: Decided) -> Iterator[ResultRecord]:
        """In the order of their items."""
        period, timing = decided.period, self._timing
        start, end = (format_rfc3339(each(decided.step)) for each in (timing.start, timing.end))
        for hitter in decided.hitters:
            yield ResultRecord(
                step=decided.step,
                start=start,
                end=end,
                item=hitter.item,
                estimate=hitter.estimate,
                margin=period.margin,
                threshold=period.plan.threshold,
                epsilon=period.terms.epsilon,
                delta=period.terms.delta,
                contributions=period.terms.contributions,
                period=period.number,
            )


def published_before(
    history: Sequence[Decided],
    published: int,
    timing: StepTiming,
    most_steps: int = RECENT_STEPS,
) -> list[Publication]:
    """What was published of the last decisions, the oldest first, up to the step `published`.

    How decisions cut runs of empty steps depends on raw data. So only their hitters count
    here, and the steps between them are recorded as they are after an outage.
    """
    known = [decided for decided in history if decided.step <= published]
    if not known:
        return []
    first = max(known[0].first, published - most_steps + 1)
    recorder = Recorder(timing, first - 1)
    publications = []
    for decided in known:
        if decided.hitters and decided.step >= first:
            publications.append(recorder.with_results(decided))
            recorder.recorded = decided.step
    quiet = recorder.without_results(published, known[-1].period)
    return [*publications, quiet] if quiet is not None else publications
