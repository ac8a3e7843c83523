"""The service from end to end, on a real broker."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streamer.service.kafka_service import KafkaService


@asynccontextmanager
async def running(settings, **parts):
    """A service in this process, started and ended with the block."""
    service = KafkaService(settings, **parts)
    task = asyncio.create_task(service.run())
    async with asyncio.timeout(60):
        while not service.status.running:
            if task.done():
                task.result()
            await asyncio.sleep(0.02)
    try:
        yield service
    finally:
        service.stop()
        await task


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
    settings = world.settings()
    events = [json.dumps({"user": f"u{n}", "item": "many"}).encode() for n in range(3000)]
    events += [json.dumps({"user": f"v{n}", "item": f"own-{n}"}).encode() for n in range(500)]
    async with running(settings):
        await send(world.bootstrap, world.topic("events"), [*events, b"no event"])
        hitters = await read_until(world.bootstrap, world.topic("hitters"), len)
    assert {hitter["item"] for hitter in hitters} == {"many"}
    assert sum(hitter["estimate"] for hitter in hitters) == pytest.approx(3000, abs=800)
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
