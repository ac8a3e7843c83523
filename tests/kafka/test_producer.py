"""Transactions that follow each other at once, on a real broker."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer

from streamer.kafka.clients import TransactionProducer
from tests.kafka.harness import DEADLINE, make_topic

OURS, SHIPPED = 0.002, 0.02


@pytest.mark.parametrize(
    ("kind", "wait"), [(TransactionProducer, OURS), (AIOKafkaProducer, SHIPPED)]
)
async def test_how_long_it_waits_for_the_transaction_before(world, monkeypatch, kind, wait):
    """Ours waits for a shorter time, others in the same process as long as ever."""
    await make_topic(world.bootstrap, world.topic("one"))
    sleep, waits = asyncio.sleep, []

    async def noted(seconds, *more):
        waits.append(seconds)
        await sleep(seconds, *more)

    monkeypatch.setattr(asyncio, "sleep", noted)
    producer = kind(bootstrap_servers=world.bootstrap, transactional_id=world.name, linger_ms=0)
    await producer.start()
    try:
        async with asyncio.timeout(DEADLINE):
            while not {OURS, SHIPPED} & set(waits):
                async with producer.transaction():
                    await producer.send_and_wait(world.topic("one"), b"value")
    finally:
        await producer.stop()
    assert {OURS, SHIPPED} & set(waits) == {wait}
