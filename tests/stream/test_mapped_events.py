"""Mapped records: what they become, what is ignored, what is rejected and why."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.stream.conditions import Condition, Exists, InRange, OneOf
from streamer.stream.decoding import Limits
from streamer.stream.event_times import TimeFormat
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.mapping import (
    CONTRACT,
    Mapping,
    item_places,
    single_place,
    time_places,
    user_places,
)
from streamer.stream.reasons import Reason
from streamer.stream.rows import Rows
from streamer.stream.timing import StepTiming
from tests.stream.making import batch, new_intake

TIMING = StepTiming(1000)
ARRIVAL = 7_000


@dataclass
class Stored:
    """What a broker stores beside the values."""

    stored_keys: list
    stored_headers: list

    def keys(self):
        return self.stored_keys

    def headers(self):
        return self.stored_headers


def mapping(user="u", item="i", time="t", form=TimeFormat.AUTO, where=()):
    def several(texts):
        return [texts] if isinstance(texts, str) else texts

    conditions = tuple(Condition(single_place("events.where", f), test) for f, test in where)
    return Mapping(
        user_places(several(user)),
        item_places(several(item)),
        time_places(several(time)),
        form,
        conditions,
    )


def decode(chosen, *records, envelopes=None, limits=None, arrivals=True):
    decoder = MappedDecoder(chosen, JsonReader, TIMING, limits or Limits())
    encoded = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    moments = np.full(len(records), ARRIVAL) if arrivals else None
    return decoder.decode(encoded, moments, envelopes)


def events(decoded):
    return list(zip(decoded.users, decoded.items, decoded.times.tolist(), strict=True))


def fate(chosen, record, **more):
    """The one event of a record, why it is rejected, or None if it is ignored."""
    decoded = decode(chosen, record, **more)
    assert len(decoded.users) + len(decoded.rejections) + decoded.ignored == 1
    if decoded.rejections:
        return decoded.rejections[0].reason
    return events(decoded)[0] if decoded.users else None


class TestUsersItemsAndTimes:
    def test_nested_fields(self):
        chosen = mapping("context.user.id", 'attributes."exception.type"', "meta.at")
        record = {
            "context": {"user": {"id": "u-1"}},
            "attributes": {"exception.type": "NPE"},
            "meta": {"at": "2026-01-01T00:00:12Z"},
        }
        assert fate(chosen, record) == ("u-1", "NPE", 1_767_225_612_000)

    @pytest.mark.parametrize(
        ("record", "user"),
        [
            ({"a": "x", "b": "y"}, "x"),
            ({"b": "y"}, "y"),
            ({"a": None, "b": "y"}, "y"),
            ({"a": "", "b": "y"}, "y"),
            ({"a": 0, "b": "y"}, "0"),
            ({"a": 17}, "17"),
        ],
    )
    def test_the_first_path_that_is_there_counts(self, record, user):
        assert fate(mapping(user=["a", "b"]), {**record, "i": "x", "t": 5}) == (user, "x", 5)

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            ({"i": "x"}, Reason.MISSING_USER),
            ({"u": None, "i": "x"}, Reason.MISSING_USER),
            ({"u": "", "i": "x"}, Reason.MISSING_USER),
            ({"u": 1.5, "i": "x"}, Reason.WRONG_TYPE),
            ({"u": True, "i": "x"}, Reason.WRONG_TYPE),
            ({"u": {}, "i": "x"}, Reason.WRONG_TYPE),
            ({"u": ["a"], "i": "x"}, Reason.WRONG_TYPE),
            ({"u": "u"}, Reason.MISSING_ITEM),
            ({"u": "u", "i": ""}, Reason.MISSING_ITEM),
            ({"u": "u", "i": []}, Reason.MISSING_ITEM),
            ({"u": "u", "i": False}, Reason.WRONG_TYPE),
            ({"u": "u", "i": {"a": 1}}, Reason.WRONG_TYPE),
            ({"u": "u", "i": "x", "t": "then"}, Reason.BAD_TIME),
            ({"u": "u", "i": "x", "t": {}}, Reason.BAD_TIME),
            ({"u": "u", "i": "x", "t": -1}, Reason.TIME_OUT_OF_RANGE),
            ({"i": "", "t": "then"}, Reason.MISSING_USER),
            ({"u": "u", "t": "then"}, Reason.MISSING_ITEM),
            ({"u": "u" * 257, "i": "x"}, Reason.USER_TOO_LONG),
            ({"u": "u", "i": "é" * 513}, Reason.ITEM_TOO_LONG),
            ([], Reason.NOT_AN_OBJECT),
            (b"{", Reason.NOT_JSON),
        ],
    )
    def test_what_is_rejected_and_why(self, record, reason):
        assert fate(mapping(), record) is reason

    def test_an_event_without_a_time_has_its_arrival_time(self):
        assert fate(mapping(), {"u": "u", "i": "x"}) == ("u", "x", ARRIVAL)
        assert fate(mapping(), {"u": "u", "i": "x"}, arrivals=False) is Reason.MISSING_TIME

    def test_the_timestamp_of_the_record_goes_before_what_stands_behind_it(self):
        record = {"u": "u", "i": "x", "t": 5}
        assert fate(mapping(time="$timestamp"), record) == ("u", "x", ARRIVAL)
        assert fate(mapping(time=["$timestamp", "t"]), record) == ("u", "x", ARRIVAL)
        assert fate(mapping(time=["t", "$timestamp"]), record) == ("u", "x", 5)

    def test_the_format_of_times(self):
        record = {"u": "u", "i": "x", "t": 5}
        assert fate(mapping(form=TimeFormat.POSIX), record) == ("u", "x", 5_000)


class TestTemplates:
    FORM = "{type}@{app.version}"

    @pytest.mark.parametrize(
        ("record", "item"),
        [
            ({"type": "NPE", "app": {"version": "1.2"}}, "NPE@1.2"),
            ({"type": "50%", "app": {"version": 3}}, "50%@3"),
            ({"type": "NPE"}, Reason.MISSING_ITEM),
            ({"type": "", "app": {"version": "1"}}, Reason.MISSING_ITEM),
            ({"type": {}, "app": {"version": "1"}}, Reason.WRONG_TYPE),
            ({"type": ["a"], "app": {"version": ["b"]}}, Reason.WRONG_TYPE),
        ],
    )
    def test_several_fields_make_an_item(self, record, item):
        found = fate(mapping(item=self.FORM), {"u": "u", "t": 5, **record})
        assert found == (item if isinstance(item, Reason) else ("u", item, 5))

    def test_text_around_the_fields_stays_as_it_is(self):
        record = {"u": "u", "i": "x", "t": 5}
        assert fate(mapping(item="100%s: {i} %d"), record) == ("u", "100%s: x %d", 5)

    def test_another_way_if_a_field_is_missing(self):
        chosen = mapping(item=[self.FORM, "type"])
        assert fate(chosen, {"u": "u", "t": 5, "type": "NPE"}) == ("u", "NPE", 5)


class TestSeveralItems:
    def test_each_counts_for_the_same_user_and_time(self):
        decoded = decode(mapping(), {"u": "u", "i": ["a", "b", 7], "t": 5}, {"u": "v", "i": "c"})
        assert events(decoded) == [
            *(("u", "a", 5), ("u", "b", 5), ("u", "7", 5)),
            ("v", "c", ARRIVAL),
        ]
        assert decoded.places.tolist() == [0, 0, 0, 1]
        assert decoded.parts.tolist() == [0, 1, 2, -1]

    def test_a_bad_one_leaves_its_neighbours(self):
        decoded = decode(mapping(), {"u": "u", "i": ["a", None, {}, "x" * 1_025, "b"], "t": 5})
        assert decoded.items == ["a", "b"]
        assert [(r.place, r.part, r.reason) for r in decoded.rejections] == [
            (0, 1, Reason.MISSING_ITEM),
            (0, 2, Reason.WRONG_TYPE),
            (0, 3, Reason.ITEM_TOO_LONG),
        ]

    def test_a_list_of_nothing_is_not_there(self):
        chosen = mapping(item=["tags", "i"])
        for tags in ([], [None], ["", None]):
            assert fate(chosen, {"u": "u", "tags": tags, "i": "x", "t": 5}) == ("u", "x", 5)

    def test_a_record_with_one_item_has_no_positions(self):
        decoded = decode(mapping(), {"u": "u", "i": ["a"], "t": 5}, {"i": "c"})
        [rejection] = decoded.rejections
        assert (rejection.place, rejection.part) == (1, None)
        [rejection] = decode(mapping(), {"i": "c"}).rejections
        assert rejection.part is None

    def test_a_template_with_a_list_is_a_list(self):
        chosen = mapping(item=["{v.*.type}@{release}", "v.*.type"])
        record = {"u": "u", "t": 5, "v": [{"type": "A"}, {"type": "B"}]}
        assert decode(chosen, {**record, "release": "1"}).items == ["A@1", "B@1"]
        assert decode(chosen, record).items == ["A", "B"]
        assert fate(chosen, {**record, "v": []}) is Reason.MISSING_ITEM

    def test_rejections_for_their_time_name_the_place_in_the_record(self):
        decoder = MappedDecoder(mapping(), JsonReader, StepTiming(10), Limits())
        record = json.dumps({"u": "u", "i": ["a", "b"], "t": 50_000}).encode()
        received = new_intake(decoder=decoder).receive(batch([record], [5]), None, 5)
        assert [(r.place, r.part, r.reason) for r in received.rejections] == [
            (0, 0, Reason.TIME_AHEAD),
            (0, 1, Reason.TIME_AHEAD),
        ]


class TestWhere:
    @pytest.mark.parametrize(
        ("test", "wanted", "unwanted"),
        [
            (OneOf(("track",)), ["track"], ["page", None, 1, {}, ["track"], "", "Track"]),
            (OneOf((1, "a")), [1, 1.0, "a"], [True, "1", 2, None]),
            (OneOf((True,)), [True], [1, "true", False, None]),
            (InRange(17, 24), [17, 20.5, 24], [16, 24.1, "18", True, None, []]),
            (InRange(17, None), [17, 10**30], [16]),
            (InRange(None, 3), [-1, 3], [4]),
            (Exists(True), ["x", "", 0, False, [], {}], [None]),
            (Exists(False), [None], ["x", 0, {}]),
        ],
    )
    def test_which_values_are_wanted(self, test, wanted, unwanted):
        chosen = mapping(where=[("f", test)])
        for value in wanted:
            assert fate(chosen, {"f": value, "u": "u", "i": "x", "t": 5}) == ("u", "x", 5)
        for value in unwanted:
            assert fate(chosen, {"f": value, "u": "u", "i": "x", "t": 5}) is None

    def test_a_field_that_is_missing_does_not_exist(self):
        event = {"u": "u", "i": "x", "t": 5}
        assert fate(mapping(where=[("f.g", Exists(True))]), event) is None
        assert fate(mapping(where=[("f.g", Exists(False))]), event) == ("u", "x", 5)

    def test_all_conditions_must_hold(self):
        chosen = mapping(where=[("f", OneOf((1,))), ("g", OneOf((2,)))])
        records = [
            {"f": f, "g": g, "u": "u", "i": f"{f}{g}", "t": 5} for f in (1, 2) for g in (1, 2)
        ]
        decoded = decode(chosen, *records)
        assert (decoded.items, decoded.places.tolist(), decoded.ignored) == (["12"], [1], 3)

    def test_an_event_that_is_not_wanted_is_never_rejected(self):
        assert fate(mapping(where=[("f", Exists(True))]), {"u": {}, "i": 1.5, "t": "?"}) is None

    def test_a_record_that_is_no_json_is_rejected(self):
        assert fate(mapping(where=[("f", Exists(True))]), b"?") is Reason.NOT_JSON


class TestFieldsOfTheRecord:
    EVENT = b'{"u":"u","i":"x","t":5}'

    def test_the_key_as_user(self):
        stored = Stored([b"k\xc3\xa9y", None, b"\xff", b""], None)
        decoded = decode(mapping(user="$key"), *[self.EVENT] * 4, envelopes=stored)
        assert events(decoded) == [("kéy", "x", 5)]
        assert [(r.place, r.reason) for r in decoded.rejections] == [
            (1, Reason.MISSING_USER),
            (2, Reason.WRONG_TYPE),
            (3, Reason.MISSING_USER),
        ]

    def test_a_record_that_has_none_of_them(self):
        assert fate(mapping(user="$key"), self.EVENT) is Reason.MISSING_USER

    def test_headers(self):
        headers = [[("kind", b"a"), ("kind", b"b")], [("other", b"a")], [("kind", None)]]
        chosen = mapping(item="{$header.kind}:{i}", where=[("$header.kind", Exists(True))])
        decoded = decode(chosen, *[self.EVENT] * 3, envelopes=Stored(None, headers))
        assert (decoded.items, decoded.ignored) == (["b:x"], 2)

    def test_a_rejected_record_shifts_nobody_elses(self):
        stored = Stored([b"a", b"b", b"c"], None)
        decoded = decode(mapping(user="$key"), self.EVENT, b"?", self.EVENT, envelopes=stored)
        assert decoded.users == ["a", "c"]

    def test_nobody_asks_for_what_no_path_names(self):
        assert decode(mapping(), self.EVENT, envelopes=Stored(None, None)).users == ["u"]


def test_a_format_may_hold_many_events_of_many_users_in_a_record():
    """As OTLP does: what is wrong with one leaves the others."""
    chosen = mapping()

    class ManyInOne:
        def __init__(self, paths, limits):
            self.paths = paths

        def read(self, records):
            columns = ["a", None, "b"], ["x", "y", "z"], [5, 6, None]
            named = dict(zip(self.paths, map(list, columns), strict=True))
            return Rows(np.array([1, 1, 1]), named, [], np.array([4, 5, 6]))

    decoder = MappedDecoder(chosen, ManyInOne, TIMING, Limits())
    decoded = decoder.decode([b"", b"..."], np.array([ARRIVAL, ARRIVAL + 1]))
    assert events(decoded) == [("a", "x", 5), ("b", "z", ARRIVAL + 1)]
    assert (decoded.places.tolist(), decoded.parts.tolist()) == ([1, 1], [4, 6])
    [rejection] = decoded.rejections
    assert (rejection.place, rejection.part, rejection.reason) == (1, 5, Reason.MISSING_USER)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**14) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("uitvf"), inner, max_size=4)
    ),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.sampled_from("uitvf"), ANY, max_size=5) | ANY
WIDE = mapping(
    ["u", "f.u"],
    ["{v.*.i}@{t}", "i", "v.*.i"],
    ["t", "f.t"],
    where=[("f", Exists(True)), ("u.u", Exists(False))],
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(RECORDS | st.binary(max_size=4), max_size=5))
def test_an_event_has_the_same_fate_in_a_batch_as_alone(records):
    together = decode(WIDE, *records)
    alone = [decode(WIDE, record) for record in records]
    assert events(together) == [event for each in alone for event in events(each)]
    assert together.ignored == sum(each.ignored for each in alone)
    assert together.rejections == [
        replace(rejection, place=place)
        for place, each in enumerate(alone)
        for rejection in each.rejections
    ]


def test_the_event_contract_may_be_mapped_like_any_other():
    assert fate(CONTRACT, {"user": "u", "item": "x", "time": 5}) == ("u", "x", 5)
