"""Reading fields from JSON: the structs have the same result as walking path by path."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.stream.decoding import Limits
from streamer.stream.json_reader import JsonReader
from streamer.stream.paths import parse_place
from streamer.stream.reasons import Reason
from streamer.stream.rows import OTHER


def paths(*texts):
    return [parse_place("events.user", text) for text in texts]


def read(record, *texts):
    """The values of one record, or why it has none."""
    rows = JsonReader(paths(*texts), Limits()).read([record])
    if rows.rejections:
        return rows.rejections[0].reason
    return [shown(values[0]) for values in rows.columns.values()]


def shown(value):
    """An object is of no use, whether it was decoded or not."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value if isinstance(value, str | int | float | None) else OTHER


@pytest.mark.parametrize(
    ("record", "path", "value"),
    [
        ({"a": {"b": {"c": "x"}}}, "a.b.c", "x"),
        ({"a": {"b.c": 5}}, 'a."b.c"', 5),
        ({"a": 1.5}, "a", 1.5),
        ({"a": True}, "a", True),
        ({"a": None}, "a", None),
        ({"a": None}, "a.b", None),
        ({"a": "text"}, "a.b", None),
        ({"a": [1]}, "a.b", None),
        ({}, "a.b", None),
        ({"a": {}}, "a", OTHER),
        ({"a": ["x", None, 3]}, "a", ["x", None, 3]),
        ({"a": ["x", {}]}, "a", ["x", OTHER]),
        ({"a": []}, "a", []),
        ([1, "x", {"b": "y"}], "2.b", "y"),
        ([1], "2.b", None),
        ({"a": [1, 2]}, "a.1", 2),
        ({"a": {"1": 2}}, "a.1", None),
        ({"a": {"1": 2}}, 'a."1"', 2),
        ({"v": [{"t": "A"}, {"t": "B"}, {}, None, 7]}, "v.*.t", ["A", "B", None, None, None]),
        ({"v": [{"t": ["A", "B"]}, {"t": "C"}]}, "v.*.t", ["A", "B", "C"]),
        ({"v": None}, "v.*.t", None),
        ({"v": {"t": "A"}}, "v.*.t", None),
        ({"v": [["A"], ["B", "C"]]}, "v.*.*", ["A", "B", "C"]),
        ([{"t": "A"}], "*.t", ["A"]),
    ],
)
def test_the_value_at_a_path(record, path, value):
    assert read(json.dumps(record).encode(), path) == [value]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", Reason.EMPTY),
        (None, Reason.EMPTY),
        (b"{", Reason.NOT_JSON),
        (b'{"a":1} x', Reason.NOT_JSON),
        (b'{"a":{"b":"\xff"}}', Reason.NOT_JSON),
        (b'{"a":{"b":{"c":"\xff}}', Reason.NOT_JSON),
        (b"[" * 60_000, Reason.NOT_AN_OBJECT),
        (b'{"b":' + b"[" * 30_000 + b"]" * 30_000 + b"}", Reason.NOT_JSON),
        (b"5", Reason.NOT_AN_OBJECT),
        (b"null", Reason.NOT_AN_OBJECT),
        (b"[1]", Reason.NOT_AN_OBJECT),
        (b'{"a":1}'.ljust(65_537), Reason.TOO_LARGE),
    ],
)
def test_what_is_no_object_is_rejected(record, reason):
    assert read(record, "a.b") is reason


def test_paths_into_an_array_need_an_array():
    assert read(b'{"a":1}', "0.a") is Reason.NOT_AN_OBJECT


def test_a_number_that_no_float_can_hold_is_of_no_use():
    assert read(b'{"a":1e400,"b":"x"}', "a", "b") == [OTHER, "x"]


def test_one_that_no_path_names_is_passed_over():
    assert read(b'{"c":1e400,"a":{"d":1e400},"b":"x"}', "a.b", "b") == [None, "x"]


def test_a_path_may_end_where_another_goes_on():
    assert read(b'{"a":{"b":"x"}}', "a", "a.b") == [OTHER, "x"]
    assert read(b'{"a":"y"}', "a", "a.b") == ["y", None]


@pytest.mark.parametrize(
    "texts",
    [("a.0", "a.b"), ("a.*", "a.b"), ("a.*.b", "a.0"), ("a", "a.0"), ("a.0", "a"), ("a", "a.*.b")],
)
def test_paths_that_exclude_each_other_are_refused(texts):
    with pytest.raises(SettingError, match="another path expects something else"):
        JsonReader(paths(*texts), Limits())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.just(2.5) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "v", "t"]), inner, max_size=3)
    ),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.sampled_from(["a", "b", "v", "t"]), VALUES, max_size=4)
PATHS = ("a", "a.b", "b.t.a", "v.*.t", "v.*.a.b", "t.1.a", "t.0")


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(RECORDS, max_size=4))
@example([{"a": {"b": "x"}}, {"a": "x"}])
@example([{"a": {"b": {}}}, {"b": None}])
def test_a_record_has_the_same_values_in_a_batch_as_walked_alone(records):
    encoded = [json.dumps(record).encode() for record in records]
    reader = JsonReader(paths(*PATHS), Limits())
    rows = reader.read(encoded)
    assert not rows.rejections
    for number, values in enumerate(rows.columns.values()):
        walked = [reader._walk(record, None).values[number] for record in encoded]
        assert list(map(shown, values)) == list(map(shown, walked))
