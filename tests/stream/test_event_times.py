"""Times of events: what texts and numbers mean in each format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.event_times import EventTimes, TimeFormat
from streamer.stream.reasons import Reason
from streamer.stream.timing import LATEST_MOMENT, StepTiming

TIMING = StepTiming(1000)
MOMENT = 1_767_225_612_345
TEXT = "2026-01-01T00:00:12.345Z"
ARRIVAL = 7_000
NUMBERS = [each for each in TimeFormat if each is not TimeFormat.ISO]


def read(value, form, arrival=ARRIVAL):
    arrivals = None if arrival is None else np.array([arrival])
    times, faults = EventTimes(TIMING, TimeFormat(form)).read([value], arrivals)
    return faults[0] if faults else int(times[0])


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("auto", TEXT),
        ("auto", MOMENT),
        ("iso", TEXT),
        ("iso", "2026-01-01 02:00:12.345678+02:00"),
        ("posix", 1_767_225_612.345),
        ("posix", "1767225612.345"),
        ("millis", MOMENT),
        ("millis", str(MOMENT)),
        ("millis", MOMENT + 0.7),
        ("micros", MOMENT * 1000 + 999),
        ("micros", str(MOMENT * 1000 + 999)),
        ("nanos", MOMENT * 10**6 + 999_999),
        ("nanos", str(MOMENT * 10**6 + 999_999)),
    ],
)
def test_what_a_time_means(form, value):
    assert read(value, form) == MOMENT


def test_posix_seconds_are_whole_or_have_a_fraction():
    assert read(1_767_225_612, "posix") == 1_767_225_612_000
    assert read("1767225612", "posix") == 1_767_225_612_000


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("magnitude", range(1, 20))
def test_a_unit_is_never_guessed_from_the_size(form, magnitude):
    per_second = {"posix": 1, "micros": 10**6, "nanos": 10**9}.get(form, 1000)
    moment = 10**magnitude * 1000 // per_second
    fits = moment < TIMING.start(TIMING.step_at(LATEST_MOMENT))
    assert read(10**magnitude, form) == (moment if fits else Reason.TIME_OUT_OF_RANGE)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("auto", str(MOMENT)),
        ("auto", MOMENT + 0.5),
        ("auto", "yesterday"),
        ("iso", MOMENT),
        ("iso", 1.5),
        ("iso", "2026-01-01T00:00:12"),
        ("posix", TEXT),
        ("posix", "1e9"),
        ("posix", ""),
        ("posix", "1."),
        ("posix", ".5"),
        ("posix", "1_000"),
        ("posix", "٣"),
        ("posix", "9" * 41),
        *((form, value) for form in TimeFormat for value in (True, ["x"], object())),
    ],
)
def test_what_is_no_time(form, value):
    assert read(value, form) is Reason.BAD_TIME


@pytest.mark.parametrize("form", TimeFormat)
def test_no_time_means_the_arrival(form):
    assert read(None, form) == ARRIVAL
    assert read(None, form, arrival=None) is Reason.MISSING_TIME


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("posix", 10**30),
        ("posix", 1e300),
        ("posix", -1),
        ("posix", "-1.5"),
        ("posix", 2**62),
        ("millis", 1e300),
        ("nanos", -1),
        ("nanos", 10**40),
    ],
)
def test_times_that_no_step_has(form, value):
    assert read(value, form) is Reason.TIME_OUT_OF_RANGE


VALUES = (
    st.integers(-10, 2**70)
    | st.floats(-10, 1e20)
    | st.sampled_from([None, TEXT, "5", "5.5", "?", True, 1_767_225_612.001])
)


@pytest.mark.parametrize("form", TimeFormat)
@given(values=st.lists(VALUES, max_size=4) | st.lists(st.floats(0, 1e13), max_size=4))
def test_a_time_means_the_same_in_a_batch_as_alone(form, values):
    arrivals = np.arange(len(values)) + ARRIVAL
    times, faults = EventTimes(TIMING, form).read(values, arrivals)
    together = [faults.get(index, int(time)) for index, time in enumerate(times)]
    alone = [read(value, form, int(arrivals[index])) for index, value in enumerate(values)]
    assert together == alone
    mixed = [read_second(value, form) for value in values if value is not None]
    assert mixed == [one for one, value in zip(alone, values, strict=True) if value is not None]


def read_second(value, form):
    """After a time of another kind, so that both are read one by one."""
    times, faults = EventTimes(TIMING, form).read([None, value], np.array([ARRIVAL, ARRIVAL]))
    return faults.get(1, int(times[1]))
