"""What is published and when: step records, field by field, and what they must not show.

The last class drives an engine and a recorder together, as the service does, and holds
their publications to a model that knows hitters and the clock and nothing of events.
"""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.stream.decided import Decided
from streamer.stream.events import EventDecoder
from streamer.stream.periods import Period
from streamer.stream.publication import LONG_RUN, Publication, Recorder
from streamer.stream.timing import LATEST_MOMENT
from tests.stream.making import (
    MINUTES,
    TIMING,
    close_all,
    feed,
    record,
    started,
    terms,
    written,
)

PERIOD_STEPS = 20


def period_of(step, length=PERIOD_STEPS):
    return Period.containing(step, terms(period_steps=length))


def with_hitters(step, *items, length=PERIOD_STEPS):
    hitters = tuple(Hitter(item, 800 + place) for place, item in enumerate(items))
    return Decided(step, step, period_of(step, length), hitters)


def quiet(recorded, closed, length=PERIOD_STEPS):
    """The publication of steps without hitters."""
    return Recorder(MINUTES, recorded).without_results(closed, period_of(closed, length))


def spans(publication):
    """Per step record its first and its last step, and its number of hitters."""
    return [
        (one.step if one.first is None else one.first, one.step, one.hitters)
        for one in publication.steps
    ]


def one_by_one(first, last):
    return [(step, step, 0) for step in range(first, last + 1)]


class TestStepRecords:
    def test_a_step_is_that_of_the_contract(self):
        [step] = Recorder(MINUTES, 28).with_results(with_hitters(29, "a", "b")).steps
        assert written(step) == [
            ("step", 29),
            ("start", "2026-01-01T00:29:00Z"),
            ("end", "2026-01-01T00:30:00Z"),
            ("hitters", 2),
            ("period", 1),
        ]

    def test_a_step_without_hitters_has_a_record_too(self):
        [step] = quiet(28, 29).steps
        assert written(step) == [
            ("step", 29),
            ("start", "2026-01-01T00:29:00Z"),
            ("end", "2026-01-01T00:30:00Z"),
            ("hitters", 0),
            ("period", 1),
        ]

    def test_a_long_run_of_steps_names_its_first_one(self):
        [step] = quiet(29, 149).steps
        assert written(step) == [
            ("step", 149),
            ("start", "2026-01-01T00:30:00Z"),
            ("end", "2026-01-01T02:30:00Z"),
            ("hitters", 0),
            ("period", 7),
            ("first", 30),
        ]

    @pytest.mark.parametrize("before_the_end", [0, 59_999, 60_000, 120_000])
    def test_every_step_that_an_event_is_accepted_for_has_a_record(self, before_the_end):
        moment = LATEST_MOMENT - before_the_end
        decoded = EventDecoder(MINUTES).decode([record("u", "x", time=moment)], None)
        for accepted in decoded.times.tolist():
            step = MINUTES.step_at(accepted)
            assert spans(quiet(step - 1, step)) == [(step, step, 0)]
            publication = Recorder(MINUTES, step - 1).with_results(with_hitters(step, "x"))
            assert spans(publication) == [(step, step, 1)]

    def test_whom_a_decision_charges_is_in_no_record(self):
        charged = Charges.full(np.array([1234567890123], dtype=np.uint64))
        decided = Decided(29, 29, period_of(29), (Hitter("a", 812),), charged)
        publication = Recorder(MINUTES, 20).with_results(decided)
        due_records = [*publication.results, *publication.steps]
        assert "1234567890123" not in str(list(map(written, due_records)))


class TestWithResults:
    def test_results_are_in_the_order_of_the_decision(self):
        publication = Recorder(MINUTES, 28).with_results(with_hitters(29, "a", "b", "c"))
        assert [(one.step, one.item, one.estimate) for one in publication.results] == [
            (29, "a", 800),
            (29, "b", 801),
            (29, "c", 802),
        ]

    def test_what_is_due_comes_before_the_step(self):
        publication = Recorder(MINUTES, 25).with_results(with_hitters(29, "a", "b"))
        assert spans(publication) == [*one_by_one(26, 28), (29, 29, 2)]

    def test_it_is_about_all_steps_through_its_own(self):
        assert Recorder(MINUTES, 25).with_results(with_hitters(29, "a")).through == 29

    @pytest.mark.parametrize("size", [LONG_RUN - 1, LONG_RUN])
    def test_up_to_a_hundred_steps_before_it_are_recorded_one_by_one(self, size):
        publication = Recorder(MINUTES, 9).with_results(with_hitters(10 + size, "a"))
        assert spans(publication) == [*one_by_one(10, 9 + size), (10 + size, 10 + size, 1)]

    @pytest.mark.parametrize("size", [LONG_RUN + 1, 10**6])
    def test_more_are_one_record_beside_that_of_the_step(self, size):
        publication = Recorder(MINUTES, 9).with_results(with_hitters(10 + size, "a"))
        assert spans(publication) == [(10, 9 + size, 0), (10 + size, 10 + size, 1)]

    def test_a_decision_that_is_published_again_is_published_as_it_was(self):
        recorder, decided = Recorder(MINUTES, 20), with_hitters(29, "a", "b")
        first = recorder.with_results(decided)
        assert recorder.recorded == 20, "what is not durable yet is not recorded"
        assert recorder.with_results(decided) == first
        assert Recorder(MINUTES, 20).with_results(decided) == first


