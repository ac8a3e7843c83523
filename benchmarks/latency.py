"""How soon after a step the world can read its result, under a steady live load.

    python -m benchmarks.latency [--steps 20 --rate 20000]

One-second steps. From the moment at which a step's results are to leave (its end, the
lateness, the skew and stream.publish_delay_seconds) to the moment at which a consumer that
reads committed records has them. The service, the broker, the load and the reader are
processes on one machine.
"""

import asyncio
import json
import re
import secrets
import time
from urllib.request import urlopen

import numpy as np
from aiokafka import AIOKafkaConsumer, TopicPartition
from numpy.typing import NDArray

from benchmarks.kafka import Deployment, broker, make_topic
from benchmarks.loading import PARTITIONS
from benchmarks.running import answer, service
from benchmarks.table import Row, below, command_line
from streamer.config import load
from streamer.service.startup import schedule_of
from tests.kafka.broker import free_port

STREAM = {"step_seconds": 1.0, "lateness_seconds": 0.5}
SETTINGS = load({"stream": STREAM})
SCHEDULE = schedule_of(SETTINGS.stream, SETTINGS.kafka.skew_seconds)
WARM_UP_STEPS = 10


def measure(steps: int = 300, rate: int = 100_000) -> list[Row]:
    return asyncio.run(_measure(steps, rate))


async def _measure(steps: int, rate: int) -> list[Row]:
    with broker() as bootstrap:
        topic = f"events-{secrets.token_hex(4)}"
        await make_topic(bootstrap, topic, PARTITIONS, message_timestamp_type="LogAppendTime")
        deployment, port = Deployment.reading(bootstrap, topic), free_port()
        stream = {
            **{f"STREAMER_STREAM__{name.upper()}": str(each) for name, each in STREAM.items()},
            "STREAMER_METRICS__PORT": str(port),
        }
        async with service(deployment.environment() | stream) as running:
            began = await running.says("reading")
            seconds = steps + WARM_UP_STEPS + 3
            arguments = (bootstrap, topic, str(rate), str(seconds))
            loading = asyncio.create_task(answer("benchmarks.live_load", *arguments))
            delays = await _delays(deployment, WARM_UP_STEPS + steps)
            load = await loading
            events = await _events(port)
            ended = running.now()
            await running.finish()
    busy = (ended.cpu - began.cpu) / (ended.clock - began.clock)
    return _rows(np.array(delays), load, events, busy)


async def _delays(deployment: Deployment, steps: int) -> list[float]:
    """Milliseconds until each step could be read once it was to leave, after a warm-up."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=deployment.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    hitters, closed = (TopicPartition(deployment.topic(kind), 0) for kind in ("hitters", "steps"))
    await consumer.start()
    try:
        consumer.assign([hitters, closed])
        delays: dict[int, float] = {}
        async with asyncio.timeout(2 * steps + 60):
            while len(delays) < steps:
                found = await consumer.getmany(timeout_ms=1000)
                now = time.time() * 1000
                for step in (json.loads(record.value) for record in found.get(closed, [])):
                    if step["hitters"]:
                        delays[step["step"]] = now - SCHEDULE.release_at(step["step"])
    finally:
        await consumer.stop()
    measured = sorted(delays)[WARM_UP_STEPS:]
    if measured[-1] - measured[0] != len(measured) - 1:
        raise RuntimeError("a step had no hitters: the load was not steady, or not taken in")
    return [delays[step] for step in measured]


async def _events(port: int) -> dict[str, float]:
    """What became of the events, as the service's metrics say."""

    def scrape() -> str:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            return str(response.read().decode())

    text = await asyncio.to_thread(scrape)
    found = re.findall(r'streamer_events_total{outcome="(\w+)"} (\S+)', text)
    return {outcome: float(number) for outcome, number in found}


def _rows(
    delays: NDArray[np.float64], load: dict[str, float], events: dict[str, float], busy: float
) -> list[Row]:
    detail = (
        f"{load['rate']:,.0f} events/s sent, slowest tick {1000 * load['latest']:.0f} ms late, "
        f"{events['late']:,.0f} events late; the load took {100 * load['cpu']:.0f}% of a core, "
        f"the service {100 * busy:.0f}%"
    )
    name = "the moment at which a result leaves to its being readable"
    return [
        Row(f"{name}, p50", float(np.percentile(delays, 50)), "ms", below(100), detail),
        Row(
            f"{name}, p99",
            float(np.percentile(delays, 99)),
            "ms",
            below(250),
            f"{len(delays)} steps of a second, at most {delays.max():.0f} ms",
        ),
    ]


if __name__ == "__main__":
    command_line(measure)
