"""Events from a real topic: where reading begins, goes on, and begins again."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import (
    InvalidRequestError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
)
from aiokafka.protocol.offset import OffsetRequest

from streamer.errors import UnreachableError
from streamer.kafka.clients import BatchConsumer
from streamer.kafka.connection import Connection
from streamer.kafka.source import COMMIT_SECONDS, HELD_SECONDS, WATCHDOG_SECONDS, KafkaSource
from streamer.kafka.topics import TopicAdmin
from tests.kafka.conftest import World
from tests.kafka.harness import (
    DEADLINE,
    Clock,
    Record,
    add_partitions,
    admin_of,
    eventually,
    eventually_so,
    make_topic,
    produce,
    tool,
)
from tests.kafka.stage import STEP, Stage, at, over
from tests.stream import scripted_source
from tests.stream.source_contract import START, DistantSourceContract, script


@pytest.fixture
def seconds():
    """The clock of the source, which says when to commit and when it is stuck."""
    return Clock(0)


@pytest.fixture
async def source(world, seconds):
    """A source that is not started, and its topic of two partitions."""
    config = {"message_timestamp_type": "CreateTime", "retention_ms": "-1"}
    await make_topic(world.bootstrap, world.topic("events"), partitions=2, **config)
    connection = Connection((world.bootstrap,), request_timeout_ms=1000)
    admin = TopicAdmin(connection)
    await admin.start()
    made = KafkaSource(connection, admin, world.topic("events"), world.name, 10, seconds)
    yield made
    await made.stop()
    await admin.stop()


@dataclass
class KafkaRig:
    """Plays the script of the contract to a topic."""

    source: KafkaSource
    world: World
    patch: pytest.MonkeyPatch
    clock: scripted_source.Clock = field(default_factory=lambda: scripted_source.Clock(START))
    script: dict = field(default_factory=lambda: script(["0", "1"]))
    _until: int = 0

    async def let_arrive(self, moment):
        records = [
            Record(record, int(partition), arrival)
            for partition, rows in self.script.items()
            for arrival, record in rows
            if self._until < arrival <= moment
        ]
        await produce(self.world.bootstrap, self.world.topic("events"), records)
        self.clock.now = self._until = moment

    def go_away(self):
        async def fail(*_, **__):
            raise KafkaConnectionError("gone")

        self.patch.setattr(BatchConsumer, "getmany", fail)
        self.patch.setattr(BatchConsumer, "log_ends", fail)
        self.patch.setattr(TopicAdmin, "partitions", fail)

    def come_back(self):
        self.patch.undo()


class TestContract(DistantSourceContract):
    @pytest.fixture
    async def rig(self, world, source, monkeypatch):
        await source.start({})
        return KafkaRig(source, world, monkeypatch)


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


async def test_keys_and_headers_of_records_can_be_asked_for(world, source):
    await source.start({})
    async with AIOKafkaProducer(bootstrap_servers=world.bootstrap) as producer:
        for key, headers in ((b"k", [("a", b"1"), ("b", b"2")]), (None, [])):
            await producer.send_and_wait(
                world.topic("events"), b"x", key=key, headers=headers, partition=0
            )
    keys, headers = [], []
    async with asyncio.timeout(DEADLINE):
        while len(keys) < 2:
            for batch in await source.poll(100):
                keys += batch.envelopes.keys()
                headers += map(dict, batch.envelopes.headers())
    assert keys == [b"k", None]
    assert headers == [{"a": b"1", "b": b"2"}, {}]


class TestPositions:
    async def test_a_partition_is_read_from_its_beginning(self, world, source):
        await put(world, 0, b"a", b"b")
        await put(world, 1, b"c")
        await source.start({})
        assert await read(source, 3) == {"0": [b"a", b"b"], "1": [b"c"]}
        assert await source.drained() == {"0", "1"}

    async def test_or_from_where_the_journal_says(self, world, source):
        await put(world, 0, b"a", b"b", b"c")
        await put(world, 1, b"d")
        await source.start({"0": 2, "1": 1})
        await put(world, 1, b"e")
        assert await read(source, 2) == {"0": [b"c"], "1": [b"e"]}

    async def test_what_the_group_has_committed_changes_nothing(self, world, source, seconds):
        await put(world, 0, b"a", b"b", b"c")
        await source.start({})
        await read(source, 3)
        seconds.now += COMMIT_SECONDS + 1
        await source.poll(0)
        assert await committed(world) == {0: 3, 1: 0}
        await source.stop()
        await source.start({"0": 1})
        assert await read(source, 2) == {"0": [b"b", b"c"]}

    async def test_a_new_consumer_goes_on_where_the_old_one_was(self, world, source):
        await put(world, 0, b"a", b"b")
        await source.start({})
        await read(source, 2)
        await source.stop()
        await put(world, 0, b"c")
        assert await read(source, 1) == {"0": [b"c"]}

    async def test_a_poll_is_small(self, world, source):
        await put(world, 0, *(b"%d" % number for number in range(25)))
        await source.start({})
        batches = []
        async with asyncio.timeout(DEADLINE):
            while sum(batches) < 25:
                batches += [len(batch.records) for batch in await source.poll(100)]
        assert max(batches) == 10


class TestPartitionsThatAreAdded:
    async def test_they_are_taken_up_and_nothing_is_read_twice(self, world, source):
        await put(world, 0, b"a")
        await source.start({})
        await read(source, 1)
        assert await source.partitions() == ["0", "1"]
        await add_partitions(world.bootstrap, world.topic("events"), 4)
        await put(world, 3, b"b")
        assert await source.partitions() == ["0", "1", "2", "3"]
        assert await read(source, 1) == {"3": [b"b"]}


class TestEventsThatAreLost:
    async def test_before_the_start(self, world, source, caplog):
        await put(world, 0, b"a", b"b", b"c")
        await forget(world, 0, 2)
        await source.start({"0": 0})
        assert await read(source, 1) == {"0": [b"c"]}
        assert (
            "partition 0: reading should continue at offset 0, but the partition starts at 2"
            in caplog.text
        )

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
        assert (
            "partition 0: reading should continue at offset 100, but the partition ends at 1"
            in caplog.text
        )

    async def test_while_the_service_runs(self, world, caplog, monkeypatch):
        stage = await Stage.make(world)
        poll, asleep = KafkaSource.poll, asyncio.Event()

        async def slow_poll(source, timeout_ms, skip):
            return await poll(source, timeout_ms, ["0"] if asleep.is_set() else skip)

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
        assert (
            "partition 0: reading should continue at offset 1, but the partition starts at 4"
            in caplog.text
        )


async def committed(world):
    async with admin_of(world.bootstrap) as admin:
        found = await admin.list_consumer_group_offsets(world.name)
    return {place.partition: each.offset for place, each in found.items()}


async def test_lag_is_what_kafka_s_own_tool_says(world, source, seconds):
    await put(world, 0, *[b"x"] * 5)
    await source.start({})
    await read(source, 5)
    seconds.now += COMMIT_SECONDS + 1
    await source.poll(0)
    await put(world, 0, *[b"x"] * 3)
    await put(world, 1, *[b"x"] * 2)
    told = await tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", world.bootstrap, "--describe", "--group", world.name),
    )
    rows = [line.split() for line in told.splitlines() if world.topic("events") in line]
    header = next(line.split() for line in told.splitlines() if "LAG" in line)
    lags = {row[header.index("PARTITION")]: row[header.index("LAG")] for row in rows}
    assert lags == {"0": "3", "1": "2"}


@asynccontextmanager
async def open_transaction(world, partition, *values):
    """Records that the leader has and nobody can read before the block ends."""
    producer = AIOKafkaProducer(
        bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-other"
    )
    await producer.start()
    try:
        await producer.begin_transaction()
        for value in values:
            await producer.send_and_wait(world.topic("events"), value, partition=partition)
        yield
        await producer.commit_transaction()
    finally:
        await producer.stop()


class TestWhatCannotBeReadYet:
    async def test_a_partition_is_not_drained_before_the_end_of_its_leader_s_log(
        self, world, source
    ):
        await put(world, 0, b"a")
        await source.start({})
        await read(source, 1)
        async with open_transaction(world, 0, b"b", b"c"):
            assert await source.poll(0) == []
            assert await source.drained() == {"1"}
            assert source.lag() == {"0": 2, "1": 0}
        assert await read(source, 2) == {"0": [b"b", b"c"]}
        await eventually_so(lambda: drained_is(source, {"0", "1"}))

    async def test_it_is_logged_once_what_steps_wait_for(self, world, source, seconds, caplog):
        await source.start({})
        with caplog.at_level("INFO"):
            async with open_transaction(world, 0, b"b", b"c"):
                await source.drained()
                seconds.now += HELD_SECONDS
                await source.drained()
                assert "steps wait" not in caplog.text
                seconds.now += 1
                for _ in range(3):
                    assert await source.drained() == {"1"}
            assert caplog.text.count("partition 0: steps wait for 2 records") == 1
            await read(source, 2)
            await eventually_so(lambda: drained_is(source, {"0", "1"}))
        assert "partition 0: reading continues at offset 0" in caplog.text

    async def test_no_consumer_is_replaced_because_of_it(self, world, source, seconds, caplog):
        await source.start({})
        async with open_transaction(world, 0, b"b"):
            for _ in range(3):
                assert await source.drained() == {"1"}
                seconds.now += WATCHDOG_SECONDS + 1
        assert "reconnecting" not in caplog.text

    async def test_a_leader_that_names_an_earlier_end_has_not_answered(
        self, world, source, monkeypatch
    ):
        await put(world, 0, b"a", b"b")
        await source.start({})
        await read(source, 2)

        async def earlier(consumer, partitions):
            return dict.fromkeys(partitions, 0)

        monkeypatch.setattr(BatchConsumer, "log_ends", earlier)
        assert await source.drained() == {"1"}

    @pytest.mark.parametrize("error", [NotLeaderForPartitionError, LeaderNotAvailableError])
    async def test_a_leader_that_moves_is_asked_again(self, world, source, monkeypatch, error):
        await source.start({})
        send, refused = AIOKafkaClient.send, []

        async def moving(client, node, request, **options):
            if isinstance(request, OffsetRequest) and len(refused) < 2:
                refused.append(node)
                raise error
            return await send(client, node, request, **options)

        monkeypatch.setattr(AIOKafkaClient, "send", moving)
        assert await source.drained() == {"0", "1"}
        assert len(refused) == 2

    async def test_one_that_never_answers_is_waited_for(self, world, source, monkeypatch):
        await source.start({})
        monkeypatch.setattr(ClusterMetadata, "leader_for_partition", lambda *_: -1)
        with pytest.raises(UnreachableError, match="where the leaders' logs end"):
            await source.drained()

    async def test_one_that_refuses_is_not_believed_to_have_nothing(
        self, world, source, monkeypatch
    ):
        await source.start({})

        async def refusing(*_, **__):
            raise InvalidRequestError("no")

        monkeypatch.setattr(AIOKafkaClient, "send", refusing)
        with pytest.raises(UnreachableError, match="no"):
            await source.drained()


async def drained_is(source, partitions):
    await source.poll(0)
    return await source.drained() == partitions


async def test_after_a_restart_events_of_closed_steps_are_read_again_not_missed(world):
    stage = await Stage.make(world)
    await stage.send(at(STEP + 1, 10), time=at(STEP + 1, 10))
    await stage.send(at(STEP + 1, 20), number=2, time=at(STEP, 990))
    async with stage.run() as service:
        await eventually(lambda: service.engine.intake.buffered == 3)
        stage.clock.now = over(STEP)
        await eventually(lambda: service.engine.closed == STEP)
    async with stage.run() as service:
        await eventually(lambda: service.summary.records == 3)
        assert (service.summary.already_closed, service.summary.missed) == (2, 0)
        await stage.send(at(STEP + 1, 30), number=4, time=at(STEP, 990))
        await eventually(lambda: service.summary.records == 7)
        assert (service.summary.already_closed, service.summary.missed) == (2, 4)


async def test_offsets_are_committed_now_and_then(world, source, seconds):
    await put(world, 0, b"a", b"b")
    await source.start({})
    await read(source, 2)
    assert await committed(world) == {}
    seconds.now += COMMIT_SECONDS
    await source.poll(0)
    assert await committed(world) == {}
    seconds.now += 1
    await source.poll(0)
    assert await committed(world) == {0: 2, 1: 0}


async def test_a_broker_that_takes_no_offsets_is_not_waited_for_in_silence(
    world, source, seconds, monkeypatch
):
    await source.start({})
    await put(world, 0, b"a")
    seconds.now += COMMIT_SECONDS + 1
    with monkeypatch.context() as patched:
        patched.setattr(AIOKafkaConsumer, "commit", lambda *_: asyncio.Event().wait())
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(UnreachableError, match="waiting for the broker"):
                await source.poll(0)
    assert await read(source, 1) == {"0": [b"a"]}


class TestWatchdog:
    async def test_a_consumer_that_stopped_silently_is_replaced(
        self, world, source, seconds, caplog, monkeypatch
    ):
        silent, getmany = [], BatchConsumer.getmany

        async def getmany_of_others(consumer, **options):
            silent[:] = silent or [consumer]
            return {} if consumer is silent[0] else await getmany(consumer, **options)

        await source.start({})
        monkeypatch.setattr(BatchConsumer, "getmany", getmany_of_others)
        await put(world, 0, b"a", b"b")
        for _ in range(2):
            assert await source.poll(0) == []
            assert await source.drained() == {"1"}
            seconds.now += WATCHDOG_SECONDS
        assert "reconnecting" not in caplog.text
        seconds.now += 1
        assert await source.drained() == {"1"}
        assert "nothing was read for 30 s although there is more: reconnecting" in caplog.text
        assert await read(source, 2) == {"0": [b"a", b"b"]}

    async def test_one_that_is_behind_for_a_moment_is_not(self, world, source, seconds, caplog):
        """After a long quiet: a record that has just arrived is no sign of anything."""
        await source.start({})
        assert await source.drained() == {"0", "1"}
        seconds.now += 2 * WATCHDOG_SECONDS
        await put(world, 0, b"a")
        assert await source.drained() == {"1"}
        assert "reconnecting" not in caplog.text

    async def test_one_that_reads_is_not_however_far_behind_it_is(
        self, world, source, seconds, caplog
    ):
        await put(world, 0, *(b"%d" % number for number in range(55)))
        await source.start({})
        for _ in range(4):
            assert await source.drained() == {"1"}
            seconds.now += WATCHDOG_SECONDS + 1
            assert len((await read(source, 10))["0"]) == 10
        assert await source.drained() == {"1"}
        assert "reconnecting" not in caplog.text
