"""Records that are no events, or strange ones: counted or rejected, and never the end."""

import base64

import pytest

from streamer.kafka.rejects import KafkaRejects
from tests.kafka.harness import (
    Record,
    event,
    eventually,
    make_topic,
    produce,
    running,
    values_of,
)
from tests.kafka.stage import AHEAD, STEP, Stage, at, over

NOW = at(STEP, 100)
COUNTED = {
    "no key": Record(event(1, "x"), 0, NOW),
    "a key that is another user's": Record(event(2, "x"), 0, NOW, b"u-77"),
    "a key that is no text": Record(event(3, "x"), 0, NOW, b"\xff\x00"),
    "headers": Record(event(4, "x"), 0, NOW, headers=[("traceparent", b"00-1"), ("", b"\xff")]),
    "more fields": Record(event(5, "x", app={"version": [1, 2]}, user_agent=None), 0, NOW),
}
REJECTED = {
    "empty": [None, b""],
    "too_large": [b"x" * 900_000, event("x" * 66_000, "x")],
    "not_json": [
        b"\x00\x00\x00\x00\x01" + event(6, "x"),  # as with a schema registry
        b"\xff\xfe",
        b'{"user": "u", "item": "x"',
        event(7, "x") + b"\n" + event(8, "x"),
    ],
    "not_an_object": [b"[]", b'"x"', b"7", b"null"],
    "missing_user": [b'{"item": "x"}', b'{"user": "", "item": "x"}'],
    "missing_item": [b'{"user": "u"}', b'{"user": "u", "item": ""}'],
    "wrong_type": [b'{"user": 7, "item": "x"}', b'{"user": "u", "item": null}'],
    "user_too_long": [event("u" * 256, "x")],
    "item_too_long": [event(9, "x" * 1025)],
    "bad_time": [event(9, "x", time="yesterday"), event(9, "x", time=1.5)],
    "time_and_step": [event(9, "x", time=NOW, step=STEP)],
    "time_out_of_range": [event(9, "x", time=0), event(9, "x", time="9999-12-31T23:59:59Z")],
    "time_ahead": [event(9, "x", time=NOW + AHEAD + 1)],
}
REASONS = [reason for reason, values in REJECTED.items() for _ in values]
VALUES = [value for values in REJECTED.values() for value in values]


async def rejected(stage):
    return await values_of(stage.world.bootstrap, stage.world.topic("rejected"))


@pytest.fixture
async def stage(world):
    """Rejected records in the one partition, counted ones in the other."""
    made = await Stage.make(world, partitions=2)
    await made.put([Record(value, 1, NOW, b"key") for value in VALUES])
    await made.put(list(COUNTED.values()))
    return made


async def test_strange_events_count_and_others_are_told_with_their_reason(stage):
    async with stage.run() as service:
        await eventually(lambda: service.summary.records == len(COUNTED) + len(VALUES))
        stage.clock.now = over(STEP)
        await eventually(lambda: service.engine.closed == STEP)
        assert sum(service.summary.rejected.values()) == len(VALUES)
    assert stage.counts == {STEP: len(COUNTED)}
    assert await rejected(stage) == [
        {
            "topic": stage.world.topic("events"),
            "partition": 1,
            "offset": offset,
            "reason": reason,
        }
        for offset, reason in enumerate(REASONS)
    ]


async def test_the_raw_record_is_told_only_if_that_is_wanted(stage):
    async with stage.run(rejected_payload=True) as service:
        await eventually(lambda: service.summary.records == len(COUNTED) + len(VALUES))
        stage.clock.now = over(STEP)
        await eventually(lambda: service.engine.closed == STEP)
    told = {record["offset"]: record.get("payload") for record in await rejected(stage)}
    assert set(told) == set(range(len(VALUES)))
    for offset, value in enumerate(VALUES):
        if value is not None and len(value) > 800_000:
            assert told[offset] is None, "no topic could take it"
        else:
            assert base64.b64decode(told[offset]) == (value or b"")


async def test_a_record_that_is_larger_than_a_fetch_is_rejected_too(world):
    large = {"max_message_bytes": "8000000", "message_timestamp_type": "LogAppendTime"}
    await make_topic(world.bootstrap, world.topic("events"), partitions=2, **large)
    await produce(
        world.bootstrap,
        world.topic("events"),
        [Record(b"x" * 3_000_000, 0), Record(event(1, "x"), 0), Record(event(2, "x"), 1)],
    )
    async with running(world.settings()) as service:
        await eventually(lambda: service.summary.records == 3)
        assert service.summary.rejected == {"too_large": 1}


@pytest.mark.parametrize("limit", ["MOST_RECORDS", "MOST_BYTES"])
async def test_they_are_written_before_they_fill_the_memory(stage, monkeypatch, limit):
    """Otherwise they are when a step closes: here, none does."""
    monkeypatch.setattr(KafkaRejects, limit, 10)
    async with stage.run() as service:
        await eventually(lambda: service.summary.records == len(COUNTED) + len(VALUES))
        await stage.turns()
        assert service.engine.closed == STEP - 1
        assert len(await rejected(stage)) == len(VALUES)


async def test_none_is_lost_with_a_restart(stage):
    """At least once: what was read since the last step is read again."""
    async with stage.run() as service:
        await eventually(lambda: service.summary.records == len(COUNTED) + len(VALUES))
    async with stage.run() as service:
        stage.clock.now = over(STEP)
        await eventually(lambda: service.engine.closed == STEP)
    assert {record["offset"] for record in await rejected(stage)} == set(range(len(VALUES)))
