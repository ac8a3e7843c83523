"""A sample of a topic: its latest records. It belongs to no group and commits nothing."""

from __future__ import annotations

import numpy as np
from aiokafka import TopicPartition

from streamer.kafka.connection import Connection
from streamer.kafka.ending import end_client
from streamer.kafka.source import KafkaEnvelopes
from streamer.kafka.topics import check_exists, partitions_of
from streamer.kafka.transactions import committed_consumer, read_committed
from streamer.stream.intake import Batch

_SETTING = "kafka.events_topic"


async def latest_records(connection: Connection, topic: str, most: int) -> list[Batch]:
    """Up to `most` records, about as many of each partition."""
    await check_exists(connection, _SETTING, topic)
    numbers = sorted(await partitions_of(connection, topic))
    partitions = [TopicPartition(topic, number) for number in numbers]
    consumer = committed_consumer(connection)
    try:
        await consumer.start()
        ends = await consumer.end_offsets(partitions)
    finally:
        await end_client(consumer)
    batches = []
    for place, partition in enumerate(partitions):
        wanted = most // len(partitions) + (place < most % len(partitions))
        start = max(0, ends[partition] - wanted)
        reading = read_committed(connection, partition, start, setting=_SETTING)
        records = [record async for record in reading][:wanted]
        if records:
            batches.append(
                Batch(
                    str(partition.partition),
                    np.array([record.offset for record in records]),
                    [record.value for record in records],
                    np.array([record.timestamp for record in records]),
                    KafkaEnvelopes(records),
                )
            )
    return batches
