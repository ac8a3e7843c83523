"""Decoding: what is an event, what is rejected and why, and that records never mix."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.stream.decoding import Limits
from streamer.stream.events import EventDecoder
from streamer.stream.reasons import Reason
from streamer.stream.timing import LATEST_MOMENT, StepTiming

EPOCH = 1_000
TIMING = StepTiming(60_000, epoch_ms=EPOCH)
LAST_STEP = TIMING.step_at(LATEST_MOMENT) - 1  # the last one that ends in the year 9999
GOOD = b'{"user":"u","item":"x","time":5000}'
OTHER = b'{"user":"v","item":"y","time":6000}'
TIMELESS = b'{"user":"w","item":"z"}'
ARRIVAL = 7_000
ROOMY = Limits(record_bytes=10**7, user_bytes=10**7, item_bytes=10**7)


def decode(*records, arrivals=None, limits=None):
    if arrivals is not None:
        arrivals = np.array(arrivals, dtype=np.int64)
    return EventDecoder(TIMING, limits).decode(records, arrivals)


def fates(decoded, size):
    """Per record: the event, or the reason why it is none. Each record must have one fate."""
    events = zip(decoded.users, decoded.items, decoded.times.tolist(), strict=True)
    placed = [
        *zip(decoded.places.tolist(), events, strict=True),
        *((rejection.place, rejection.reason) for rejection in decoded.rejections),
    ]
    assert sorted(place for place, _ in placed) == list(range(size))
    return [fate for _, fate in sorted(placed, key=lambda one: one[0])]


def fate(record, arrival=None, limits=None):
    arrivals = None if arrival is None else [arrival]
    return fates(decode(record, arrivals=arrivals, limits=limits), 1)[0]


def with_field(name, value):
    """A good event with one more field, whose JSON is given as it is."""
    return b'{"user":"u","item":"x","' + name.encode() + b'":' + value.encode() + b"}"


class TestContract:
    def test_an_event_with_rfc_3339_time(self):
        record = (
            b'{"user": "u-17", "item": "crash:NPE:Foo.java:42", "time": "2026-01-01T00:00:12Z"}'
        )
        assert fate(record) == ("u-17", "crash:NPE:Foo.java:42", 1_767_225_612_000)

    def test_an_event_with_epoch_milliseconds(self):
        assert fate(with_field("time", "1767225612034")) == ("u", "x", 1_767_225_612_034)

    def test_an_event_with_a_step_lies_at_the_start_of_that_step(self):
        assert fate(with_field("step", "3")) == ("u", "x", EPOCH + 3 * 60_000)

    def test_an_event_without_a_time_lies_at_its_arrival(self):
        assert fate(TIMELESS, arrival=ARRIVAL) == ("w", "z", ARRIVAL)

    @pytest.mark.parametrize("more", [b'"time":null', b'"step":null', b'"time":null,"step":null'])
    def test_a_time_of_null_is_no_time(self, more):
        record = b'{"user":"w","item":"z",' + more + b"}"
        assert fate(record, arrival=ARRIVAL) == ("w", "z", ARRIVAL)

    def test_a_time_of_its_own_goes_before_the_arrival(self):
        assert fate(GOOD, arrival=ARRIVAL) == ("u", "x", 5_000)

    def test_in_a_file_an_event_must_carry_its_time(self):
        assert fate(TIMELESS) is Reason.MISSING_TIME

    def test_unknown_fields_are_ignored(self):
        record = b'{"app":{"v":[1,2.5e3,null]},"user":"u","item":"x","time":5000,"User":"no"}'
        assert fate(record) == ("u", "x", 5_000)

    def test_white_space_around_an_event_is_allowed(self):
        assert fate(b" \t" + GOOD + b"\r\n") == ("u", "x", 5_000)

    def test_of_a_field_that_comes_twice_the_last_one_counts(self):
        assert fate(b'{"user":"u","item":"x","time":1,"time":5000,"user":"v"}') == ("v", "x", 5_000)

    def test_escaped_characters_are_what_they_stand_for(self):
        record = b'{"user":"\\u0000","item":"\\ud83e\\udd8a\\n","time":5000}'
        assert fate(record) == ("\0", "🦊\n", 5_000)

    def test_an_empty_batch_has_no_events(self):
        assert fates(decode(), 0) == []

    @pytest.mark.parametrize(
        ("time", "accepted"),
        [
            (EPOCH - 1, False),
            (EPOCH, True),
            (LATEST_MOMENT - 60_000, True),
            (TIMING.end(LAST_STEP) - 1, True),
            (TIMING.end(LAST_STEP), False),
            (LATEST_MOMENT, False),
            (LATEST_MOMENT + 1, False),
        ],
    )
    def test_times_lie_between_the_epoch_and_the_year_9999(self, time, accepted):
        expected = ("u", "x", time) if accepted else Reason.TIME_OUT_OF_RANGE
        assert fate(with_field("time", str(time))) == expected

    def test_an_arrival_out_of_range_is_no_time_either(self):
        assert fate(TIMELESS, arrival=-1) is Reason.TIME_OUT_OF_RANGE
        assert fate(TIMELESS, arrival=TIMING.end(LAST_STEP)) is Reason.TIME_OUT_OF_RANGE

    def test_the_last_step_is_the_last_one_that_ends_in_the_year_9999(self):
        last = with_field("step", str(LAST_STEP))
        assert fate(last) == ("u", "x", TIMING.start(LAST_STEP))
        assert fate(with_field("step", str(LAST_STEP + 1))) is Reason.TIME_OUT_OF_RANGE

    @given(
        length=st.integers(1, 10**7),
        epoch=st.integers(0, 10**12),
        before=st.integers(-2, 2) | st.integers(0, 2 * 10**7),
    )
    def test_a_time_is_accepted_exactly_if_the_end_of_its_step_can_be_written(
        self, length, epoch, before
    ):
        timing, time = StepTiming(length, epoch), LATEST_MOMENT - before
        decoded = EventDecoder(timing).decode([with_field("time", str(time))], None)
        accepted = timing.end(timing.step_at(time)) <= LATEST_MOMENT
        assert decoded.times.tolist() == [time] * accepted

    @pytest.mark.parametrize(("digits", "accepted"), [(18, True), (19, True), (20, False)])
    def test_a_time_of_more_than_forty_characters_is_none(self, digits, accepted):
        text = f"2026-01-01T00:00:12.{'9' * digits}Z"
        assert (len(text) <= 40) == accepted
        expected = ("u", "x", 1_767_225_612_999) if accepted else Reason.BAD_TIME
        assert fate(with_field("time", f'"{text}"')) == expected


HOSTILE = {
    "empty": (b"", Reason.EMPTY),
    "no value": (None, Reason.EMPTY),
    "white space": (b" \n\t", Reason.NOT_JSON),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, Reason.NOT_JSON),
    "utf-16": (GOOD.decode().encode("utf-16"), Reason.NOT_JSON),
    "garbage": (b"hello", Reason.NOT_JSON),
    "nul byte": (b"\0", Reason.NOT_JSON),
    "cut short": (GOOD[:-1], Reason.NOT_JSON),
    "trailing garbage": (GOOD + b"x", Reason.NOT_JSON),
    "trailing nul": (GOOD + b"\0", Reason.NOT_JSON),
    "trailing comma": (GOOD[:-1] + b",}", Reason.NOT_JSON),
    "two documents": (GOOD + OTHER, Reason.NOT_JSON),
    "two documents on two lines": (GOOD + b"\n" + OTHER, Reason.NOT_JSON),
    "single quotes": (b"{'user':'u','item':'x','time':5000}", Reason.NOT_JSON),
    "NaN": (with_field("time", "NaN"), Reason.NOT_JSON),
    "Infinity": (with_field("time", "-Infinity"), Reason.NOT_JSON),
    "NaN in an unknown field": (with_field("more", "NaN"), Reason.NOT_JSON),
    "leading zero": (with_field("time", "05000"), Reason.NOT_JSON),
    "null": (b"null", Reason.NOT_AN_OBJECT),
    "array": (b"[" + GOOD + b"]", Reason.NOT_AN_OBJECT),
    "array of fields": (b'["u","x",5000]', Reason.NOT_AN_OBJECT),
    "string": (b'"u"', Reason.NOT_AN_OBJECT),
    "number": (b"5000", Reason.NOT_AN_OBJECT),
    "true": (b"true", Reason.NOT_AN_OBJECT),
    "no fields": (b"{}", Reason.MISSING_USER),
    "no user": (b'{"item":"x","time":5000}', Reason.MISSING_USER),
    "empty user": (b'{"user":"","item":"x","time":5000}', Reason.MISSING_USER),
    "no item": (b'{"user":"u","time":5000}', Reason.MISSING_ITEM),
    "empty item": (b'{"user":"u","item":"","time":5000}', Reason.MISSING_ITEM),
    "other case": (b'{"User":"u","item":"x","time":5000}', Reason.MISSING_USER),
    "number for user": (b'{"user":17,"item":"x","time":5000}', Reason.WRONG_TYPE),
    "null for user": (b'{"user":null,"item":"x","time":5000}', Reason.WRONG_TYPE),
    "object for item": (b'{"user":"u","item":{"a":1},"time":5000}', Reason.WRONG_TYPE),
    "array for item": (b'{"user":"u","item":["x"],"time":5000}', Reason.WRONG_TYPE),
    "invalid utf-8": (b'{"user":"\xff","item":"x","time":5000}', Reason.NOT_JSON),
    "overlong utf-8": (b'{"user":"\xc0\x80","item":"x","time":5000}', Reason.NOT_JSON),
    "raw surrogate": (b'{"user":"\xed\xa0\x80","item":"x","time":5000}', Reason.NOT_JSON),
    "lone high surrogate": (b'{"user":"\\ud800","item":"x","time":5000}', Reason.NOT_JSON),
    "lone low surrogate": (b'{"user":"u","item":"\\udc00","time":5000}', Reason.NOT_JSON),
    "raw nul in a string": (b'{"user":"\0","item":"x","time":5000}', Reason.NOT_JSON),
    "raw newline in a string": (b'{"user":"u\nv","item":"x","time":5000}', Reason.NOT_JSON),
    "bad escape": (b'{"user":"\\x41","item":"x","time":5000}', Reason.NOT_JSON),
    "time true": (with_field("time", "true"), Reason.BAD_TIME),
    "time float": (with_field("time", "5000.5"), Reason.BAD_TIME),
    "time whole float": (with_field("time", "5000.0"), Reason.BAD_TIME),
    "time exponent": (with_field("time", "5e3"), Reason.BAD_TIME),
    "time beyond floats": (with_field("time", "1e400"), Reason.BAD_TIME),
    "time array": (with_field("time", "[5000]"), Reason.BAD_TIME),
    "time text of a number": (with_field("time", '"5000"'), Reason.BAD_TIME),
    "time without offset": (with_field("time", '"2026-01-01T00:00:12"'), Reason.BAD_TIME),
    "time of 60000 digits in a text": (
        with_field("time", '"2026-01-01T00:00:12.' + "0" * 60_000 + 'Z"'),
        Reason.BAD_TIME,
    ),
    "time empty": (with_field("time", '""'), Reason.BAD_TIME),
    "time negative": (with_field("time", "-1"), Reason.TIME_OUT_OF_RANGE),
    "time in 64 bits": (with_field("time", str(2**63)), Reason.TIME_OUT_OF_RANGE),
    "time huge": (with_field("time", "9" * 50), Reason.TIME_OUT_OF_RANGE),
    "time before the epoch": (
        with_field("time", '"1969-12-31T23:59:59Z"'),
        Reason.TIME_OUT_OF_RANGE,
    ),
    "time in the year 10000": (
        with_field("time", '"9999-12-31T23:59:59-23:59"'),
        Reason.TIME_OUT_OF_RANGE,
    ),
    "time of 5000 digits": (with_field("time", "9" * 5_000), Reason.BAD_TIME),
    "step negative": (with_field("step", "-1"), Reason.TIME_OUT_OF_RANGE),
    "step huge": (with_field("step", "9" * 50), Reason.TIME_OUT_OF_RANGE),
    "step float": (with_field("step", "1.5"), Reason.WRONG_TYPE),
    "step true": (with_field("step", "true"), Reason.WRONG_TYPE),
    "step text": (with_field("step", '"1"'), Reason.WRONG_TYPE),
    "time and step": (b'{"user":"u","item":"x","time":5000,"step":0}', Reason.TIME_AND_STEP),
    "time and step both null": (
        b'{"user":"u","item":"x","time":null,"step":null}',
        Reason.MISSING_TIME,
    ),
    "user too long": (
        b'{"user":"' + b"u" * 257 + b'","item":"x","time":5000}',
        Reason.USER_TOO_LONG,
    ),
    "item too long": (
        b'{"user":"u","item":"' + b"x" * 1_025 + b'","time":5000}',
        Reason.ITEM_TOO_LONG,
    ),
    "a megabyte": (b'{"user":"' + b"u" * 2**20 + b'","item":"x"}', Reason.TOO_LARGE),
    "a megabyte of white space": (GOOD + b" " * 2**20, Reason.TOO_LARGE),
    "arrays within the size limit": (b"[" * 60_000, Reason.NOT_AN_OBJECT),
    "arrays in an unknown field": (
        with_field("more", "[" * 30_000 + "]" * 30_000),
        Reason.NOT_JSON,
    ),
}


class TestHostileRecords:
    @pytest.mark.parametrize(("record", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
    def test_it_is_rejected_with_its_reason(self, record, reason):
        assert fate(record) is reason

    @pytest.mark.parametrize(("record", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
    def test_the_rest_of_its_batch_goes_on(self, record, reason):
        expected = [("u", "x", 5_000), reason, ("v", "y", 6_000)]
        assert fates(decode(GOOD, record, OTHER), 3) == expected

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            (b"[" * 100_000, Reason.NOT_AN_OBJECT),
            (b'{"a":' * 100_000, Reason.NOT_JSON),
            (with_field("more", "[" * 100_000 + "]" * 100_000), Reason.NOT_JSON),
            (with_field("time", "[" * 100_000 + "]" * 100_000), Reason.BAD_TIME),
        ],
        ids=["arrays", "objects", "in an unknown field", "for the time"],
    )
    def test_nesting_a_hundred_thousand_deep_is_rejected_where_its_size_is_allowed(
        self, record, reason
    ):
        assert fate(record, limits=ROOMY) is reason

    def test_strings_of_a_megabyte_are_decoded_where_their_size_is_allowed(self):
        record = b'{"user":"' + b"u" * 2**20 + b'","item":"' + b"x" * 2**20 + b'","time":5000}'
        assert fate(record, limits=ROOMY) == ("u" * 2**20, "x" * 2**20, 5_000)

    def test_a_number_beyond_floats_in_an_unknown_field_is_ignored(self):
        record = b'{"more":1e400,"user":"u","item":"x","time":5000}'
        assert fate(record) == ("u", "x", 5_000)


class TestLimits:
    LIMITS = Limits(record_bytes=100, user_bytes=8, item_bytes=12)

    @pytest.mark.parametrize("user", ["u" * 8, "é" * 4, "🦊🦊"])
    def test_a_user_of_as_many_bytes_as_allowed_is_accepted(self, user):
        record = json.dumps({"user": user, "item": "x", "time": 5_000}, ensure_ascii=False)
        assert fate(record.encode(), limits=self.LIMITS) == (user, "x", 5_000)

    @pytest.mark.parametrize("user", ["u" * 9, "é" * 4 + "u", "🦊🦊u"])
    def test_a_user_of_one_byte_more_is_rejected(self, user):
        record = json.dumps({"user": user, "item": "x", "time": 5_000}, ensure_ascii=False)
        assert fate(record.encode(), limits=self.LIMITS) is Reason.USER_TOO_LONG

    @pytest.mark.parametrize("item", ["x" * 12, "é" * 6, "🦊🦊🦊"])
    def test_an_item_of_as_many_bytes_as_allowed_is_accepted(self, item):
        record = json.dumps({"user": "u", "item": item, "time": 5_000}, ensure_ascii=False)
        assert fate(record.encode(), limits=self.LIMITS) == ("u", item, 5_000)

    @pytest.mark.parametrize("item", ["x" * 13, "é" * 6 + "x", "🦊🦊🦊x"])
    def test_an_item_of_one_byte_more_is_rejected(self, item):
        record = json.dumps({"user": "u", "item": item, "time": 5_000}, ensure_ascii=False)
        assert fate(record.encode(), limits=self.LIMITS) is Reason.ITEM_TOO_LONG

    def test_escapes_count_for_the_characters_that_they_stand_for(self):
        record = b'{"user":"\\u00e9\\u00e9\\u00e9\\u00e9","item":"x","time":5000}'
        assert fate(record, limits=self.LIMITS) == ("éééé", "x", 5_000)

    def test_a_record_of_as_many_bytes_as_allowed_is_accepted(self):
        assert fate(GOOD.ljust(100), limits=self.LIMITS) == ("u", "x", 5_000)

    def test_a_record_of_one_byte_more_is_rejected(self):
        assert fate(GOOD.ljust(101), limits=self.LIMITS) is Reason.TOO_LARGE

    @pytest.mark.parametrize(
        ("field", "size"), [("user_bytes", 256), ("item_bytes", 1_024), ("record_bytes", 65_536)]
    )
    def test_the_defaults(self, field, size):
        assert getattr(Limits(), field) == size

    @given(
        limits=st.builds(
            Limits,
            record_bytes=st.integers(20, 60),
            user_bytes=st.integers(1, 60),
            item_bytes=st.integers(1, 60),
        ),
        user=st.text(alphabet="uéक🦊\n", min_size=1, max_size=15),
        item=st.text(alphabet="xéक🦊\n", min_size=1, max_size=15),
        ascii_only=st.booleans(),
    )
    def test_an_event_is_accepted_exactly_within_all_three(self, limits, user, item, ascii_only):
        fields = {"user": user, "item": item, "time": 5_000}
        record = json.dumps(fields, ensure_ascii=ascii_only, separators=(",", ":")).encode()
        if len(record) > limits.record_bytes:
            expected = Reason.TOO_LARGE
        elif len(user.encode()) > limits.user_bytes:
            expected = Reason.USER_TOO_LONG
        elif len(item.encode()) > limits.item_bytes:
            expected = Reason.ITEM_TOO_LONG
        else:
            expected = (user, item, 5_000)
        assert fate(record, limits=limits) == expected


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["user", "item", "time", "step", "a"]), inner)
    ),
    max_leaves=10,
)
EVENT_LIKE = st.fixed_dictionaries(
    {"user": st.text() | ANY_JSON, "item": st.text() | ANY_JSON},
    optional={"time": ANY_JSON | st.datetimes().map("{}Z".format), "step": ANY_JSON},
)
HALVES = [(GOOD[:place], GOOD[place:]) for place in (1, 11, 12, 20, 22, len(GOOD) - 1)]
# A few that fit together only if records are run into each other, and many more.
FITTING = st.sampled_from([GOOD, GOOD + OTHER, b"", GOOD[:12], GOOD[12:]])
PIECES = FITTING | st.sampled_from(
    [
        *(GOOD, GOOD, GOOD, OTHER, OTHER, TIMELESS),
        *(GOOD + OTHER, OTHER + GOOD + OTHER, GOOD + b" " + OTHER, GOOD + b"\n" + OTHER),
        *(GOOD + b"\n", b"\n" + GOOD, GOOD.replace(b",", b",\n"), GOOD[:-1] + b"\n}"),
        *(None, b"", b" ", b"\n", b"\n\n", b"\r"),
        *(half for halves in HALVES for half in halves),
        *(GOOD + OTHER[:12], OTHER[12:] + GOOD, b",", b"[", b"]", b"null"),
        *(b'{"user":"","item":"x"}', b'{"item":"x"}', b'{"user":"u","item":"x","time":"?"}'),
    ]
)


class TestAnyRecord:
    @given(st.lists(st.binary() | st.none(), max_size=5))
    def test_bytes_never_stop_the_stream(self, records):
        fates(decode(*records), len(records))

    @pytest.mark.slow
    @given(st.lists(ANY_JSON | EVENT_LIKE, max_size=5), st.booleans())
    def test_json_never_stops_the_stream(self, values, ascii_only):
        records = [
            json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace") for value in values
        ]
        fates(decode(*records, arrivals=[ARRIVAL] * len(records)), len(records))

    @given(st.integers(0, len(GOOD)), st.binary(max_size=4), st.integers(0, 4))
    def test_a_damaged_event_never_stops_the_stream(self, place, inserted, removed):
        damaged = GOOD[:place] + inserted + GOOD[place + removed :]
        fates(decode(OTHER, damaged, OTHER), 3)


class TestRecordsNeverMix:
    @settings(max_examples=300)
    @given(st.lists(FITTING, max_size=4) | st.lists(PIECES | st.binary(max_size=8), max_size=6))
    @example([GOOD + OTHER, b""])
    @example([b" ", GOOD + OTHER])
    @example([*HALVES[2], OTHER + GOOD])
    @example([GOOD + b"\n" + OTHER, b""])
    def test_a_record_has_the_same_fate_in_a_batch_as_alone(self, records):
        arrivals = [ARRIVAL + place for place in range(len(records))]
        together = fates(decode(*records, arrivals=arrivals), len(records))
        alone = [fate(*one) for one in zip(records, arrivals, strict=True)]
        assert together == alone

    def test_two_events_in_one_record_do_not_fill_the_place_of_an_empty_one(self):
        assert fates(decode(GOOD + OTHER, b""), 2) == [Reason.NOT_JSON, Reason.EMPTY]

    def test_an_event_spread_over_two_records_is_no_event(self):
        decoded = decode(GOOD[:12], GOOD[12:], OTHER + GOOD)
        assert [rejection.place for rejection in decoded.rejections] == [0, 1, 2]
