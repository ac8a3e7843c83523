"""What is published: read it as a consumer should, and hold it against the truth."""

import json
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition


async def published(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """What all records of a topic say."""
    return [json.loads(record.value) for record in await committed(bootstrap, topic)]


async def committed(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """All committed records of a topic, as they are now."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        await consumer._client.add_topic(topic)
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[ConsumerRecord] = []
        for partition, end in ends.items():
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
        return found
    finally:
        await consumer.stop()


def check_hitters(hitters: list[dict[str, Any]], truth: Mapping[tuple[int, str], int]) -> None:
    """Every item that is surely above the threshold is reported, each close to the truth.

    An estimate is off by more than five margins once in 10^12.
    """
    reported = {(hitter["step"], hitter["item"]): hitter for hitter in hitters}
    if len(reported) < len(hitters) or not hitters:
        raise RuntimeError(f"{len(hitters)} results for {len(reported)} items and steps")
    threshold, margin = hitters[0]["threshold"], hitters[0]["margin"]
    missing = {
        place
        for place, users in truth.items()
        if users > threshold + 5 * margin and place not in reported
    }
    wrong = {
        place
        for place, hitter in reported.items()
        if hitter["estimate"] is not None  # it is still there, or gone
        and abs(hitter["estimate"] - truth.get(place, 0)) > 5 * margin
    }
    if missing or wrong:
        raise RuntimeError(f"not reported: {sorted(missing)[:5]}, wrong: {sorted(wrong)[:5]}")
