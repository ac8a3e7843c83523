"""The latest records of a topic, as check-events reads them."""

import pytest
from aiokafka import TopicPartition

from streamer.errors import SettingError
from streamer.kafka.connection import Connection
from streamer.kafka.sample import latest_records
from tests.kafka.harness import Record, admin_of, make_topic, produce


@pytest.fixture
async def topic(world):
    name = world.topic("events")
    await make_topic(world.bootstrap, name, partitions=2)
    records = [Record(b"%d" % number, number % 2) for number in range(10)]
    await produce(world.bootstrap, name, records)
    return name


async def read(world, topic, most):
    batches = await latest_records(Connection((world.bootstrap,)), topic, most)
    return {batch.partition: (batch.offsets.tolist(), batch.records) for batch in batches}


async def test_they_are_the_last_of_each_partition(world, topic):
    assert await read(world, topic, 3) == {"0": ([3, 4], [b"6", b"8"]), "1": ([4], [b"9"])}


async def test_a_small_topic_is_read_as_a_whole(world, topic):
    found = await read(world, topic, 100)
    assert [len(records) for _, records in found.values()] == [5, 5]


async def test_nothing_is_committed(world, topic):
    await read(world, topic, 100)
    async with admin_of(world.bootstrap) as admin:
        groups = [name for name, _ in await admin.list_consumer_groups()]
        committed = [await admin.list_consumer_group_offsets(group) for group in groups]
    assert not any(TopicPartition(topic, 0) in offsets for offsets in committed)


async def test_a_topic_that_does_not_exist_is_one_sentence(world):
    with pytest.raises(SettingError, match=r"^kafka\.events_topic is none-such: "):
        await latest_records(Connection((world.bootstrap,)), "none-such", 5)
