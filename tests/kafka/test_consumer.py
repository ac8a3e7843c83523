"""Whole batches hold the same records that aiokafka's own consumer reads."""

import asyncio
import gc

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from streamer.kafka.clients import BatchConsumer, BatchRecords
from tests.kafka.harness import DEADLINE, make_topic

PLACE = TopicPartition("events", 0)


@pytest.fixture
async def varied(world):
    """A partition with batches of all kinds: small, large, packed, given up, committed."""
    topic = world.topic("varied")
    await make_topic(world.bootstrap, topic, retention_ms="-1")  # some records are old
    for number, packing in enumerate((None, "gzip", None)):
        producer = AIOKafkaProducer(bootstrap_servers=world.bootstrap, compression_type=packing)
        await producer.start()
        for size in (1, 40, 3):
            batch = producer.create_batch()
            for place in range(size):
                value = None if place == 2 else f"{number}-{size}-{place}".encode()
                batch.append(key=b"k", value=value, timestamp=1_000 * size + place)
            await (await producer.send_batch(batch, topic, partition=0))
        await producer.stop()
        await _transactions(world, topic, number)
    return TopicPartition(topic, 0)


async def _transactions(world, topic, number):
    producer = AIOKafkaProducer(
        bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-{number}"
    )
    await producer.start()
    for commits in (False, True, False):
        await producer.begin_transaction()
        for place in range(5):
            await producer.send_and_wait(topic, f"{commits}-{place}".encode(), partition=0)
        await (producer.commit_transaction if commits else producer.abort_transaction)()
    await producer.stop()


async def read(world, place, start, most, kind):
    """Everything from an offset on, by calls that get up to `most` records."""
    consumer = kind(
        bootstrap_servers=world.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="none",
        enable_auto_commit=False,
    )
    await consumer.start()
    got, sizes = [], []
    try:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        consumer.seek(place, start)
        async with asyncio.timeout(DEADLINE):
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(timeout_ms=100, max_records=most)).values():
                    assert not records or await consumer.position(place) > records[-1].offset
                    sizes.append(len(records))
                    got += records
    finally:
        await consumer.stop()
    assert max(sizes, default=0) <= most
    return got


def told(records):
    return [(record.offset, record.timestamp, record.value) for record in records]


@pytest.mark.parametrize("most", [1, 7, 40, 10_000])
@pytest.mark.parametrize("start", [0, 1, 20, 46, 90])
async def test_the_same_records_are_read_from_anywhere_in_any_portions(world, varied, start, most):
    ordinary = await read(world, varied, start, most, AIOKafkaConsumer)
    assert len(ordinary) > 50
    assert told(await read(world, varied, start, most, BatchConsumer)) == told(ordinary)


async def test_reading_goes_on_where_a_portion_ended(world, varied):
    """Also in the middle of a batch, and although the consumer had the rest already."""
    consumer = BatchConsumer(bootstrap_servers=world.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([varied])
        first = await asyncio.wait_for(_portion(consumer, 10), DEADLINE)
        assert await consumer.position(varied) == first[-1].offset + 1
        consumer.seek(varied, 4)
        again = await asyncio.wait_for(_portion(consumer, 10), DEADLINE)
        assert again[0].offset == 4
        consumer.pause(varied)
        assert not await consumer.getmany(timeout_ms=200, max_records=10)
        consumer.resume(varied)
        rest = await asyncio.wait_for(_portion(consumer, 10), DEADLINE)
        assert rest[0].offset == again[-1].offset + 1
    finally:
        await consumer.stop()


async def _portion(consumer, most):
    while True:
        for records in (await consumer.getmany(timeout_ms=100, max_records=most)).values():
            return records


async def test_they_are_not_wrapped_and_those_of_another_consumer_at_the_same_time_are(
    world, varied
):
    """Wrapping costs most: with it, reading is as slow as aiokafka's own."""
    ours, others = await asyncio.gather(
        read(world, varied, 0, 10, BatchConsumer), read(world, varied, 0, 10, AIOKafkaConsumer)
    )
    assert not any(isinstance(record, ConsumerRecord) for record in ours)
    assert all(isinstance(record, ConsumerRecord) for record in others)
    assert told(ours) == told(others)


async def test_single_records_and_portions_alternate(world, varied):
    """Nothing that aiokafka's consumer can do is broken: also without a limit."""
    ordinary = await read(world, varied, 0, 100, AIOKafkaConsumer)
    consumer = BatchConsumer(
        bootstrap_servers=world.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    got = []
    try:
        consumer.assign([varied])
        async with asyncio.timeout(DEADLINE):
            for _ in range(20):
                got.append(await consumer.getone())
            got += await _portion(consumer, 10)
            got.append(await consumer.getone())
            while len(got) < len(ordinary):
                got += await _portion(consumer, None)
    finally:
        await consumer.stop()
    assert told(got) == told(ordinary)


def records_of(*batches, fetch_offset=0):
    packed = MemoryRecords(b"".join(batches))
    return PartitionRecords(PLACE, packed, [], fetch_offset, None, None, True, READ_COMMITTED)


def batch_of(base, size):
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 16)
    for place in range(size):
        builder.append(place, 1_000, None, b"%d" % (base + place), [])
    packed = builder.build()
    packed[0:8] = base.to_bytes(8, "big")
    return bytes(packed)


class TestDamage:
    """A damaged batch costs no records before it, and is never stepped over."""

    def test_what_is_before_it_is_given(self):
        damaged = batch_of(5, 3)[:-1] + b"x"
        records = BatchRecords(records_of(batch_of(0, 5), damaged))
        taken, more = records.take(100)
        assert [record.value for record in taken] == [b"0", b"1", b"2", b"3", b"4"]
        assert not more
        assert records.next_fetch_offset == 5

    def test_then_it_is_reported(self):
        damaged = batch_of(5, 3)[:-1] + b"x"
        with pytest.raises(CorruptRecordException):
            BatchRecords(records_of(damaged, fetch_offset=5)).take(100)

    def test_without_damage_all_are_given(self):
        records = BatchRecords(records_of(batch_of(0, 5), batch_of(5, 3)))
        assert [len(records.take(4)[0]) for _ in range(3)] == [4, 4, 0]
        assert records.next_fetch_offset == 8


async def test_an_answer_is_freed_as_soon_as_it_is_read(world, varied):
    """The service collects garbage rarely: a cycle would keep megabytes for a while."""
    gc.collect()
    gc.disable()
    try:
        assert await read(world, varied, 0, 10_000, BatchConsumer)
        kinds = {FetchResult, PartitionRecords, BatchRecords}
        assert not [each for each in gc.get_objects() if type(each) in kinds]
    finally:
        gc.enable()
