"""Watching the topics of a service: the past, what happens, a broker that goes away."""

import asyncio
import itertools
import signal
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from streamer.kafka.results import Assembly, KafkaResults
from streamer.kafka.startup import connection_of
from streamer.stream.records import StepRecord
from tests.commands.processes import Process
from tests.kafka.conftest import World
from tests.kafka.harness import (
    Record,
    event,
    eventually,
    make_topic,
    produce,
    running,
    values_of,
)
from tests.kafka.instances import mortal_broker, write_config
from tests.stream.making import RepeatingDecider

STREAM = {"step_seconds": 0.25, "lateness_seconds": 0.1}
HOSTILE = "crash\x1b[2J[red]"
SHOWN = r"crash\\x1b\[2J\[red\]"
DATA = Path(__file__).parents[1] / "ledger" / "data" / "0.1.0"
_users = itertools.count()


def service(settings):
    """One that reports every item, with the true number of its users."""
    return running(settings, asked_by=RepeatingDecider(threshold=1))


async def send(settings, item):
    """Two users, who were never seen before, hold an item."""
    records = [Record(event(next(_users), item)) for _ in range(2)]
    await produce(settings.kafka.bootstrap_servers, settings.kafka.events_topic, records)


class Watching:
    """What a reader of the topics is told."""

    def __init__(self):
        self.steps, self.items, self.told = [], {}, []

    @classmethod
    @asynccontextmanager
    async def of(cls, settings, past=100):
        topics = {
            "kafka.hitters_topic": settings.kafka.hitters_topic,
            "kafka.steps_topic": settings.kafka.steps_topic,
        }
        watching = cls()
        reader = KafkaResults(connection_of(settings.kafka), topics, past, watching.told.append)

        async def read():
            async for publication in reader.publications():
                watching.steps += [step.step for step in publication.steps]
                for result in publication.results:
                    watching.items.setdefault(result.item, result.step)

        task = asyncio.create_task(read())
        try:
            yield watching
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def published(settings, item):
    """Wait until a service has reported an item, and two steps more."""
    bootstrap, kafka = settings.kafka.bootstrap_servers, settings.kafka
    async with asyncio.timeout(60):
        while True:
            hitters = await values_of(bootstrap, kafka.hitters_topic)
            steps = [each["step"] for each in await values_of(bootstrap, kafka.steps_topic)]
            found = [each["step"] for each in hitters if each["item"] == item]
            if found and steps[-1] >= found[0] + 2:
                return found[0]


@pytest.mark.parametrize("partitions", [1, 3])
async def test_the_past_and_what_happens_are_told_step_by_step(world, partitions):
    for kind in ("hitters", "steps"):
        await make_topic(world.bootstrap, world.topic(kind), partitions)
    settings = world.settings(stream=STREAM)
    async with service(settings):
        await send(settings, "before")
        step = await published(settings, "before")
        async with Watching.of(settings) as watching:
            await eventually(lambda: "before" in watching.items)
            await send(settings, "after")
            await eventually(lambda: "after" in watching.items)
            last = watching.steps[-1]
            await eventually(lambda: watching.steps[-1] > last + 3)
            assert watching.items["before"] == step
    assert watching.steps == list(range(watching.steps[0], watching.steps[-1] + 1))
    assert watching.told == [""]


async def test_only_the_recent_past_is_read(world):
    settings = world.settings(stream=STREAM)
    async with service(settings):
        await send(settings, "before")
        step = await published(settings, "before")
        async with Watching.of(settings, past=1) as watching:
            await eventually(lambda: len(watching.steps) > 2)
    assert watching.steps[0] > step
    assert watching.items == {}


