"""The rule for one event, and that nothing else in its batch matters to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.fate import FateRule
from streamer.stream.timing import LATEST_MOMENT, StepTiming

LENGTH, EPOCH, LATENESS, AHEAD = 10, 100, 5, 7
RULE = FateRule(StepTiming(LENGTH, EPOCH, LATENESS), AHEAD)


def moments(*values):
    return np.array(values, dtype=np.int64)


def judge(times, arrivals, now=None):
    """Per event its step and its one fate."""
    given_arrivals = None if arrivals is None else moments(*arrivals)
    fates = RULE.judge(moments(*times), given_arrivals, now)
    words = []
    for which in zip(fates.counts, fates.late, fates.time_ahead, fates.arrival_ahead, strict=True):
        assert sum(map(bool, which)) == 1, "an event has exactly one fate"
        words.append(("counts", "late", "time ahead", "arrival ahead")[which.index(True)])
    return list(zip(fates.steps.tolist(), words, strict=True))


def judge_one(time, arrival, now=None):
    return judge([time], [arrival], now)[0]


class TestLate:
    @pytest.mark.parametrize("time", [120, 125, 129])
    def test_an_arrival_just_before_the_end_and_the_lateness_counts(self, time):
        assert judge_one(time, 134) == (2, "counts")

    @pytest.mark.parametrize("time", [120, 125, 129])
    def test_an_arrival_exactly_at_the_end_and_the_lateness_is_late(self, time):
        assert judge_one(time, 135) == (2, "late")

    def test_the_next_step_is_over_a_step_later(self):
        assert [judge_one(130, arrival)[1] for arrival in (144, 145)] == ["counts", "late"]

    @given(time=st.integers(EPOCH, EPOCH + 100), arrival=st.integers(EPOCH, EPOCH + 200))
    def test_what_is_late_is_what_arrives_when_its_step_is_over(self, time, arrival):
        late = judge_one(time, arrival)[1] == "late"
        assert late == (RULE.timing.step_at(time) <= RULE.timing.last_over(arrival))


class TestAhead:
    def test_a_time_as_far_ahead_of_its_arrival_as_allowed_counts(self):
        assert judge_one(127, 120) == (2, "counts")

    def test_a_time_one_millisecond_further_ahead_is_rejected(self):
        assert judge_one(128, 120) == (2, "time ahead")

    def test_an_arrival_as_far_ahead_of_the_clock_as_allowed_counts(self):
        assert judge_one(120, 127, now=120) == (2, "counts")

    def test_an_arrival_one_millisecond_further_ahead_is_rejected(self):
        assert judge_one(128, 128, now=120) == (2, "arrival ahead")

    def test_an_arrival_ahead_of_the_clock_is_not_called_late(self):
        assert judge_one(120, 10_000, now=120) == (2, "arrival ahead")

    def test_without_a_clock_no_arrival_is_ahead(self):
        assert judge_one(1_000_000, 1_000_000) == (99_990, "counts")

    @pytest.mark.parametrize("arrival", [-1, -(2**63)])
    def test_an_arrival_from_before_all_time_makes_any_event_ahead(self, arrival):
        assert judge_one(LATEST_MOMENT, arrival, now=120)[1] == "time ahead"

    @pytest.mark.parametrize("time", [EPOCH, LATEST_MOMENT])
    def test_an_arrival_at_the_end_of_all_time_is_ahead_of_the_clock_and_otherwise_late(self, time):
        last = 2**63 - 1
        assert judge_one(time, last, now=LATEST_MOMENT)[1] == "arrival ahead"
        assert judge_one(time, last)[1] == "late"


class TestFiles:
    @given(st.lists(st.integers(EPOCH, LATEST_MOMENT), max_size=10))
    def test_without_arrivals_every_event_counts(self, times):
        assert judge(times, None) == [((time - EPOCH) // LENGTH, "counts") for time in times]


class TestAlone:
    events = st.lists(
        st.tuples(
            st.integers(EPOCH, EPOCH + 60) | st.integers(EPOCH, LATEST_MOMENT),
            st.integers(EPOCH - 20, EPOCH + 90) | st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=12,
    )

    @given(events=events, now=st.none() | st.integers(EPOCH, EPOCH + 60))
    def test_an_event_has_the_same_fate_in_any_company(self, events, now):
        times, arrivals = [time for time, _ in events], [arrival for _, arrival in events]
        assert judge(times, arrivals, now) == [judge_one(*event, now) for event in events]

    @given(events=events)
    def test_the_clock_matters_to_arrivals_ahead_of_it_and_to_nothing_else(self, events):
        for time, arrival in events:
            before, after = judge_one(time, arrival, now=EPOCH), judge_one(time, arrival, now=2**62)
            assert before == after or before[1] == "arrival ahead"
