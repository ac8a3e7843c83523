"""While brokers stall, fail and restart, every event that the topic holds is counted.

What the leader has and nobody can read yet keeps its step open. Each of these tests fails if
a partition counts as drained at its high watermark.
"""

import asyncio
import secrets
import time
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer

from streamer.kafka.ending import end_client
from streamer.service.startup import timing_of
from tests.kafka.conftest import World, or_skipped
from tests.kafka.harness import event, eventually, eventually_so, records_of, running
from tests.kafka.three_brokers import FOLLOWER, LEADER, NODES, SUCCESSOR, ThreeBrokers
from tests.stream.making import RepeatingDecider

STALL_SECONDS = 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = ThreeBrokers.make(tmp_path_factory.mktemp("three"))
    with or_skipped(), made.running():
        yield made


class Trial:
    """A service and a producer that does not wait for replicas, on a topic of their own."""

    def __init__(self, cluster: ThreeBrokers) -> None:
        self.cluster = cluster
        self.world = World(cluster.bootstrap, f"three-{secrets.token_hex(6)}")
        self.topic = self.world.topic("events")
        self.settings = self.world.settings(stream={"lateness_seconds": 0.5})
        self.timing = timing_of(self.settings.stream)
        self.decider = RepeatingDecider(threshold=1)
        self.service = None

    @asynccontextmanager
    async def run(self):
        """Events are sent from before the block begins until it ends; then all are read."""
        arrivals = {"message.timestamp.type": "LogAppendTime"}
        await self.cluster.make_topic(self.topic, NODES, **arrivals)
        for kind in ("hitters", "steps", "rejected", "state"):
            config = {"cleanup.policy": "compact"} if kind == "state" else {}
            await self.cluster.make_topic(self.world.topic(kind), (LEADER, SUCCESSOR), **config)
        async with running(self.settings, asked_by=self.decider) as service:
            self.service = service
            sending = asyncio.create_task(self._send())
            await self.steps_close()
            yield
            sending.cancel()
            await asyncio.wait([sending])
            await self._nothing_is_left()

    async def steps_close(self):
        """Another step with events in it is closed."""
        before = len(self.decider.counts)
        await eventually(lambda: len(self.decider.counts) > before)

    async def delivered(self):
        """How many events the topic holds, by the step in which they arrived."""
        records = await records_of(self.cluster.bootstrap, self.topic)
        return Counter(self.timing.step_at(record.timestamp) for record in records)

    @property
    def counted(self):
        return {step: items["x"] for step, items in self.decider.counts.items()}

    async def _send(self):
        """Fifty events a second, each of another user."""
        producer = AIOKafkaProducer(bootstrap_servers=self.cluster.bootstrap, acks=1)
        await producer.start()
        try:
            for user in range(1_000_000):
                await producer.send(self.topic, event(user, "x"))
                await asyncio.sleep(0.02)
        finally:
            await end_client(producer)

    async def _nothing_is_left(self):
        await eventually_so(self.is_whole)
        last = max(await self.delivered())
        await eventually(lambda: self.service.engine.closed >= last)

    async def is_whole(self):
        return await self.cluster.is_whole(self.topic)


@pytest.fixture
def trial(cluster):
    yield Trial(cluster)
    cluster.mend()


async def hold(seconds):
    """Let something last: as long as the trial wants, not as long as it takes."""
    end = time.monotonic() + seconds
    await eventually(lambda: time.monotonic() > end)


@asynccontextmanager
async def stalled(broker):
    """A follower that is in sync and stops: the high watermark stands still."""
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


async def test_a_step_waits_for_a_follower_that_stalls(trial, caplog):
    async with trial.run():
        async with stalled(trial.cluster.nodes[FOLLOWER]):
            await hold(STALL_SECONDS)
        await trial.steps_close()
    assert trial.counted == await trial.delivered()
    assert "partition 0: steps wait for" in caplog.text


@pytest.mark.chaos
async def test_a_killed_leader_takes_no_events_with_it_that_others_have(trial):
    async with trial.run():
        async with stalled(trial.cluster.nodes[FOLLOWER]):
            await hold(STALL_SECONDS / 2)
            trial.cluster.nodes[LEADER].kill()
        await eventually_so(lambda: is_led_by(trial, SUCCESSOR))
        await asyncio.to_thread(trial.cluster.nodes[LEADER].start)
        await trial.steps_close()
    assert trial.counted == await trial.delivered()


async def is_led_by(trial, node):
    return await trial.cluster.leader(trial.topic) == node


@pytest.mark.chaos
async def test_a_rolling_restart_loses_nothing(trial):
    """Of brokers that crash: one that is shut down in order leaves the replicas in sync."""
    async with trial.run():
        for broker in trial.cluster.nodes.values():
            broker.kill()
            await hold(STALL_SECONDS / 2)
            await asyncio.to_thread(broker.start)
            await eventually_so(trial.is_whole)
        await trial.steps_close()
    assert trial.counted == await trial.delivered()
