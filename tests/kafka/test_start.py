"""A broker that is away at the start, or goes away during it, is waited for."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError

from streamer.kafka import ledger
from streamer.kafka.source import KafkaSource
from streamer.kafka.topics import TopicAdmin
from streamer.service.kafka_service import KafkaService
from tests.kafka.conftest import World
from tests.kafka.harness import eventually, running, values_of

WAITING = "waiting for a broker to answer"


async def test_a_broker_that_comes_later_is_waited_for(absent, caplog):
    world = World(absent.bootstrap, "late")
    service = KafkaService(world.settings())
    task = asyncio.create_task(service.run())
    await eventually(lambda: service.status.waiting_for == WAITING)
    await asyncio.to_thread(absent.start)
    await eventually(lambda: service.status.running or task.done())
    await eventually(lambda: service.summary.steps or task.done())
    assert service.status.waiting_for == ""
    service.stop()
    await task
    assert caplog.messages.count(WAITING) == 1
    assert await values_of(world.bootstrap, world.topic("steps"))


async def test_who_is_stopped_while_it_waits_ends(world):
    service = KafkaService(world.settings(kafka={"bootstrap_servers": "127.0.0.1:1"}))
    task = asyncio.create_task(service.run())
    await eventually(lambda: service.status.waiting_for == WAITING)
    service.stop()
    async with asyncio.timeout(5):
        await task


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (TopicAdmin, "start"),
        (TopicAdmin, "facts"),
        (ledger, "ends_of"),
        (KafkaSource, "start"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
async def test_a_broker_that_goes_away_during_the_start_is_waited_for(
    world, monkeypatch, caplog, owner, name
):
    real, failed = getattr(owner, name), []

    async def fail_once(*arguments, **named):
        if not failed:
            failed.append(name)
            raise KafkaConnectionError("gone")
        return await real(*arguments, **named)

    monkeypatch.setattr(owner, name, fail_once)
    async with running(world.settings()) as service:
        assert service.status.waiting_for == ""
    assert failed
    assert "waiting for the broker (KafkaConnectionError: gone)" in caplog.messages
