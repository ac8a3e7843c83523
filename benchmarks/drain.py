"""The limit: read a whole topic with aiokafka, and do nothing with it.

    python -m benchmarks.drain BOOTSTRAP TOPIC

Prints one JSON line. A process of its own, as the service is; its start-up is not counted.
"""

import asyncio
import json
import sys
import time

from aiokafka import AIOKafkaConsumer, TopicPartition


async def drain(bootstrap: str, topic: str) -> dict[str, float]:
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
        ends = await consumer.end_offsets(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        began, cpu = time.perf_counter(), time.process_time()
        left = sum(ends.values())
        while left:
            found = await consumer.getmany(timeout_ms=1000)
            left -= sum(map(len, found.values()))
        return {
            "events": sum(ends.values()),
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - cpu,
        }
    finally:
        await consumer.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(drain(*sys.argv[1:]))))
