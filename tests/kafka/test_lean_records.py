"""Records without their wrapping are the same records: beside an ordinary consumer."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from streamer.kafka.lean_records import lean
from tests.kafka.harness import DEADLINE, make_topic

PLACE = TopicPartition("events", 0)


@pytest.fixture
async def varied(world):
    """A partition with batches of all kinds: small, large, packed, given up, committed."""
    topic = world.topic("varied")
    await make_topic(world.bootstrap, topic)
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


async def read(world, place, start, most, **options):
    """Everything from an offset on, by calls that get at most so many records."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=world.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="none",
        enable_auto_commit=False,
        **options,
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
    ordinary = await read(world, varied, start, most)
    assert len(ordinary) > 50
    assert told(await read(world, varied, start, most, value_deserializer=lean)) == told(ordinary)


async def test_reading_goes_on_where_a_portion_ended(world, varied):
    """Also in the middle of a batch, and although the consumer had the rest already."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=world.bootstrap, value_deserializer=lean, auto_offset_reset="earliest"
    )
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


async def test_they_come_without_the_wrapping_that_costs_most(world, varied):
    """Fails when aiokafka is made differently: then reading is as slow as it was."""
    lean_ones = await read(world, varied, 0, 100, value_deserializer=lean)
    assert not any(isinstance(record, ConsumerRecord) for record in lean_ones)
    others = await read(world, varied, 0, 100)
    assert all(isinstance(record, ConsumerRecord) for record in others)


class TestDamage:
    """A damaged batch costs no records before it, and is never stepped over."""

    def records(self, *batches, fetch_offset=0):
        packed = MemoryRecords(b"".join(batches))
        return fetcher.PartitionRecords(
            PLACE, packed, [], fetch_offset, None, lean, True, fetcher.READ_COMMITTED
        )

    def batch(self, base, size):
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 16)
        for place in range(size):
            builder.append(place, 1_000, None, b"%d" % (base + place), [])
        packed = builder.build()
        packed[0:8] = base.to_bytes(8, "big")
        return bytes(packed)

    def test_what_is_before_it_is_given(self):
        damaged = self.batch(5, 3)[:-1] + b"x"
        records = self.records(self.batch(0, 5), damaged)
        given, more = records.take(100)
        assert [record.value for record in given] == [b"0", b"1", b"2", b"3", b"4"]
        assert not more
        assert records.next_fetch_offset == 5

    def test_then_it_is_told(self):
        with pytest.raises(CorruptRecordException):
            self.records(self.batch(5, 3)[:-1] + b"x", fetch_offset=5).take(100)

    def test_without_damage_all_are_given(self):
        records = self.records(self.batch(0, 5), self.batch(5, 3))
        assert [len(records.take(4)[0]) for _ in range(3)] == [4, 4, 0]
        assert records.next_fetch_offset == 8
