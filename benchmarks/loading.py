"""Events into a topic, in whole batches, each record arriving at its event's time."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiokafka import AIOKafkaProducer

from benchmarks.kafka import make_topic
from benchmarks.workload import Columns, Workload, render

PARTITIONS = 4
_BATCH_BYTES = 1 << 19
_CHUNK = 50_000


async def load(bootstrap: str, workload: Workload) -> str:
    """Returns the name of the new topic."""
    topic = f"events-{secrets.token_hex(4)}"
    await make_topic(
        bootstrap,
        topic,
        PARTITIONS,
        message_timestamp_type="CreateTime",
        retention_ms="-1",  # the events are old
    )
    await append(bootstrap, topic, workload.columns)
    return topic


async def append(bootstrap: str, topic: str, columns: Columns) -> None:
    """A user's events are in one partition: user number n in partition n modulo four."""
    async with bulk_producer(bootstrap) as producer:
        for start in range(0, len(columns.users), _CHUNK):
            await _send(producer, topic, columns.part(slice(start, start + _CHUNK)))


@asynccontextmanager
async def bulk_producer(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks=1, max_batch_size=_BATCH_BYTES, max_request_size=4 << 20
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def _send(producer: AIOKafkaProducer, topic: str, columns: Columns) -> None:
    values, moments = render(columns), columns.times.tolist()
    keys = [b"u-%d" % user for user in columns.users.tolist()]
    sent: list[asyncio.Future[Any]] = []
    for partition in range(PARTITIONS):
        batch = producer.create_batch()
        for row in np.flatnonzero(columns.users % PARTITIONS == partition).tolist():
            record = {"key": keys[row], "value": values[row], "timestamp": moments[row]}
            if batch.append(**record) is None:
                sent.append(await producer.send_batch(batch, topic, partition=partition))
                batch = producer.create_batch()
                batch.append(**record)
        sent.append(await producer.send_batch(batch, topic, partition=partition))
    await asyncio.gather(*sent)
