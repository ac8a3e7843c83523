"""Muted items: they do not count, and are not rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.decoding import Limits
from streamer.stream.events import EventDecoder
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.mapping import CONTRACT
from streamer.stream.muting import Muting
from streamer.stream.reasons import Reason
from tests.stream.making import TIMING, batch, new_intake, record

PATTERNS = ("url:/health", "debug:*")


def kept(*items, patterns=PATTERNS):
    decoder = Muting(EventDecoder(TIMING), patterns)
    decoded = decoder.decode([record("u", item, time=5) for item in items], None)
    assert len(decoded.users) == len(decoded.places) == len(decoded.times) == len(decoded.items)
    assert decoded.ignored == len(items) - len(decoded.items)
    return decoded.items


@pytest.mark.parametrize(
    ("item", "muted"),
    [
        ("url:/health", True),
        ("url:/healthy", False),
        ("url:/", False),
        ("debug:", True),
        ("debug:x", True),
        ("debug", False),
        ("a debug:x", False),
        ("DEBUG:x", False),
    ],
)
def test_exact_names_and_beginnings(item, muted):
    assert kept("a", item, "b") == (["a", "b"] if muted else ["a", item, "b"])


@given(st.lists(st.sampled_from(["a", "url:/health", "debug:1", "debug:2", "b"])))
def test_each_item_is_judged_by_itself(items):
    assert kept(*items) == [item for item in items if kept(item)]


def test_what_is_rejected_is_still_rejected():
    records = [b"{", record("u", "debug:x", time=5), record("u", "a", time=6)]
    decoded = Muting(EventDecoder(TIMING), PATTERNS).decode(records, None)
    assert [rejection.reason for rejection in decoded.rejections] == [Reason.NOT_JSON]
    assert decoded.places.tolist() == [2]


def test_events_of_one_record_keep_their_positions():
    mapped = MappedDecoder(CONTRACT, JsonReader, TIMING, Limits())
    one = record("u", ["a", "debug:x", "b"], time=5)
    decoded = Muting(mapped, PATTERNS).decode([one], None)
    assert (decoded.items, decoded.parts.tolist()) == (["a", "b"], [0, 2])


def test_a_muted_item_takes_no_place_of_its_user():
    """Although it is the user's latest one."""
    intake = new_intake(decoder=Muting(EventDecoder(TIMING), PATTERNS))
    events = [record("u", "a", time=1), record("u", "debug:x", time=5)]
    received = intake.receive(batch(events), None, None)
    assert (received.accepted, received.ignored) == (1, 1)
    held = intake.take(0).holdings(items_per_step=1)
    assert held.numbers.names(held.items) == ["a"]
