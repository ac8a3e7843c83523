"""Which hitters a metric shows: the largest, and none for longer than it is true."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge

from streamer.monitors.seam import Hitter
from streamer.operations.hitter_gauge import HitterGauge
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Recorder
from tests.stream.making import TIMING, terms

PERIOD = Period.containing(0, terms())


class CurrentEstimates:
    """The gauges behind a stream of decisions, and what they show."""

    def __init__(self, most):
        self._registry = CollectorRegistry()
        gauges = [
            Gauge(name, "Of an item.", ["item"], registry=self._registry)
            for name in ("estimate", "low", "high")
        ]
        self._hitters = HitterGauge(*gauges, most)
        self._recorder = Recorder(TIMING, 0)

    def after(self, decided):
        if decided.hitters:
            publication = self._recorder.with_results(decided)
        else:
            publication = self._recorder.without_results(decided.step, decided.period)
        self._recorder.recorded = decided.step
        self._hitters.published(publication)
        return self.shown

    @property
    def shown(self):
        estimates, lows, highs = (
            {sample.labels["item"]: sample.value for sample in family.samples}
            for family in self._registry.collect()
        )
        # An interval is shown exactly as long as its estimate.
        assert {item: (lows[item], highs[item]) for item in lows | highs} == {
            item: PERIOD.interval(item, int(estimate)) for item, estimate in estimates.items()
        }
        return estimates

    @property
    def items(self):
        return set(self.shown)


def decided(step, reports, refresh_steps=1, first=None):
    period = Period.containing(0, terms(refresh_steps=refresh_steps))
    hitters = tuple(Hitter(item, estimate) for item, estimate in sorted(reports.items()))
    return Decided(step, step if first is None else first, period, hitters)


def test_without_a_rest_they_are_those_of_the_last_step():
    current = CurrentEstimates(10)
    assert current.after(decided(1, {"a": 3, "b": 4})) == {"a": 3, "b": 4}
    assert current.after(decided(2, {"b": 2})) == {"b": 2}
    assert current.after(decided(3, {})) == {}
    assert current.items == set()


def test_a_run_of_empty_steps_ends_them():
    current = CurrentEstimates(10)
    current.after(decided(1, {"a": 3}, refresh_steps=5))
    assert current.after(decided(5, {}, refresh_steps=5, first=2)) == {"a": 3}
    assert current.after(decided(9, {}, refresh_steps=5, first=6)) == {}


def test_the_rest_is_that_of_the_period_in_which_it_was_reported():
    current = CurrentEstimates(10)
    current.after(decided(99, {"a": 3}, refresh_steps=3))
    current.after(decided(100, {"b": 4}, refresh_steps=1))
    assert current.after(decided(101, {}, refresh_steps=1)) == {"a": 3}
    assert current.after(decided(102, {}, refresh_steps=1)) == {}


def test_the_largest_are_shown_and_among_equals_the_first_by_name():
    current = CurrentEstimates(2)
    assert current.after(decided(1, {"d": 5, "c": 5, "b": 5, "a": 1})) == {"b": 5, "c": 5}
    assert current.items == {"b", "c"}


def test_one_that_had_no_room_is_shown_when_there_is_some():
    current = CurrentEstimates(1)
    assert current.after(decided(1, {"small": 2}, refresh_steps=3)) == {"small": 2}
    assert current.after(decided(2, {"large": 9}, refresh_steps=1)) == {"large": 9}
    assert current.after(decided(3, {}, refresh_steps=1)) == {"small": 2}


REPORTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), max_size=4)


@given(
    st.lists(st.tuples(st.integers(1, 4), REPORTS), max_size=12),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_they_are_exactly_the_last_reports_that_are_not_over(steps, refresh_steps, most):
    current = CurrentEstimates(most)
    last, step = {}, 0
    for length, reports in steps:
        step += length
        shown = current.after(decided(step, reports, refresh_steps))
        last |= {item: (step, estimate) for item, estimate in reports.items()}
        valid = {item: n for item, (at, n) in last.items() if step < at + refresh_steps}
        largest = sorted(valid, key=lambda item: (-valid[item], item))[:most]
        assert shown == {item: valid[item] for item in largest}
        assert current.items == set(largest)
