"""Simulated records on their way to a broker that goes away."""

import asyncio

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import NodeNotReadyError

from streamer.errors import OutputError
from streamer.kafka import bulk_output
from streamer.kafka.bulk_output import BulkOutput
from streamer.kafka.connection import Connection


async def refused_at_once(*_, **__):
    raise NodeNotReadyError


async def refused_later(*_, **__):
    future = asyncio.get_running_loop().create_future()
    future.set_exception(NodeNotReadyError())
    return future


@pytest.mark.parametrize("answer", [refused_at_once, refused_later])
async def test_a_broker_that_goes_away_is_one_sentence(monkeypatch, answer):
    class Producer(AIOKafkaProducer):
        send_batch = staticmethod(answer)

        async def start(self):
            """The broker was there a moment ago."""

        async def partitions_for(self, topic):
            return {0}

    monkeypatch.setattr(bulk_output, "AIOKafkaProducer", Producer)
    output = BulkOutput(Connection(("127.0.0.1:1",)), "events")
    await output.start()
    try:
        with pytest.raises(OutputError) as complaint:
            await output.write([b"u-1"], [b"{}"], [0], np.zeros(1, dtype=np.int64))
    finally:
        await output.close()
    assert str(complaint.value) == (
        "output is kafka: writing to events failed (NodeNotReadyError); start again when the "
        "broker is reachable"
    )
