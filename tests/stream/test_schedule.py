"""When a step is due and when its results leave: by the clock alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming

LENGTH, EPOCH, LATENESS, SKEW, RELEASE = 10, 100, 5, 3, 4
TIMING = StepTiming(LENGTH, EPOCH, LATENESS)
SCHEDULE = Schedule(TIMING, SKEW, RELEASE)

moments = st.integers(EPOCH, EPOCH + 500)
schedules = st.builds(
    Schedule,
    st.builds(StepTiming, st.integers(1, 50), st.just(EPOCH), st.integers(0, 70)),
    st.integers(0, 70),
    st.integers(0, 200),
)


def test_a_step_is_due_after_its_end_lateness_and_skew():
    assert SCHEDULE.due_at(4) == TIMING.end(4) + LATENESS + SKEW


def test_its_results_leave_a_fixed_time_after_that():
    assert SCHEDULE.release_at(4) == SCHEDULE.due_at(4) + RELEASE


@pytest.mark.parametrize(("after", "step"), [(-1, 3), (0, 4), (LENGTH - 1, 4), (LENGTH, 5)])
def test_the_last_step_that_is_due(after, step):
    assert SCHEDULE.last_due(SCHEDULE.due_at(4) + after) == step


def test_without_skew_a_step_is_due_with_the_lateness():
    assert Schedule(TIMING).last_due(TIMING.end(4) + LATENESS) == 4


def test_without_a_delay_results_leave_when_their_step_is_due():
    assert Schedule(TIMING).release_at(4) == Schedule(TIMING).due_at(4)


@given(schedules, moments)
def test_a_step_is_due_from_its_moment_on_and_not_before(schedule, now):
    step = schedule.last_due(now)
    assert schedule.due_at(step) <= now < schedule.due_at(step + 1)


@given(schedules, moments)
def test_the_next_thing_happens_after_as_long_as_was_said_and_not_before(schedule, now):
    def state(moment):
        return schedule.last_due(moment), schedule.last_due(moment - schedule.release_ms)

    wait = schedule.until_next(now)
    assert 1 <= wait <= schedule.timing.length_ms
    assert state(now + wait) != state(now)
    assert state(now + wait - 1) == state(now)
