"""Streams to kill services over: a backlog of known events, and one that is sent as time goes."""

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamer.service.startup import timing_of
from streamer.settings import Settings
from streamer.stream.timing import format_rfc3339
from tests.kafka.conftest import World
from tests.kafka.evidence import Evidence, closed
from tests.kafka.scripted import (
    PRIVACY,
    SCRIPTED,
    Reference,
    arrived,
    make_topic,
    produce,
    reference,
    script,
    send_live,
)

WAIT_SECONDS = 90


class Backlog:
    """Events of the last hours, all of them in the topic before the first instance starts.

    Steps are counted from the first one; the last one is over by now.
    """

    def __init__(
        self,
        world: World,
        directory: Path,
        steps: Iterable[int],
        period_steps: int,
        step_ms: int = 10_000,
        kafka: dict[str, Any] | None = None,
    ) -> None:
        steps = list(steps)
        self.directory = directory
        first_ms = (_now_ms() // step_ms - steps[-1] - 2) * step_ms
        self.settings = world.settings(
            stream={
                "step_seconds": step_ms / 1000,
                "lateness_seconds": step_ms / 5000,
                "epoch": format_rfc3339(first_ms),
                "start": format_rfc3339(first_ms),
            },
            privacy=PRIVACY | {"period_steps": period_steps},
            kafka=SCRIPTED | {"max_poll_records": 300} | (kafka or {}),
        )
        stream = script(first_ms, steps, length_ms=step_ms)
        asyncio.run(self._send(world, stream))
        self.expected = asyncio.run(reference(stream, self.settings, directory))

    async def _send(self, world: World, stream: list) -> None:
        await make_topic(world.bootstrap, world.topic("events"))
        await produce(world.bootstrap, world.topic("events"), stream)

    def wait_for_the_end(self) -> None:
        """Until the last step with events is closed."""
        asyncio.run(closed(self.settings, self.expected.last, WAIT_SECONDS))


class LiveStream:
    """Events that are sent while the service runs; the broker tells when each arrived."""

    def __init__(self, world: World, directory: Path) -> None:
        self._directory = directory
        self.settings = world.settings(
            privacy=PRIVACY | {"period_steps": 20},
            kafka={
                "events_partitions": 3,
                "skew_seconds": 1.0,
                "request_timeout_seconds": 2,
                "transaction_timeout_seconds": 4,
            },
        )

    @contextmanager
    def events(self) -> Iterator[None]:
        """Events are sent during the block, from a thread of their own."""
        kafka = self.settings.kafka
        loop = asyncio.new_event_loop()
        sending = loop.create_task(send_live(kafka.bootstrap_servers, kafka.events_topic))

        def run() -> None:
            try:
                loop.run_until_complete(sending)
            except asyncio.CancelledError:
                pass
            finally:
                loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(sending.cancel)
            thread.join(WAIT_SECONDS)

    async def outcome(self) -> tuple[Evidence, Reference]:
        """What the topics hold, and what they should."""
        kafka = self.settings.kafka
        stream = await arrived(kafka.bootstrap_servers, kafka.events_topic)
        expected = await reference(stream, self.settings, self._directory)
        return await Evidence.gather(self.settings), expected


def wait_until_now_is_closed(settings: Settings) -> None:
    """Until the step that this moment lies in is closed: whoever closes it is well."""
    step = timing_of(settings.stream).step_at(_now_ms())
    asyncio.run(closed(settings, step, WAIT_SECONDS))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
