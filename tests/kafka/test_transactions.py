"""Transactions on a real broker: all or nothing, exactly once, by one holder at a time."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError

from streamer.errors import FencedError, PublishError
from streamer.kafka import transactions as module
from streamer.kafka.clients import TransactionProducer
from streamer.kafka.connection import Connection
from streamer.kafka.transactions import MARKER, Message, Transactions, read_committed
from tests.kafka.broker import free_port
from tests.kafka.harness import eventually, make_topic, records_of


@pytest.fixture
async def topics(world):
    """A world with a compacted topic for markers and two topics to write to."""
    await make_topic(world.bootstrap, world.topic("state"), cleanup_policy="compact")
    await make_topic(world.bootstrap, world.topic("one"))
    await make_topic(world.bootstrap, world.topic("two"), max_message_bytes="2000")
    return world


@pytest.fixture
async def start(topics):
    """Starts holders of this world's identity, and stops them all at the end."""
    # Futures inside a producer that fails, which nobody waits for.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    started = []

    async def start(**changes):
        holder = Transactions(
            Connection((topics.bootstrap,)), topics.name, topics.topic("state"), **changes
        )
        started.append(holder)
        await holder.start()
        return holder

    yield start
    for holder in started:
        await holder.stop()


def messages(world, value, topics=("one", "two")):
    return [Message(world.topic(topic), b"key", value) for topic in topics]


async def values(world, topic, isolation="read_committed"):
    found = await records_of(world.bootstrap, world.topic(topic), isolation)
    return [record.value for record in found]


async def markers(world):
    found = await records_of(world.bootstrap, world.topic("state"))
    return [record.value for record in found if record.key == MARKER]


def failing(monkeypatch, before=None, after=None):
    """The first commit of the first producer fails: before it is sent, or after it is done."""
    made = []

    class Failing(TransactionProducer):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            made.append(self)

        async def commit_transaction(self):
            mine = self is made[0]
            if mine and before:
                await before()
            await super().commit_transaction()
            if mine and after:
                await after()

    monkeypatch.setattr(module, "TransactionProducer", Failing)
    return made


async def nobody_knows():
    raise KafkaTimeoutError


async def test_all_is_written_with_a_marker(topics, start):
    holder = await start()
    await holder.commit(messages(topics, b"1"))
    await holder.commit(messages(topics, b"2"))
    assert await values(topics, "one") == await values(topics, "two") == [b"1", b"2"]
    assert len(set(await markers(topics))) == 2


async def test_or_nothing_is_written(topics, start):
    holder = await start()
    too_large = Message(topics.topic("two"), b"key", bytes(3000))
    with pytest.raises(PublishError) as complaint:
        await holder.commit([*messages(topics, b"1"), too_large])
    assert str(complaint.value) == (
        "a record is larger than the broker accepts: raise max.message.bytes of "
        f"{topics.topic('one')}, {topics.topic('state')}, {topics.topic('two')}"
    )
    await holder.stop()
    holder = await start()
    await holder.commit(messages(topics, b"2"))
    assert await values(topics, "one") == await values(topics, "two") == [b"2"]
    assert len(await markers(topics)) == 1


async def test_a_newer_holder_ends_the_older_one(topics, start):
    older = await start()
    await older.commit(messages(topics, b"1"))
    newer = await start()
    with pytest.raises(FencedError) as complaint:
        await older.commit(messages(topics, b"2"))
    assert complaint.value.exit_code == 3
    assert topics.name in str(complaint.value)
    await newer.commit(messages(topics, b"3"))
    assert await values(topics, "one") == await values(topics, "two") == [b"1", b"3"]


async def test_it_is_also_noticed_in_the_middle_of_writing(topics, start, monkeypatch):
    """The first message is refused before the second is sent."""

    class Slow(TransactionProducer):
        async def send(self, *message):
            sent = await super().send(*message)
            await asyncio.wait([sent])
            return sent

    monkeypatch.setattr(module, "TransactionProducer", Slow)
    older = await start()
    await older.commit(messages(topics, b"1"))
    await start()
    with pytest.raises(FencedError):
        await older.commit(messages(topics, b"2"))


