"""A broker for one benchmark: the one that STREAMER_TEST_KAFKA names, or a new one."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.kafka.broker import Broker

KEY = "ab" * 32


@contextmanager
def broker() -> Iterator[str]:
    """Where it listens. One that is started here ends with the block."""
    given = os.environ.get("STREAMER_TEST_KAFKA")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="streamer-bench-") as directory:
        started = Broker(Path(directory))
        started.format()
        started.start()
        try:
            yield started.bootstrap
        finally:
            started.kill()


@dataclass(frozen=True, slots=True)
class Deployment:
    """Topics and an identity that no other deployment uses; the events may be shared."""

    bootstrap: str
    events_topic: str
    name: str

    @classmethod
    def reading(cls, bootstrap: str, events_topic: str) -> "Deployment":
        return cls(bootstrap, events_topic, f"bench-{secrets.token_hex(4)}")

    def topic(self, kind: str) -> str:
        return f"{self.name}.{kind}"

    def environment(self) -> dict[str, str]:
        """Settings for `streamer run`, besides those of the stream."""
        outputs = ("hitters", "steps", "rejected", "state")
        return {
            "STREAMER_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap,
            "STREAMER_KAFKA__EVENTS_TOPIC": self.events_topic,
            **{f"STREAMER_KAFKA__{kind.upper()}_TOPIC": self.topic(kind) for kind in outputs},
            "STREAMER_KAFKA__TRANSACTIONAL_ID": self.name,
            "STREAMER_KAFKA__GROUP_ID": self.name,
            "STREAMER_KAFKA__CREATE_TOPICS": "true",
            # The events of a workload say when they arrived (loading.py).
            "STREAMER_KAFKA__TRUST_PRODUCER_TIMESTAMPS": "true",
            "STREAMER_PRIVACY__KEY": KEY,
            "STREAMER_HTTP__PORT": "0",
            "STREAMER_METRICS__PORT": "0",
            "STREAMER_LOG__FORMAT": "json",
        }


async def make_topic(bootstrap: str, name: str, partitions: int, **config: str) -> None:
    """Settings of the topic by name, with underscores for dots."""
    configs = {key.replace("_", "."): value for key, value in config.items()}
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
    finally:
        await admin.close()