class TestWithoutResults:
    @pytest.mark.parametrize("closed", [-1, 8, 9])
    def test_there_is_none_when_nothing_is_due(self, closed):
        assert Recorder(MINUTES, 9).without_results(closed, period_of(0)) is None

    def test_a_step_that_is_due_is_published_alone_when_it_closes_on_time(self):
        publication = quiet(9, 10)
        assert (publication.through, publication.results) == (10, ())
        assert spans(publication) == [(10, 10, 0)]

    def test_a_hundred_is_where_long_runs_begin(self):
        assert LONG_RUN == 100

    @pytest.mark.parametrize("size", [2, LONG_RUN - 1, LONG_RUN])
    def test_up_to_a_hundred_steps_are_recorded_one_by_one(self, size):
        publication = quiet(9, 9 + size)
        assert spans(publication) == one_by_one(10, 9 + size)
        assert (publication.through, publication.results) == (9 + size, ())

    @pytest.mark.parametrize("size", [LONG_RUN + 1, 10**6])
    def test_more_are_one_record(self, size):
        publication = quiet(9, 9 + size)
        assert spans(publication) == [(10, 9 + size, 0)]
        assert (publication.through, publication.results) == (9 + size, ())

    def test_it_can_be_asked_for_again_until_it_is_recorded(self):
        recorder = Recorder(MINUTES, 9)
        first = recorder.without_results(15, period_of(15))
        assert recorder.recorded == 9
        assert recorder.without_results(15, period_of(15)) == first
        recorder.recorded = 15
        assert recorder.without_results(15, period_of(15)) is None


