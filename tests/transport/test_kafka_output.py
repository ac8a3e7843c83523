"""Simulated records on their way to a broker that goes away."""

import asyncio

import pytest
from aiokafka.errors import NodeNotReadyError

from streamer.broker.connection import Connection
from streamer.errors import OutputError
from streamer.transport.event_lines import EventLines
from streamer.transport.fleet import Fleet
from streamer.transport.kafka_output import KafkaOutput
from streamer.transport.simulation import in_arrival_order, simulate

FLEET = Fleet(users=10, steps=1, seed=1, active=1.0)


async def refused_at_once(*_, **__):
    raise NodeNotReadyError


async def refused_later(*_, **__):
    future = asyncio.get_running_loop().create_future()
    future.set_exception(NodeNotReadyError())
    return future


@pytest.mark.parametrize("answer", [refused_at_once, refused_later])
async def test_a_broker_that_goes_away_is_one_sentence(monkeypatch, answer):
    output = KafkaOutput(Connection(("127.0.0.1:1",)), "events", EventLines(FLEET.catalogue()))
    monkeypatch.setattr(output, "_partitions", [0])
    monkeypatch.setattr(output._producer, "send_batch", answer)
    events = next(batch for batch in in_arrival_order(FLEET, simulate(FLEET)) if len(batch))
    try:
        with pytest.raises(OutputError) as complaint:
            await output.write(events)
    finally:
        await output.close()
    assert str(complaint.value) == (
        "output is kafka: events cannot be written (NodeNotReadyError); start again when the "
        "broker answers"
    )
