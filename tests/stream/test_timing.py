"""Steps, their ends, and RFC 3339 times against the standard library's."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.stream.timing import (
    LATEST_MOMENT,
    StepTiming,
    duration,
    format_rfc3339,
    parse_rfc3339,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MOMENTS = st.integers(0, LATEST_MOMENT)
TIMINGS = st.builds(
    StepTiming,
    length_ms=st.integers(1, 10**6),
    epoch_ms=st.integers(0, 10**13),
    lateness_ms=st.integers(0, 10**6),
)


class TestSteps:
    @pytest.mark.parametrize(
        ("moment", "step"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (-1, -1), (-10, -1)]
    )
    def test_a_step_holds_its_start_and_not_its_end(self, moment, step):
        assert StepTiming(10).step_at(moment) == step

    def test_steps_are_counted_from_the_epoch(self):
        timing = StepTiming(10, epoch_ms=1_003)
        assert [timing.step_at(moment) for moment in (1_002, 1_003, 1_012, 1_013)] == [-1, 0, 0, 1]

    def test_a_step_has_a_start_and_an_end(self):
        timing = StepTiming(10, epoch_ms=1_003)
        assert (timing.start(2), timing.end(2)) == (1_023, 1_033)

    @given(timing=TIMINGS, moment=st.integers(-(10**12), LATEST_MOMENT))
    def test_every_moment_lies_in_its_step_and_in_no_other(self, timing, moment):
        step = timing.step_at(moment)
        assert timing.start(step) <= moment < timing.end(step)

    @given(timing=TIMINGS, step=st.integers(-(10**6), 10**6))
    def test_a_step_ends_where_the_next_one_starts(self, timing, step):
        assert timing.end(step) == timing.start(step + 1)


class TestLastOver:
    def test_without_lateness_a_step_is_over_at_its_end(self):
        timing = StepTiming(10)
        assert [timing.last_over(moment) for moment in (9, 10, 19, 20)] == [-1, 0, 0, 1]

    def test_with_lateness_a_step_is_over_that_much_later_to_the_millisecond(self):
        timing = StepTiming(10, lateness_ms=5)
        assert [timing.last_over(moment) for moment in (14, 15, 24, 25)] == [-1, 0, 0, 1]

    def test_a_lateness_of_several_steps_keeps_several_steps_open(self):
        timing = StepTiming(10, lateness_ms=25)
        assert [timing.last_over(moment) for moment in (34, 35)] == [-1, 0]

    @given(timing=TIMINGS, moment=MOMENTS)
    def test_an_arrival_is_late_for_the_last_step_over_and_in_time_for_the_next(
        self, timing, moment
    ):
        over = timing.last_over(moment)
        assert timing.end(over) + timing.lateness_ms <= moment
        assert moment < timing.end(over + 1) + timing.lateness_ms


class TestSettings:
    @pytest.mark.parametrize("length", [0, -1, LATEST_MOMENT + 1])
    def test_a_length_out_of_range_is_refused(self, length):
        with pytest.raises(SettingError, match="step_seconds"):
            StepTiming(length)

    @pytest.mark.parametrize("epoch", [-1, LATEST_MOMENT])
    def test_an_epoch_out_of_range_is_refused(self, epoch):
        with pytest.raises(SettingError, match="epoch"):
            StepTiming(10, epoch_ms=epoch)

    @pytest.mark.parametrize("lateness", [-1, LATEST_MOMENT + 1])
    def test_a_lateness_out_of_range_is_refused(self, lateness):
        with pytest.raises(SettingError, match="lateness_seconds"):
            StepTiming(10, lateness_ms=lateness)


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:12Z", 1_767_225_612_000),
            ("2026-01-01t00:00:12z", 1_767_225_612_000),
            ("2026-01-01 00:00:12Z", 1_767_225_612_000),
            ("2026-01-01T02:00:12+02:00", 1_767_225_612_000),
            ("2025-12-31T18:30:12-05:30", 1_767_225_612_000),
            ("2026-01-01T00:00:12-00:00", 1_767_225_612_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("1969-12-31T23:59:59.999Z", -1),
            ("9999-12-31T23:59:59.999Z", LATEST_MOMENT),
        ],
    )
    def test_a_time_names_a_moment(self, text, moment):
        assert parse_rfc3339(text) == moment

    @pytest.mark.parametrize(
        ("fraction", "milliseconds"),
        [("1", 100), ("12", 120), ("123", 123), ("1239", 123), ("0009", 0), ("9" * 500, 999)],
    )
    def test_fractions_of_any_length_are_rounded_down(self, fraction, milliseconds):
        assert parse_rfc3339(f"1970-01-01T00:00:00.{fraction}Z") == milliseconds

    @given(
        moment=st.datetimes(),
        fraction=st.from_regex(r"(\.[0-9]{1,12})?", fullmatch=True),
        offset=st.integers(-1439, 1439),
    )
    def test_it_agrees_with_the_standard_library(self, moment, fraction, offset):
        zone = timezone(timedelta(minutes=offset))
        moment = moment.replace(microsecond=0, tzinfo=zone)
        hours, minutes = divmod(abs(offset), 60)
        sign = "-" if offset < 0 else "+"
        text = moment.isoformat()[:19]
        whole = (moment - EPOCH) // MILLISECOND
        milliseconds = int(fraction[1:].ljust(3, "0")[:3])
        parsed = parse_rfc3339(f"{text}{fraction}{sign}{hours:02}:{minutes:02}")
        assert parsed == whole + milliseconds

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "now",
            "0",
            "1767225612000",
            "2026-01-01",
            "2026-01-01T00:00:12",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:12 Z",
            "2026-01-01T00:00:12.Z",
            "2026-01-01T00:00:12,5Z",
            "2026-01-01T00:00:12+0100",
            "2026-01-01T00:00:12+01",
            "2026-01-01T00:00:12+24:00",
            "2026-01-01T00:00:12+01:60",
            "2026-01-01T00:00:12Z+01:00",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "-2026-01-01T00:00:00Z",
            "26-01-01T00:00:00Z",
            "2026-1-1T0:0:0Z",
            "20260101T000012Z",
            "2026-01-01_00:00:12Z",
            " 2026-01-01T00:00:12Z",
            "2026-01-01T00:00:12Z ",
            "2026-01-01T00:00:12Z\n",
            "2026-01-01T00:00:12\u212a",
            "２０２６-01-01T00:00:12Z",
            "2026-01-01T00:00:1٢Z",
            "2026-01-01T00:00:12.١Z",
        ],
    )
    def test_what_is_no_time_with_an_offset_is_refused(self, text):
        with pytest.raises(ValueError, match=r".+"):
            parse_rfc3339(text)

    @given(st.text(alphabet="0123456789-:TZtz.+ ", max_size=30))
    def test_what_it_makes_of_garbage_is_a_moment_or_a_value_error(self, text):
        try:
            moment = parse_rfc3339(text)
        except ValueError:
            return
        assert isinstance(moment, int)


class TestFormatting:
    @pytest.mark.parametrize(
        ("moment", "text"),
        [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (1_767_225_612_000, "2026-01-01T00:00:12Z"),
            (1_767_225_612_050, "2026-01-01T00:00:12.050Z"),
            (LATEST_MOMENT, "9999-12-31T23:59:59.999Z"),
        ],
    )
    def test_milliseconds_are_written_only_where_there_are_any(self, moment, text):
        assert format_rfc3339(moment) == text

    @given(MOMENTS)
    def test_what_is_written_is_read_back(self, moment):
        assert parse_rfc3339(format_rfc3339(moment)) == moment

    @given(MOMENTS)
    def test_it_agrees_with_the_standard_library(self, moment):
        assert datetime.fromisoformat(format_rfc3339(moment)) == EPOCH + moment * MILLISECOND


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (1_000, "1 second"),
        (90_000, "90 seconds"),
        (5_400_000, "90 minutes"),
        (86_400_000, "1 day"),
        (604_800_000, "7 days"),
        (1_500, "1.5 seconds"),
    ],
)
def test_durations_are_told_in_the_largest_unit_that_fits(milliseconds, words):
    assert duration(milliseconds) == words
