"""Two worlds: whatever users send, everything that leaves is equal, and leaves at the same time.

The decider reports a fixed list, so nothing that leaves the system may depend on any user's
data: every byte in the output files, on the page and in its event stream, and the moment at
which it appears. Broken twins show that the test notices what it is for.
"""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from streamer.monitors.attention import Changes
from streamer.service.loop import Loop
from streamer.service.progress import Progress
from streamer.stream.closing import Frontier
from streamer.stream.conditions import Condition, OneOf
from streamer.stream.decoding import Limits
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.mapping import Mapping, item_places, single_place, time_places, user_places
from streamer.stream.muting import Muting
from tests.two_worlds.simulation import (
    BEGIN,
    LENGTH,
    TIMING,
    Crash,
    FixedList,
    Script,
    Sent,
    event,
    play,
)

POINTS = ["decided", "appended", "published", "noted", "snapshot taken"]
STEPS = 8
MOMENTS = st.integers(0, STEPS * LENGTH)
ITEMS = st.sampled_from(["crash:A", "crash:B", "url:/1", "url:/2"])
HOSTILE = st.sampled_from([b"", b"{}", b"no JSON", b"\xff", b'{"user":"u","item":"x","time":true}'])


@st.composite
def sent_records(draw):
    """Events in time, late, ahead and far ahead, and records that are no events."""
    at, partition = draw(MOMENTS), draw(st.sampled_from("0123"))
    stamp = draw(st.none() | st.integers(-STEPS * LENGTH, 2 * STEPS * LENGTH))
    if draw(st.integers(0, 9)) == 0:
        return Sent(at, draw(HOSTILE), partition, stamp)
    time = draw(st.none() | st.integers(0, 2 * STEPS * LENGTH))
    sent = event(at, f"u{draw(st.integers(0, 5))}", draw(ITEMS), time, partition)
    return replace(sent, stamp=stamp)


@st.composite
def scripts(draw):
    outages = sorted(draw(st.lists(MOMENTS, max_size=4, unique=True)))
    pairs = zip(outages[::2], outages[1::2], strict=False)
    late, more = st.integers(0, STEPS * LENGTH), st.sampled_from(["", "1", "12", "123"])
    crashes = st.builds(
        Crash, st.sampled_from(POINTS), st.integers(0, STEPS), st.integers(1, 3 * LENGTH)
    ) | st.builds(Crash, st.none(), MOMENTS, st.integers(1, 3 * LENGTH))
    return Script(
        steps=STEPS,
        hitters=tuple(draw(st.sets(st.integers(0, STEPS)))),
        partitions=(("0", 0), *((name, draw(late)) for name in draw(more))),
        outages=tuple(pairs),
        crashes=tuple(draw(st.lists(crashes, max_size=4))),
        broker_behind=draw(st.integers(0, 50)),
        trusts_producers=draw(st.booleans()),
        starts_at=draw(st.integers(0, 2 * LENGTH)),
        start_step=draw(st.none() | st.integers(-150, 1)),
        most_records=draw(st.integers(1, 4)),
        release=draw(st.sampled_from([0, 25, 250, 2_500])),
        refresh=draw(st.sampled_from([0, 1, 3])),
        gone=tuple(draw(st.sets(st.integers(0, STEPS)))),
        period=draw(st.sampled_from([3, 100])),
        items_per_step=draw(st.sampled_from([1, 3])),
    )


WORLDS = st.lists(sent_records(), max_size=12)
ONE_STEP = Script(steps=4)
OUTAGE = Script(steps=STEPS, outages=((1_100, 6_100),))
LONG_AWAY = Script(steps=3, start_step=-201, starts_at=960)
BACKLOG = Script(steps=STEPS, start_step=0, starts_at=6_000)
HELD = tuple(Crash(None, 1_300 + 100 * number, 50) for number in range(4))
PUBLIC = Script(STEPS, (0, 1), refresh=0, gone=(4,), starts_at=0)
DECIDED_BEFORE = Script(STEPS, crashes=(Crash("appended", 0, 20),), starts_at=0, release=0)
LATER = [event(at) for at in (500, 1_500, 2_500, 3_500, 4_500)]


