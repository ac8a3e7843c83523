"""A service that reads mapped records: with their keys and headers, and several events in one."""

import json

from tests.kafka.harness import Record, eventually, values_of
from tests.kafka.stage import STEP, Stage, at, over

NOW = at(STEP, 100)
EVENTS = {
    "user": "$key",
    "item": "what.*.name",
    "time": "$timestamp",
    "where": [{"field": "$header.kind", "equals": "event"}],
    "ignore_items": ["debug:*"],
}


def sent(key, *names, kind=b"event"):
    value = json.dumps({"what": [{"name": name} for name in names]}).encode()
    return Record(value, 0, NOW, key, [("kind", kind)])


async def test_events_count_are_ignored_or_rejected_one_by_one(world):
    stage = await Stage.make(world)
    stage.events = EVENTS
    await stage.put(
        [
            sent(b"ann", "x", "debug:1", "y"),
            sent(b"bob", "x", None, "z"),
            sent(None, "x"),
            sent(b"eve", "x", kind=b"other"),
        ]
    )
    async with stage.run() as service:
        await eventually(lambda: service.summary.records == 4)
        stage.clock.now = over(STEP)
        await eventually(lambda: service.engine.closed == STEP)
        assert (service.summary.accepted, service.summary.ignored) == (4, 2)
    assert stage.decider.counts[STEP] == {"x": 2, "y": 1, "z": 1}
    told = await values_of(world.bootstrap, world.topic("rejected"))
    assert [(each["offset"], each["event"], each["reason"]) for each in told] == [
        (1, 1, "missing_item"),
        (2, 0, "missing_user"),
    ]
