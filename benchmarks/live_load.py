"""A steady live stream of events: so many a second, on the clock.

    python -m benchmarks.live_load BOOTSTRAP TOPIC EVENTS_A_SECOND SECONDS

Each tick sends one batch to each partition, of events that happen at that moment. Prints
one JSON line at the end: how many were sent, and by how much the slowest tick was late.
"""

import asyncio
import json
import sys
import time

import numpy as np
from aiokafka import AIOKafkaProducer

from benchmarks.loading import PARTITIONS, bulk_producer
from benchmarks.workload import name_of
from streamer.stream.timing import format_rfc3339

TICK = 0.02
USERS, ITEMS = 10_000_000, 100_000
HEAVY_ITEMS, HEAVY_SHARE = 2, 0.1


async def stream(bootstrap: str, topic: str, rate: int, seconds: float) -> dict[str, float]:
    """Keeps to the clock: a tick that is late is sent at once, and told of."""
    names = [name_of(item).encode() for item in range(ITEMS)]
    generator = np.random.default_rng(1)
    each = round(rate * TICK / PARTITIONS)
    latest, sent = 0.0, 0
    async with bulk_producer(bootstrap) as producer:
        began, cpu = time.perf_counter(), time.process_time()
        for tick in range(round(seconds / TICK)):
            wait = began + tick * TICK - time.perf_counter()
            await asyncio.sleep(max(0.0, wait))
            latest = max(latest, -wait)
            await _tick(producer, topic, generator, each, names)
            sent += each * PARTITIONS
        took, used = time.perf_counter() - began, time.process_time() - cpu
    return {"events": sent, "rate": sent / took, "cpu": used / took, "latest": latest}


async def _tick(
    producer: AIOKafkaProducer,
    topic: str,
    generator: np.random.Generator,
    each: int,
    names: list[bytes],
) -> None:
    """Whole batches, built here: sending one record after the other is five times slower."""
    moment = format_rfc3339(time.time_ns() // 1_000_000).encode()
    for partition in range(PARTITIONS):
        users = generator.integers(0, USERS // PARTITIONS, each) * PARTITIONS + partition
        items = generator.integers(0, ITEMS, each)
        items[generator.random(each) < HEAVY_SHARE] %= HEAVY_ITEMS
        batch = producer.create_batch()
        for user, item in zip(users.tolist(), items.tolist(), strict=True):
            value = b'{"user":"u-%d","item":"%b","time":"%b"}' % (user, names[item], moment)
            batch.append(key=b"u-%d" % user, value=value, timestamp=None)
        await producer.send_batch(batch, topic, partition=partition)


if __name__ == "__main__":
    bootstrap, topic, rate, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(stream(bootstrap, topic, int(rate), float(seconds)))))
