"""A cluster of three brokers on this machine, each of which can be paused, killed and restarted.

Topics of events have a replica on all three. Everything else is on the first two, so that it
can be written while the third stalls.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError

from tests.kafka.broker import Broker
from tests.kafka.harness import admin_of, eventually_so

LEADER, SUCCESSOR, FOLLOWER = NODES = (1, 2, 3)
INTERNAL = ("__transaction_state", "__consumer_offsets")


@dataclass(frozen=True)
class ThreeBrokers:
    """By node id."""

    nodes: dict[int, Broker]

    @classmethod
    def make(cls, directory: Path) -> "ThreeBrokers":
        """Not started yet."""
        nodes = {node: Broker(directory / str(node), heap="256m") for node in NODES}
        voters = ",".join(f"{n}@127.0.0.1:{each.controller_port}" for n, each in nodes.items())
        for node, broker in nodes.items():
            broker.extra = {
                "node.id": str(node),
                "controller.quorum.voters": voters,
                # A follower that is paused or killed is waited for this long.
                "broker.session.timeout.ms": "12000",
            }
        return cls(nodes)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.nodes.values())

    @contextmanager
    def running(self) -> Iterator["ThreeBrokers"]:
        """Started, and ended with the block, whatever became of them in it."""
        try:
            _all(Broker.format, self.nodes.values())
            _all(Broker.start, self.nodes.values())
            asyncio.run(self._make_internal_topics())
            yield self
        finally:
            _all(Broker.kill, self.nodes.values())

    def mend(self) -> None:
        """Start those that are down, and let those go on that are paused."""
        for broker in self.nodes.values():
            broker.resume()
        _all(Broker.start, [each for each in self.nodes.values() if each.process is None])

    async def make_topic(self, name: str, replicas: Sequence[int], **config: str) -> None:
        """A topic of one partition, led by the first of its replicas."""
        async with admin_of(self.bootstrap) as admin:
            assigned = {0: list(replicas)}
            topic = NewTopic(name, -1, -1, replica_assignments=assigned, topic_configs=config)
            answer = await admin.create_topics([topic])
        assert [code for _, code, *_ in answer.topic_errors] == [0], answer
        await eventually_so(lambda: self.is_whole(name))

    async def leader(self, topic: str) -> int:
        """-1 if nobody leads it."""
        return int((await self._partition(topic)).get("leader", -1))

    async def is_whole(self, topic: str) -> bool:
        """Whether all replicas are in sync."""
        partition = await self._partition(topic)
        return set(partition.get("isr", ())) == set(partition.get("replicas", {-1}))

    async def _partition(self, topic: str) -> dict[str, Any]:
        """What a broker says of it; nothing if one is asked that is away."""
        with contextlib.suppress(KafkaError):
            async with admin_of(self.bootstrap) as admin:
                for partition in (await admin.describe_topics([topic]))[0]["partitions"]:
                    return dict(partition)
        return {}

    async def _make_internal_topics(self) -> None:
        for name in INTERNAL:
            config = {"cleanup.policy": "compact"}
            await self.make_topic(name, (LEADER, SUCCESSOR), **config)


def _all(do: Callable[[Broker], None], brokers: Iterable[Broker]) -> None:
    """At the same time: a broker waits for the others before it answers."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(do, brokers))
