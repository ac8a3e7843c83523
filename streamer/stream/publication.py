"""What is published, and when: a function of decisions and the clock, never of raw data.

A step with hitters is published at once. Steps without hitters get one record each as they
close on time. After an outage, or at the end of a file, many of them are due together, and a
long run becomes one record. Where a run begins and ends must not depend on whether any event
was sent: otherwise one user's event in a quiet hour would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.records import ResultRecord, StepRecord
from streamer.stream.timing import StepTiming, format_rfc3339

LONG_RUN = 100
"""Up to this many steps without hitters that are due together get a record each; more get one."""


RECENT_STEPS = 10_000
"""How many past steps stay available after publication."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Records that are published together: all that may become public about a stream."""

    through: int
    """The last step that the records cover."""
    results: tuple[ResultRecord, ...]
    steps: tuple[StepRecord, ...]
    period: Period | None = None
    """The budget period of the last step, with its terms and plan: public settings. None if
    the records were read from topics, which do not name it."""


@dataclass(frozen=True, slots=True)
class PublicSettings:
    """What the public may know of the settings."""

    terms: Terms
    """Of future periods."""
    trusts_producers: bool = False
    """Whether producers tell when their events arrived."""


class Audience:
    """A public view of a stream. It receives publications and public settings only.

    Does nothing by default: subclasses override the methods they need.
    """

    def started(self, settings: PublicSettings) -> None:
        """The stream starts or continues with these settings."""

    def restored(self, publications: Sequence[Publication]) -> None:
        """What was published before this start, the oldest first."""

    def published(self, publication: Publication) -> None:
        """These records were published."""


@dataclass(frozen=True, slots=True)
class Audiences(Audience):
    """Several audiences, called in order."""

    all: Sequence[Audience]

    def started(self, settings: PublicSettings) -> None:
        for audience in self.all:
            audience.started(settings)

    def restored(self, publications: Sequence[Publication]) -> None:
        for audience in self.all:
            audience.restored(publications)

    def published(self, publication: Publication) -> None:
        for audience in self.all:
            audience.published(publication)


class Recorder:
    """Tracks which steps have a record, and creates the records that are due."""

    def __init__(self, timing: StepTiming, recorded: int) -> None:
        self._timing = timing
        self.recorded = recorded
        """The last step that has a record."""

    def with_results(self, decided: Decided) -> Publication:
        """A step with hitters, and the steps before it that are due."""
        step = self._record(decided.step, decided.step, len(decided.hitters), decided.period)
        return Publication(
            decided.step,
            tuple(self._results(decided)),
            (*self._quiet(decided.step - 1, decided.period), step),
            decided.period,
        )

    def without_results(self, closed: int, period: Period) -> Publication | None:
        """All steps up to this one that have no record yet; none of them has hitters."""
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
        """Results, ordered by item."""
        period, timing = decided.period, self._timing
        start, end = (format_rfc3339(each(decided.step)) for each in (timing.start, timing.end))
        for hitter in decided.hitters:
            estimate = hitter.estimate
            low = high = None
            if estimate is not None:
                low, high = period.interval(hitter.item, estimate)
            yield ResultRecord(
                step=decided.step,
                start=start,
                end=end,
                item=hitter.item,
                state=UNSET if hitter.since is None else hitter.state,
                since=UNSET if hitter.since is None else hitter.since,
                estimate=estimate,
                low=low,
                high=high,
                valued_at=UNSET if hitter.valued_at is None else hitter.valued_at,
                margin=period.margin,
                threshold=period.threshold_of(hitter.item),
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
    """What was published for recent decisions, up to the step `published`, the oldest first.

    How decisions split runs of empty steps depends on raw data. So only the hitters are used
    here, and the steps between them are recorded as after an outage.
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