async def test_a_newer_holder_ends_what_the_older_one_has_begun(topics, start):
    older = AIOKafkaProducer(bootstrap_servers=topics.bootstrap, transactional_id=topics.name)
    await older.start()
    try:
        await older.begin_transaction()
        await older.send_and_wait(topics.topic("one"), b"1")
        newer = await start()
        await newer.commit(messages(topics, b"2"))
    finally:
        await older.stop()
    assert await values(topics, "one") == [b"2"]


async def test_every_failed_attempt_to_read_is_reported_with_its_error():
    """A write whose outcome is unknown is looked for while the broker is away: operators see
    errors for as long as that takes."""
    away = Connection((f"127.0.0.1:{free_port()}",))
    told = []
    partition = TopicPartition("state", 0)
    reading = read_committed(away, partition, 0, lambda _, error: told.append(error))
    attempt = asyncio.ensure_future(anext(reading))
    await eventually(lambda: len(told) >= 2)
    attempt.cancel()
    await asyncio.wait([attempt])
    assert all(isinstance(error, KafkaConnectionError) for error in told)


class TestNobodyKnowsHowItEnded:
    async def test_what_was_committed_is_not_written_again(self, topics, start, monkeypatch):
        made = failing(monkeypatch, after=nobody_knows)
        holder = await start()
        await holder.commit(messages(topics, b"1"))
        await holder.commit(messages(topics, b"2"))
        assert len(made) == 2
        assert await values(topics, "one") == await values(topics, "two") == [b"1", b"2"]
        assert len(set(await markers(topics))) == 2

    async def test_what_was_not_committed_is_written_again(self, topics, start, monkeypatch):
        made = failing(monkeypatch, before=nobody_knows)
        holder = await start()
        await holder.commit(messages(topics, b"1"))
        await holder.commit(messages(topics, b"2"))
        assert len(made) == 2
        assert await values(topics, "one") == await values(topics, "two") == [b"1", b"2"]
        assert len(set(await markers(topics))) == 2

    async def test_also_when_it_takes_longer_than_it_may(self, topics, start, monkeypatch):
        failing(monkeypatch, before=asyncio.Event().wait)
        holder = await start(timeout_seconds=1)
        await holder.commit(messages(topics, b"1"))
        assert await values(topics, "one") == await values(topics, "two") == [b"1"]

    async def test_also_after_the_topic_was_read_to_an_offset(self, topics, start, monkeypatch):
        """As after a restart: older markers are known, and not taken for somebody's."""
        first = await start()
        for value in (b"1", b"2"):
            await first.commit(messages(topics, value))
        state = await records_of(topics.bootstrap, topics.topic("state"))
        failing(monkeypatch, after=nobody_knows)
        second = await start()
        second.resume(state[-1].value, state[-1].offset + 1)
        await second.commit(messages(topics, b"3"))
        assert await values(topics, "one") == [b"1", b"2", b"3"]

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_a_holder_that_was_replaced_meanwhile_ends(
        self, topics, start, monkeypatch, when
    ):
        async def replaced():
            monkeypatch.undo()
            newer = await start()
            await newer.commit(messages(topics, b"newer"))
            raise KafkaTimeoutError

        failing(monkeypatch, **{when: replaced})
        older = await start()
        with pytest.raises(FencedError):
            await older.commit(messages(topics, b"older"))
        expected = [b"newer"] if when == "before" else [b"older", b"newer"]
        assert await values(topics, "one") == await values(topics, "two") == expected

    async def test_of_two_that_wrote_nothing_yet_one_goes_on(self, topics, start, monkeypatch):
        newer = []

        async def replaced():
            monkeypatch.undo()
            newer.append(await start())
            raise KafkaTimeoutError

        failing(monkeypatch, before=replaced)
        older = await start()
        await older.commit(messages(topics, b"older"))
        with pytest.raises(FencedError):
            await newer[0].commit(messages(topics, b"newer"))
        assert await values(topics, "one") == await values(topics, "two") == [b"older"]
