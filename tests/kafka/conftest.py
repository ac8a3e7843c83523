"""Brokers for the tests, and the settings of a world of its own for each test.

Where no broker can be had the tests are skipped with one line that says why; with
CI=true they fail instead.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamer.config import Settings, load
from streamer.service.clock import wall_clock
from streamer.stream.timing import format_rfc3339
from tests.kafka.broker import Broker, BrokerUnavailableError

WITHOUT_A_BROKER = {
    f"test_{module}.py"
    for module in ("bulk_output", "ledger_records", "reasons", "results", "startup")
}


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name not in WITHOUT_A_BROKER:
            item.add_marker(pytest.mark.kafka)


@contextmanager
def or_skipped() -> Iterator[None]:
    """Do something with Kafka's programs, or without the tests that need it."""
    try:
        yield
    except BrokerUnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Kafka for the tests: {error}")
        pytest.skip(f"NO KAFKA, ITS TESTS ARE SKIPPED: {error}")


def begin(broker: Broker) -> Broker:
    """Start a new broker."""
    with or_skipped():
        broker.format()
        broker.start()
    return broker


@pytest.fixture
def absent(tmp_path) -> Iterator[Broker]:
    """A broker that is yet to be started."""
    broker = Broker(tmp_path / "kafka")
    with or_skipped():
        broker.format()
    yield broker
    broker.stop()


@dataclass(frozen=True)
class World:
    """Topics, an identity and a key that no other test uses."""

    bootstrap: str
    name: str
    made_at: int = field(default_factory=wall_clock)

    def settings(self, **sections: dict[str, Any]) -> Settings:
        """Settings for this world: one-second steps; more in sections such as kafka={...}.

        A new stream begins with the world, so that what a test sends before it starts a
        service counts.
        """
        kafka = {
            "bootstrap_servers": self.bootstrap,
            "events_topic": self.topic("events"),
            "hitters_topic": self.topic("hitters"),
            "steps_topic": self.topic("steps"),
            "rejected_topic": self.topic("rejected"),
            "state_topic": self.topic("state"),
            "transactional_id": self.name,
            "group_id": self.name,
            "create_topics": True,
            "skew_seconds": 0.05,
        }
        stream = {
            "step_seconds": 1.0,
            "lateness_seconds": 0.2,
            "start": format_rfc3339(self.made_at),
        }
        privacy = {"key": "ab" * 32, "period_steps": 100_000}
        return load(
            {
                "kafka": kafka | sections.get("kafka", {}),
                "stream": stream | sections.get("stream", {}),
                "privacy": privacy | sections.get("privacy", {}),
                "http": {"port": 0} | sections.get("http", {}),
                "metrics": {"port": 0} | sections.get("metrics", {}),
                "log": sections.get("log", {}),
                "events": sections.get("events", {}),
            }
        )

    def topic(self, kind: str) -> str:
        return f"{self.name}.{kind}"
