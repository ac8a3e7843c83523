"""What the tests of the Kafka edges share: topics, producers, readers, services, waiting."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from streamer.service.kafka_service import KafkaService
from tests.kafka.broker import java
from tests.kafka.conftest import or_skipped

DEADLINE = 60
SETTLING_LOOKS = 60
"""Seconds after which something that has not happened never will."""


@dataclass
class Clock:
    """A clock that shows what the test says, in milliseconds since 1970.

    The service looks at it in each of its turns, and `watch` is called whenever it does.
    """

    now: int
    looks: int = 0
    watch: Callable[[], object] = lambda: None

    def __call__(self) -> int:
        self.looks += 1
        self.watch()
        return self.now


@dataclass(frozen=True)
class Record:
    """A record to be produced. Only a topic with CreateTime keeps the timestamp."""

    value: bytes | None
    partition: int = 0
    timestamp: int | None = None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()


def event(user: object, item: str, **more: object) -> bytes:
    return json.dumps({"user": f"u-{user}", "item": item, **more}).encode()


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


async def eventually_so(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait until an answer from the broker is so."""
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running(settings, **parts):
    """A service in this process, started and ended with the block.

    If the service fails, the block is left at once with its error.
    """
    service = KafkaService(settings, **parts)
    block = asyncio.current_task()
    task = asyncio.create_task(service.run())
    task.add_done_callback(lambda done: done.exception() and block.cancel())
    try:
        await eventually(lambda: service.status.running)
        yield service
    except asyncio.CancelledError:
        if not task.done():
            raise
        block.uncancel()
    finally:
        service.stop()
        await task


@asynccontextmanager
async def admin_of(bootstrap):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def make_topic(bootstrap: str, name: str, partitions: int = 1, **config: str) -> None:
    """Settings of the topic by name, with underscores for dots."""
    configs = {key.replace("_", "."): value for key, value in config.items()}
    async with admin_of(bootstrap) as admin:
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        await _partitioned(admin, name, partitions)
    await _led(bootstrap, name, partitions)


async def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    async with admin_of(bootstrap) as admin:
        await admin.create_partitions({topic: NewPartitions(total)})
        await _partitioned(admin, topic, total)


async def _partitioned(admin: AIOKafkaAdminClient, topic: str, partitions: int) -> None:
    """The broker has heard of its own topic."""
    async with asyncio.timeout(DEADLINE):
        while len((await admin.describe_topics([topic]))[0]["partitions"]) != partitions:
            await asyncio.sleep(0.02)


async def _led(bootstrap: str, topic: str, partitions: int) -> None:
    """The broker leads the partitions, which is a moment after it has heard of them."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        await consumer.end_offsets([TopicPartition(topic, each) for each in range(partitions)])
    finally:
        await consumer.stop()


async def produce(bootstrap: str, topic: str, records: Sequence[Record]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=16 << 20)
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                record.value,
                record.key,
                record.partition,
                record.timestamp,
                list(record.headers),
            )
            for record in records
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def records_of(
    bootstrap: str, topic: str, isolation: str = "read_committed"
) -> list[ConsumerRecord]:
    """All records that are in a topic now."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        await consumer._client.add_topic(topic)
        partitions = [
            TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)
        ]
        consumer.assign(partitions)
        ends = await _settled_ends(consumer, bootstrap, partitions)
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(DEADLINE):
            for partition in partitions:
                while await consumer.position(partition) < ends[partition]:
                    found = await consumer.getmany(timeout_ms=200)
                    records += [record for batch in found.values() for record in batch]
        return records
    finally:
        await consumer.stop()


async def _settled_ends(consumer, bootstrap: str, partitions: list[TopicPartition]) -> dict:
    """Where partitions end, once the marks of transactions that are committed have arrived.

    A commit returns when it is decided; its marks reach the partitions a moment later. A
    transaction that is left open keeps the two ends apart, and is not waited for long.
    """
    everything = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await everything.start()
    try:
        for _ in range(SETTLING_LOOKS):
            ends = await consumer.end_offsets(partitions)
            if ends == await everything.end_offsets(partitions):
                break
            await asyncio.sleep(0.05)
    finally:
        await everything.stop()
    return ends


async def values_of(bootstrap: str, topic: str) -> list[dict]:
    return [json.loads(record.value) for record in await records_of(bootstrap, topic)]


async def tool(main: str, *arguments: str) -> str:
    """What one of Kafka's own programs says."""
    with or_skipped():
        command = java(main, *arguments)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()
