"""The service from end to end, on a real broker."""

import asyncio
import json
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.kafka.harness import running


async def read_until(bootstrap, topic, enough, deadline=60):
    """Committed records of a topic until there are enough of them."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    records = []
    try:
        async with asyncio.timeout(deadline):
            while not enough(records):
                found = await consumer.getmany(timeout_ms=200)
                records += [json.loads(r.value) for batch in found.values() for r in batch]
    finally:
        await consumer.stop()
    return records


async def send(bootstrap, topic, values):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await asyncio.gather(*[await producer.send(topic, value) for value in values])
    finally:
        await producer.stop()


async def test_what_many_users_hold_is_reported_and_nothing_else(world):
    settings = world.settings(stream={"lateness_seconds": 3.0})
    held = [(f"u{n}", "many") for n in range(3000)] + [(f"v{n}", f"own-{n}") for n in range(500)]
    async with running(settings):
        moment = {"time": time.time_ns() // 1_000_000}  # one step, however long sending takes
        events = [json.dumps({"user": user, "item": item} | moment).encode() for user, item in held]
        await send(world.bootstrap, world.topic("events"), [*events, b"no event"])
        hitters = await read_until(world.bootstrap, world.topic("hitters"), len)
    assert {hitter["item"] for hitter in hitters} == {"many"}
    assert sum(hitter["estimate"] for hitter in hitters) == pytest.approx(3000, abs=500)
    rejected = await read_until(world.bootstrap, world.topic("rejected"), len)
    assert [record["reason"] for record in rejected] == ["not_json"]


async def test_empty_steps_are_published_on_time(world):
    async with running(world.settings()):
        steps = await read_until(
            world.bootstrap, world.topic("steps"), lambda records: len(records) >= 3
        )
    assert [step["hitters"] for step in steps] == [0] * len(steps)
    numbers = [step["step"] for step in steps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