PATIENT = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.slow
@settings(PATIENT, max_examples=150, derandomize=True)
@given(scripts(), WORLDS, WORLDS)
# A step closed as soon as a later record was read, otherwise a skew later.
@example(ONE_STEP, [], [event(2_210)])
# After an outage the run of quiet steps was cut where reading happened to be.
@example(OUTAGE, [], [event(6_050)])
@example(LONG_AWAY, [], [event(955)])
@example(BACKLOG, [], LATER)
# A record far ahead at the head of a backlog, where producers set timestamps.
@example(replace(BACKLOG, trusts_producers=True), LATER, [replace(event(1), stamp=14_000), *LATER])
# What was due when catching up began depended on which call failed in the outage.
@example(Script(STEPS, starts_at=0, outages=((1, 1_876),)), [], [Sent(0, b"")])
# Crashed while something was held back, again and again.
@example(Script(STEPS, (0, 1, 2), crashes=HELD, release=2_500), [], LATER)
# Public items, in steps that somebody sends something in and in others.
@example(PUBLIC, [event(500)], [event(500), event(1_500, item="crash:A"), event(3_500)])
# What was decided before a crash was recorded once everything was read that came meanwhile.
@example(replace(DECIDED_BEFORE, trusts_producers=True), [], [replace(event(1_260), stamp=7_000)])
# A new stream began with its first event.
@example(Script(steps=3, starts_at=2_600), [], [event(10)])
def test_whatever_users_send_the_same_leaves_at_the_same_time(script, one, other):
    assert play(script, *one) == play(script, *other)


@st.composite
def mapped_records(draw):
    """Nested records with several items or none, muted and unwanted ones, and other shapes."""
    at, partition = draw(MOMENTS), draw(st.sampled_from("0123"))
    item = ITEMS | st.sampled_from([None, 5, {}, "muted:x"])
    value = {
        "kind": draw(st.sampled_from(["event", "event", "other", None])),
        "who": draw(st.sampled_from([{"id": "u1"}, {"id": "u2"}, {"id": 3}, None, "u", [{}]])),
        "what": draw(item | st.lists(item, max_size=3)),
        "time": draw(st.none() | st.integers(0, 2 * STEPS * LENGTH).map(lambda time: BEGIN + time)),
    }
    encoded = json.dumps(value).encode()
    return Sent(at, draw(st.just(encoded) | HOSTILE), partition)


MAPPED = Muting(
    MappedDecoder(
        Mapping(
            user_places(["who.id", "who.name"]),
            item_places(["what"]),
            time_places(["time"]),
            where=(Condition(single_place("events.where", "kind"), OneOf(("event",))),),
        ),
        JsonReader,
        TIMING,
        Limits(),
    ),
    ["muted:*"],
)
MAPPED_WORLDS = st.lists(mapped_records(), max_size=12)


@pytest.mark.slow
@settings(PATIENT, max_examples=50, derandomize=True)
@given(scripts(), MAPPED_WORLDS, MAPPED_WORLDS)
def test_so_it_is_with_records_that_are_mapped(script, one, other):
    script = replace(script, decoder=MAPPED)
    assert play(script, *one) == play(script, *other)


@pytest.mark.chaos
def test_and_so_it_is_in_thousands_of_worlds():
    chosen = random.SystemRandom().randrange(2**32)
    print(f"\nseed {chosen}")  # noqa: T201

    @seed(chosen)
    @settings(PATIENT, max_examples=3_000, database=None, print_blob=True)
    @given(scripts(), WORLDS, WORLDS)
    def compare(script, one, other):
        assert play(script, *one) == play(script, *other)

    compare()


def differ(script, one, other):
    return play(script, *one) != play(script, *other)


def where_reading_is(loop):
    through = loop._progress.closable()
    return 10**9 if through is None else through


def closes_whenever_it_can(monkeypatch):
    """Steps close as soon as partitions allow it, and results leave when they are ready."""
    monkeypatch.setattr(Progress, "closable", lambda self: self._frontier.closable(10**15))
    monkeypatch.setattr(Loop, "_released", lambda self: 10**9)
    monkeypatch.setattr(Loop, "_current_goal", where_reading_is)


class TestTwins:
    """Each is noticed."""

    def test_a_step_that_closes_when_a_later_record_is_read(self, monkeypatch):
        closes_whenever_it_can(monkeypatch)
        monkeypatch.setattr(Frontier, "read", Frontier._pass)  # no skew is allowed for
        assert differ(ONE_STEP, [], [event(2_210)])

    def test_a_step_that_closes_by_the_largest_event_time(self, monkeypatch):
        def read(self, batch, now):
            times = [json.loads(value).get("time", now) for value in batch.records]
            self._frontier.read(batch.partition, max(times))

        closes_whenever_it_can(monkeypatch)
        monkeypatch.setattr(Progress, "read", read)
        assert differ(ONE_STEP, [], [event(400, time=3_000)])

    def test_public_items_that_are_asked_about_only_if_somebody_sends_something(self, monkeypatch):
        worlds = [event(500)], [event(500), event(3_500)]
        monkeypatch.setattr(FixedList, "asks_unheld", False)
        assert not differ(PUBLIC, *worlds)
        monkeypatch.setattr(Changes, "asks_unheld", False)
        assert differ(PUBLIC, *worlds)

    def test_quiet_runs_that_are_cut_where_reading_is(self, monkeypatch):
        monkeypatch.setattr(Loop, "_current_goal", where_reading_is)
        assert differ(BACKLOG, [], LATER)