class TestPeriodNumbers:
    def test_each_step_has_the_number_of_its_own_period(self):
        numbers = [one.period for one in quiet(-1, 65).steps]
        assert numbers == [step // PERIOD_STEPS for step in range(66)]

    def test_steps_before_a_step_with_hitters_have_theirs(self):
        steps = Recorder(MINUTES, 37).with_results(with_hitters(41, "a")).steps
        assert [(one.step, one.period) for one in steps] == [(38, 1), (39, 1), (40, 2), (41, 2)]

    def test_a_run_has_the_number_of_its_last_step(self):
        publication = Recorder(MINUTES, -1).with_results(with_hitters(120, "a"))
        assert [(one.step, one.period) for one in publication.steps] == [(119, 5), (120, 6)]

    def test_they_count_on_when_new_terms_began_with_a_period(self):
        later = period_of(10).at(30, terms(period_steps=7))
        steps = Recorder(MINUTES, 17).without_results(30, later).steps
        assert [one.period for one in steps] == [0] * 2 + [1] * 7 + [2] * 4

    def test_steps_of_a_longer_period_before_new_terms_have_its_number(self):
        later = period_of(10).at(23, terms(period_steps=7))
        steps = Recorder(MINUTES, 3).without_results(23, later).steps
        assert [one.period for one in steps] == [0] * 16 + [1] * 4


class Service:
    """An engine and its recorder, driven as the service drives them."""

    def __init__(self, engine):
        self.engine = engine
        self.recorder = Recorder(TIMING, engine.closed)
        self.publications = []
        self.decisions = []

    def close_through(self, step):
        """Steps with hitters are published at once."""
        for decided in close_all(self.engine, step):
            self.decisions.append(decided)
            if decided.hitters:
                self._publish(self.recorder.with_results(decided))

    def record_quiet_steps(self):
        """The stream is up to date, or over."""
        due = self.recorder.without_results(self.engine.closed, self.engine.period)
        if due is not None:
            self._publish(due)

    def _publish(self, publication):
        self.publications.append(publication)
        self.recorder.recorded = publication.through

    @property
    def cuts(self):
        """How the engine cut its runs: internal, and it depends on events."""
        return [(one.first, one.step) for one in self.decisions]


def served(events, moments, **changes):
    """Events are there from the beginning; moments are (last step over, up to date?)."""
    service = Service(started(threshold=2, contributions=1_000, **changes))
    feed(service.engine, *events)
    for through, up_to_date in moments:
        service.close_through(through)
        if up_to_date:
            service.record_quiet_steps()
    service.record_quiet_steps()
    return service


def pair(step):
    """Two users with the same item: it is reported."""
    return [("a", "x", step), ("b", "x", step)]


def loners(steps):
    """One user with items of nobody else: nothing is reported."""
    return [("loner", f"rare-{step}", step) for step in steps]


def expected(hitters, moments):
    """The spans of all publications: a function of the steps with hitters and the clock."""
    due_records, recorded = [], -1

    def due(last):
        long = last - recorded > LONG_RUN
        return [(recorded + 1, last, 0)] if long else one_by_one(recorded + 1, last)

    for (before, _), (through, up_to_date) in pairwise([(-1, False), *moments]):
        for step in sorted(step for step in hitters if before < step <= through):
            due_records.append([*due(step - 1), (step, step, 1)])
            recorded = step
        if (up_to_date or through == moments[-1][0]) and recorded < through:
            due_records.append(due(through))
            recorded = through
    return due_records


def clock(moves):
    """Moments from how many steps are over at each, and whether the stream is up to date."""
    over = accumulate(size for size, _ in moves)
    return [(steps - 1, up_to_date) for steps, (_, up_to_date) in zip(over, moves, strict=True)]


STEPS = st.sets(st.integers(0, 500), max_size=6)
# Steps close one by one on time, and many together after an outage.
SIZES = st.sampled_from([1, 1, 2, 30, 99, 100, 101, 102, 250])
MOMENTS = st.lists(st.tuples(SIZES, st.booleans()), min_size=1, max_size=6).map(clock)


class TestQuietSteps:
    """One user alone must not change what is published, let alone with certainty."""

    @pytest.mark.parametrize("step", [0, 3, 7])
    def test_records_without_results_do_not_show_in_which_steps_there_were_events(self, step):
        moments = [(7, True)]
        nobody, one = served([], moments), served(loners([step]), moments)
        assert one.cuts != nobody.cuts, "there is something to hide"
        assert one.publications == nobody.publications
        assert list(map(spans, one.publications)) == [one_by_one(0, 7)]

    @pytest.mark.parametrize("step", [0, 99, 100, 101, 150, 299])
    def test_a_long_run_is_not_cut_by_an_event(self, step):
        moments = [(299, True)]
        nobody, one = served([], moments), served(loners([step]), moments)
        assert one.cuts != nobody.cuts, "there is something to hide"
        assert one.publications == nobody.publications
        assert list(map(spans, one.publications)) == [[(0, 299, 0)]]

    @pytest.mark.parametrize("step", [1, 150, 201, 250])
    def test_a_run_before_or_after_a_step_with_hitters_is_not_cut_by_an_event(self, step):
        moments = [(399, True)]
        nobody, one = served(pair(200), moments), served(pair(200) + loners([step]), moments)
        assert one.cuts != nobody.cuts, "there is something to hide"
        assert one.publications == nobody.publications
        assert list(map(spans, one.publications)) == [
            [(0, 199, 0), (200, 200, 1)],
            [(201, 399, 0)],
        ]

    @pytest.mark.parametrize("step", [1, 9, 10, 11, 49])
    def test_nor_do_they_show_it_when_new_terms_begin(self, step):
        services = [Service(started(threshold=2, period_steps=10)) for _ in range(2)]
        for service, steps in zip(services, ([], [step]), strict=True):
            service.close_through(0)
            service.record_quiet_steps()
            service.engine.terms = terms(period_steps=13)
            feed(service.engine, *loners(steps))
            service.close_through(60)
            service.record_quiet_steps()
        nobody, one = services
        assert one.cuts != nobody.cuts, "there is something to hide"
        assert one.publications == nobody.publications

    def test_how_far_steps_are_closed_on_the_way_does_not_show_before_the_stream_is_up_to_date(
        self,
    ):
        at_once = served(pair(200), [(399, True)])
        in_parts = served(pair(200), [(step, False) for step in (3, 150, 200, 320)] + [(399, True)])
        assert in_parts.publications == at_once.publications

    @settings(deadline=None)
    @given(hitters=STEPS, rare=STEPS, moments=MOMENTS, length=st.sampled_from([7, 100]))
    def test_publications_are_a_function_of_hitters_and_the_clock(
        self, hitters, rare, moments, length
    ):
        crowds = [event for step in hitters for event in pair(step)]
        one = served(crowds + loners(rare), moments, period_steps=length)
        assert one.publications == served(crowds, moments, period_steps=length).publications
        assert list(map(spans, one.publications)) == expected(hitters, moments)
        for publication in one.publications:
            last = publication.steps[-1]
            assert isinstance(publication, Publication)
            assert publication.through == last.step
            assert [result.step for result in publication.results] == [last.step] * last.hitters
            for step in publication.steps:
                assert step.period == step.step // length
