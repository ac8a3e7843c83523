"""A stream in which everything happens that operators look for, and a service that reads it.

An item that lasts and one that comes and goes, users whose budget is used up, late events,
rejected ones; a restart with changed privacy settings; and a broker that is away for a moment.
"""

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from prometheus_client.parser import text_string_to_metric_families

from tests.deployment.prometheus import get
from tests.kafka.broker import Broker, free_port
from tests.kafka.conftest import World
from tests.kafka.harness import event
from tests.kafka.instances import Deployed, mortal_broker, until

HITTER = 'crash:NPE "Foo\\Bar"\n💥'
"""With everything that must be escaped somewhere."""
TRANSIENT = "error:HTTP-502"
"""Held for some seconds, and not for some."""
LINKS = "https://crashes.example.com/?q={item}&in=streamer"
FRESH, TIRED, LATE = 60, 40, 20
"""Users in each batch: new ones, the same ones every time, and late ones."""
BATCHES_A_SECOND = 5
BATCHES_A_STAY = 15
HOUR_MS = 3_600_000
STREAM = {"step_seconds": 0.5, "lateness_seconds": 0.2}
# A threshold below 100, and one report for each user.
PRIVACY = {"epsilon": 4.0, "delta": 0.01, "contributions": 1, "beta": 0.5, "items": 10}
KAFKA = {"request_timeout_seconds": 1, "transaction_timeout_seconds": 3}


def batch(number: int) -> list[bytes]:
    now = int(time.time() * 1000)
    fresh = [event(f"{number}-{user}", HITTER) for user in range(FRESH)]
    again = [event(f"{number}-{user}", HITTER) for user in range(FRESH // 4)]
    tired = [event(f"tired-{user}", HITTER) for user in range(TIRED)]
    late = [event(f"late-{user}", HITTER, time=now - HOUR_MS) for user in range(LATE)]
    bad = [b"{", event("ahead", HITTER, time=now + HOUR_MS), json.dumps({"item": "x"}).encode()]
    transient = [event(f"{number}-brief-{user}", TRANSIENT) for user in range(FRESH)]
    stays = number // BATCHES_A_STAY % 2 == 0
    return fresh + again + tired + late + bad + (transient if stays else [])


@dataclass
class Feed:
    """Sends batches from a thread of its own, until the end of the block."""

    bootstrap: str
    topic: str
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Feed":
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def _send(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap)
        await producer.start()
        try:
            number = 0
            while not self._over.is_set():
                number += 1
                with suppress(KafkaError):  # the broker is away at times
                    for record in batch(number):
                        await producer.send(self.topic, record)
                await asyncio.sleep(1 / BATCHES_A_SECOND)
        finally:
            await producer.stop()


@dataclass(frozen=True)
class Scene:
    """A service that runs, its operators' port, and the broker behind it."""

    port: int
    broker: Broker

    def metrics(self) -> str:
        return get(self.port, "/metrics")

    def value(self, name: str) -> float:
        """The sum over all labels."""
        return sum(
            sample.value
            for family in text_string_to_metric_families(self.metrics())
            for sample in family.samples
            if sample.name == name
        )

    def reaches(self, name: str, enough: Callable[[float], bool]) -> None:
        until(lambda: enough(self.value(name)), name)

    def lose_the_broker(self) -> None:
        """For a moment, until the service has noticed and said so."""
        errors = self.value("streamer_kafka_errors_total")
        self.broker.process.send_signal(signal.SIGSTOP)
        try:
            self.reaches("streamer_kafka_errors_total", lambda now: now > errors + 1)
            self.reaches("streamer_ready", lambda ready: ready == 0)
        finally:
            self.broker.process.send_signal(signal.SIGCONT)
        self.reaches("streamer_ready", lambda ready: ready == 1)


@contextmanager
def scene(directory: Path) -> Iterator[Scene]:
    with mortal_broker(directory / "kafka") as broker:
        world = World(broker.bootstrap, "scene")
        port = free_port()

        def service(**privacy: float) -> Deployed:
            return Deployed(
                world.settings(
                    stream=STREAM,
                    privacy=PRIVACY | privacy,
                    kafka=KAFKA,
                    http={"link_template": LINKS},
                    metrics={"port": port},
                ),
                directory,
            )

        with service() as before:
            before.reads()
            with Feed(broker.bootstrap, world.topic("events")):
                here = Scene(port, broker)
                here.reaches("streamer_hitters_total", bool)
                before.finish()
                with service(epsilon=5.0) as after:
                    after.reads()
                    here.reaches("streamer_users_exhausted", lambda users: users > FRESH)
                    yield here