async def test_what_is_never_committed_is_never_read(world, monkeypatch):
    read, add_step = [], Assembly.add_step

    def note(assembly, record, now):
        read.append(record.step)
        add_step(assembly, record, now)

    monkeypatch.setattr(Assembly, "add_step", note)
    settings = world.settings(stream=STREAM)
    async with service(settings), Watching.of(settings) as watching:
        await eventually(lambda: watching.steps)
        producer = AIOKafkaProducer(
            bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-other"
        )
        await producer.start()
        await producer.begin_transaction()
        value = msgspec.json.encode(StepRecord(7, "start", "end", 0, 0))
        await producer.send_and_wait(settings.kafka.steps_topic, value)
        await producer.abort_transaction()
        await producer.stop()
        last = watching.steps[-1]
        await eventually(lambda: watching.steps[-1] > last + 3)
    assert 7 not in read
    assert len(read) == len(watching.steps)


async def test_records_of_others_are_passed_over(world):
    settings = world.settings(stream=STREAM)
    async with service(settings), Watching.of(settings) as watching:
        for topic in (settings.kafka.hitters_topic, settings.kafka.steps_topic):
            foreign = [
                Record(b"\xff{"),
                Record(None, key=b"k"),
                Record(b'{"step":"x"}'),
                Record(b"[]"),
            ]
            await produce(world.bootstrap, topic, foreign)
        await send(settings, "x")
        await eventually(lambda: "x" in watching.items)


async def test_the_command_shows_hitters_as_plain_lines_and_ends_at_once(world, tmp_path):
    settings = world.settings(stream=STREAM)
    config = write_config(settings, tmp_path)
    async with service(settings):
        await send(settings, HOSTILE)
        await published(settings, HOSTILE)
        with Process("watch", "kafka", "--config", config) as watch:
            await asyncio.to_thread(watch.until, rf" UTC +2 users \(0–\d+\) +new +{SHOWN}\n")
            await send(settings, "later")
            await asyncio.to_thread(watch.until, r" UTC +2 users \(0–\d+\) +new +later\n")
            watch.signal(signal.SIGINT)
            assert await asyncio.to_thread(watch.ended) == (0, "")
            assert "guarantee: ε = 1, δ = 1e-6 for everything one user does in one" in watch.text


async def test_records_of_0_1_0_are_shown_with_what_they_have(world, tmp_path):
    settings = world.settings()
    line = (DATA / "hitters.jsonl").read_bytes().splitlines()[0]
    old = msgspec.json.decode(line)
    closed = StepRecord(old["step"], old["start"], old["end"], 1, old["period"])
    topics = {
        settings.kafka.hitters_topic: line,
        settings.kafka.steps_topic: msgspec.json.encode(closed),
    }
    for topic, value in topics.items():
        await make_topic(world.bootstrap, topic, 1)
        await produce(world.bootstrap, topic, [Record(value)])
    with Process("watch", "kafka", "--config", write_config(settings, tmp_path)) as watch:
        shown = r"00:10:00 UTC +500 users ± 98 +crash:OutOfMemoryError\n"
        await asyncio.to_thread(watch.until, shown)


async def test_a_topic_that_is_missing_is_named(world, tmp_path):
    config = write_config(world.settings(), tmp_path)
    with Process("watch", "kafka", "--config", config) as watch:
        code, complaint = await asyncio.to_thread(watch.ended)
    assert code == 2
    [sentence] = complaint.splitlines()
    assert f"kafka.hitters_topic is {world.topic('hitters')}: the topic does not exist" in sentence


async def test_a_broker_that_goes_away_is_waited_for(tmp_path):
    with mortal_broker(tmp_path / "broker") as broker:
        settings = World(broker.bootstrap, "mortal").settings(stream=STREAM)
        config = write_config(settings, tmp_path)
        async with service(settings):
            await send(settings, "before")
            await published(settings, "before")
            with Process("watch", "kafka", "--config", config) as watch:
                await asyncio.to_thread(watch.until, "before\n")
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(watch.until, "waiting: no broker answers\n")
                await asyncio.to_thread(broker.start)
                await asyncio.to_thread(watch.until, "reconnected\n")
                await send(settings, "after")
                await asyncio.to_thread(watch.until, "after\n")
                watch.signal(signal.SIGTERM)
                assert await asyncio.to_thread(watch.ended) == (0, "")
