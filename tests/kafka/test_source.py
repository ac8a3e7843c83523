"""Events from a real topic: where reading begins, goes on, and begins again."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete

from streamer.kafka.connection import Connection
from streamer.kafka.source import KafkaSource
from streamer.kafka.topics import TopicAdmin
from streamer.service import loop, progress
from tests.kafka.harness import (
    DEADLINE,
    Record,
    add_partitions,
    admin_of,
    eventually,
    make_topic,
    produce,
    tool,
)
from tests.kafka.stage import STEP, Stage, at, over


@pytest.fixture
async def source(world):
    """A source that is not started, and its topic of two partitions."""
    await make_topic(world.bootstrap, world.topic("events"), partitions=2)
    connection = Connection((world.bootstrap,))
    admin = TopicAdmin(connection)
    await admin.start()
    made = KafkaSource(connection, admin, world.topic("events"), world.name, most_records=10)
    yield made
    await made.stop()
    await admin.stop()


async def put(world, partition, *values):
    await produce(
        world.bootstrap, world.topic("events"), [Record(value, partition) for value in values]
    )


async def read(source, number):
    """The next so many records, by partition."""
    found = {}
    async with asyncio.timeout(DEADLINE):
        while sum(map(len, found.values())) < number:
            for batch in await source.poll(100):
                found.setdefault(batch.partition, []).extend(batch.records)
    return found


async def forget(world, partition, before):
    """As retention does: delete what is before an offset."""
    place = TopicPartition(world.topic("events"), partition)
    async with admin_of(world.bootstrap) as admin:
        await admin.delete_records({place: RecordsToDelete(before)})


class TestPositions:
    async def test_a_partition_is_read_from_its_beginning(self, world, source):
        await put(world, 0, b"a", b"b")
        await put(world, 1, b"c")
        await source.start({})
        assert await read(source, 3) == {"0": [b"a", b"b"], "1": [b"c"]}
        assert await source.positions() == await source.ends() == {"0": 2, "1": 1}

    async def test_or_from_where_the_journal_says(self, world, source):
        await put(world, 0, b"a", b"b", b"c")
        await put(world, 1, b"d")
        await source.start({"0": 2, "1": 1})
        await put(world, 1, b"e")
        assert await read(source, 2) == {"0": [b"c"], "1": [b"e"]}

    async def test_what_the_group_has_committed_changes_nothing(self, world, source):
        await put(world, 0, b"a", b"b", b"c")
        await source.start({})
        await read(source, 3)
        await source.commit()
        await source.stop()
        await source.start({"0": 1})
        assert await read(source, 2) == {"0": [b"b", b"c"]}

    async def test_a_new_consumer_goes_on_where_the_old_one_was(self, world, source):
        await put(world, 0, b"a", b"b")
        await source.start({})
        await read(source, 2)
        await source.restart()
        await put(world, 0, b"c")
        assert await read(source, 1) == {"0": [b"c"]}

    async def test_a_poll_is_small(self, world, source):
        await put(world, 0, *(b"%d" % number for number in range(25)))
        await source.start({})
        await eventually(lambda: source.partitions)
        batches = []
        async with asyncio.timeout(DEADLINE):
            while sum(batches) < 25:
                batches += [len(batch.records) for batch in await source.poll(100)]
        assert max(batches) == 10

    async def test_a_paused_partition_is_left_and_nothing_of_it_is_lost(self, world, source):
        await source.start({})
        source.pause(["0"])
        await put(world, 0, b"a", b"b")
        await put(world, 1, b"c")
        assert await read(source, 1) == {"1": [b"c"]}
        assert await source.poll(300) == []
        source.pause([])
        assert await read(source, 2) == {"0": [b"a", b"b"]}


class TestPartitionsThatAreAdded:
    async def test_they_are_taken_up_and_nothing_is_read_twice(self, world, source):
        await put(world, 0, b"a")
        await source.start({})
        await read(source, 1)
        assert await source.find_new_partitions() == []
        await add_partitions(world.bootstrap, world.topic("events"), 4)
        await put(world, 3, b"b")
        assert await source.find_new_partitions() == ["2", "3"]
        assert source.partitions == ["0", "1", "2", "3"]
        assert await read(source, 1) == {"3": [b"b"]}

    async def test_the_service_looks_for_them_also_while_no_step_closes(self, world, monkeypatch):
        monkeypatch.setattr(progress, "_PARTITIONS_SECONDS", 0.1)
        stage = await Stage.make(world)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP - 1)
            await add_partitions(world.bootstrap, world.topic("events"), 2)
            await stage.send(at(STEP, 200), partition=1)
            await eventually(lambda: service.engine.intake.buffered == 1)


class TestEventsThatAreLost:
    async def test_before_the_start(self, world, source, caplog):
        await put(world, 0, b"a", b"b", b"c")
        await forget(world, 0, 2)
        await source.start({"0": 0})
        assert await read(source, 1) == {"0": [b"c"]}
        assert "partition 0 was to be read on at offset 0, but begins at 2" in caplog.text

    async def test_before_the_first_start_are_none_of_ours(self, world, source, caplog):
        await put(world, 0, b"a", b"b", b"c")
        await forget(world, 0, 2)
        await source.start({})
        assert await read(source, 1) == {"0": [b"c"]}
        assert not caplog.messages

    async def test_with_a_topic_that_was_made_anew(self, world, source, caplog):
        await put(world, 0, b"a")
        await source.start({"0": 100})
        assert await read(source, 1) == {"0": [b"a"]}
        assert "partition 0 was to be read on at offset 100, but ends at 1" in caplog.text

    async def test_while_the_service_runs(self, world, caplog, monkeypatch):
        stage = await Stage.make(world)
        poll, asleep = KafkaSource.poll, asyncio.Event()

        async def slow_poll(source, timeout_ms):
            if asleep.is_set():
                source.pause(["0"])
            return await poll(source, timeout_ms)

        monkeypatch.setattr(KafkaSource, "poll", slow_poll)
        async with stage.run() as service:
            await stage.send(at(STEP, 100))
            await eventually(lambda: service.engine.intake.buffered == 1)
            asleep.set()
            await stage.turns(2)
            await stage.send(at(STEP, 200), number=5)
            await forget(world, 0, 4)
            asleep.clear()
            await eventually(lambda: service.engine.intake.buffered == 3)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert stage.counts == {STEP: 3}
        assert "partition 0 was to be read on at offset 1, but begins at 4" in caplog.text


async def test_lag_is_what_kafka_s_own_tool_says(world, monkeypatch):
    monkeypatch.setattr(loop, "_COMMIT_SECONDS", 0.05)
    stage = await Stage.make(world, partitions=2)
    async with stage.run(), admin_of(world.bootstrap) as admin:
        await stage.send(at(STEP, 100), partition=0, number=5)
        committed = {}
        async with asyncio.timeout(DEADLINE):
            while committed.get(0) != 5:
                found = await admin.list_consumer_group_offsets(world.name)
                committed = {place.partition: each.offset for place, each in found.items()}
                await asyncio.sleep(0.02)
    await stage.send(at(STEP, 200), partition=0, number=3)
    await stage.send(at(STEP, 200), partition=1, number=2)
    told = await tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", world.bootstrap, "--describe", "--group", world.name),
    )
    rows = [line.split() for line in told.splitlines() if world.topic("events") in line]
    header = next(line.split() for line in told.splitlines() if "LAG" in line)
    lags = {row[header.index("PARTITION")]: row[header.index("LAG")] for row in rows}
    assert lags == {"0": "3", "1": "2"}


async def test_a_broker_that_takes_no_offsets_is_not_waited_for_in_silence(world, monkeypatch):
    monkeypatch.setattr(loop, "_COMMIT_SECONDS", 0.05)
    stage = await Stage.make(world, request_timeout_seconds=1)
    async with stage.run() as service:
        with monkeypatch.context() as patched:
            patched.setattr(AIOKafkaConsumer, "commit", lambda *_: asyncio.Event().wait())
            await eventually(lambda: service.status.waiting_for)
        await eventually(lambda: not service.status.waiting_for)
        await stage.send(at(STEP, 100))
        await eventually(lambda: service.engine.intake.buffered == 1)


class TestWatchdog:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(progress, "_WATCHDOG_SECONDS", 0.2)

    async def test_a_consumer_that_stopped_silently_is_replaced(self, world, caplog, monkeypatch):
        stage = await Stage.make(world)
        poll, restart, dead = KafkaSource.poll, KafkaSource.restart, asyncio.Event()

        async def dead_poll(source, timeout_ms):
            source.pause(["0"] if dead.is_set() else [])
            return await poll(source, timeout_ms)

        async def revive(source):
            dead.clear()
            await restart(source)

        monkeypatch.setattr(KafkaSource, "poll", dead_poll)
        monkeypatch.setattr(KafkaSource, "restart", revive)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP - 1)
            dead.set()
            await stage.turns(2)
            await stage.send(at(STEP, 100), number=4)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert not dead.is_set()
        assert stage.counts == {STEP: 4}
        assert "although there is more: reconnecting" in caplog.text

    async def test_one_that_is_behind_for_a_moment_is_not(self, world, caplog, monkeypatch):
        """After a long quiet: a record that has just arrived is no sign of anything."""
        stage = await Stage.make(world)
        ends, arrived = KafkaSource.ends, []

        async def ends_with_one_more(source):
            found = await ends(source)
            if not arrived:
                arrived.append(found["0"])
                found["0"] += 1
            return found

        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP - 1)
            quiet_until = time.monotonic() + 2 * progress._WATCHDOG_SECONDS
            await eventually(lambda: time.monotonic() > quiet_until)
            monkeypatch.setattr(KafkaSource, "ends", ends_with_one_more)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert arrived
        assert "reconnecting" not in caplog.text
