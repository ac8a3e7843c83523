"""The same job with Quix Streams, on the same broker and events of the same kind.

    python -m benchmarks.quix [--events 20000 --rounds 1]

`quix_job.py` is the job as people would write it. It is timed until the broker has its
committed offsets at the end of the events and of the topic between its two stages. What
it wrote is held against the truth. Being slower, it gets fewer events; the service runs
over its own larger topic in turns with it, and their rates are compared.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.end_to_end import ITEMS, ITEMS_PER_STEP, USERS, run_once
from benchmarks.kafka import Deployment, broker, make_topic
from benchmarks.loading import PARTITIONS, append, load
from benchmarks.published import committed
from benchmarks.quix_job import LATENESS, LEAST_USERS
from benchmarks.running import process
from benchmarks.table import Row, at_least, command_line
from benchmarks.workload import START, STEP_MS, Columns, Workload
from tests.kafka.broker import CACHE

VERSION = "3.28.1"
JOB = Path(__file__).with_name("quix_job.py")
_SECONDS = 1800


def measure(events: int = 200_000, service_events: int = 2_000_000, rounds: int = 5) -> list[Row]:
    return asyncio.run(
        _measure(Workload(events, USERS, ITEMS), Workload(service_events, USERS, ITEMS), rounds)
    )


async def _measure(workload: Workload, larger: Workload, rounds: int) -> list[Row]:
    python = environment()
    truth, larger_truth = workload.truth(1), larger.truth(ITEMS_PER_STEP)
    rates, quix_rates = [], []
    with broker() as bootstrap:
        topic = await load(bootstrap, larger)
        for _ in range(rounds):
            deployment = Deployment.reading(bootstrap, topic)
            run = await run_once(deployment, larger, larger_truth)
            rates.append(larger.events / run.seconds)
            seconds = await _run_quix(python, bootstrap, workload, truth)
            quix_rates.append(workload.events / seconds)
    ratios = [ours / theirs for ours, theirs in zip(rates, quix_rates, strict=True)]
    return [
        Row(
            f"events/s, of Quix Streams {VERSION} with exactly-once",
            statistics.median(ratios),
            "times",
            at_least(30),
            f"{statistics.median(rates):,.0f} and {statistics.median(quix_rates):,.0f} events/s, "
            f"from {min(ratios):.0f} to {max(ratios):.0f}; {larger.events:,} and "
            f"{workload.events:,} events, {rounds} rounds in turns, both outputs checked",
        )
    ]


def environment() -> Path:
    """A Python that has Quix Streams, made once, outside of the work tree."""
    directory = CACHE.with_name(f"quixstreams-{VERSION}")
    python, done = directory / "bin" / "python", directory / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
        install = ("-m", "pip", "install", "--quiet", f"quixstreams=={VERSION}")
        subprocess.run([python, *install], check=True)
        done.touch()
    return python


async def _run_quix(
    python: Path, bootstrap: str, workload: Workload, truth: Mapping[tuple[int, str], int]
) -> float:
    """The seconds it took, from an empty state on."""
    topic = await load(bootstrap, workload)
    name = f"quix-{topic}"
    await make_topic(bootstrap, name, 1)
    # A window of Quix's closes only when a later event comes.
    await append(bootstrap, topic, _one_for_each_partition(workload.steps))
    between = f"repartition__{name}--{topic}--item"
    with tempfile.TemporaryDirectory() as directory:
        arguments = (str(JOB), bootstrap, topic, name, name, directory)
        async with process(str(python), *arguments) as job:
            began = (await job.says("now processing incoming messages")).clock
            await _processed(bootstrap, name, (topic, between))
            seconds = time.perf_counter() - began
            await _flush(bootstrap, topic, workload)
            await _check(bootstrap, name, truth)
            await job.finish()
    return seconds


def _one_for_each_partition(step: int) -> Columns:
    """Events just after the last step."""
    users = np.arange(PARTITIONS)
    return Columns(users, users, np.full(PARTITIONS, START + step * STEP_MS))


async def _processed(bootstrap: str, group: str, topics: tuple[str, str]) -> None:
    """Wait until the group has committed the end of both topics."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, isolation_level="read_committed"
    )
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await consumer.start()
    await admin.start()
    try:
        partitions = [TopicPartition(topic, n) for topic in topics for n in range(PARTITIONS)]
        async with asyncio.timeout(_SECONDS):
            while True:
                done = await admin.list_consumer_group_offsets(group)
                ends = await consumer.end_offsets(partitions)
                # The last place of a topic that is written in transactions is a mark.
                left = [
                    ends[p] - done[p].offset - (p.topic != topics[0]) if p in done else 1
                    for p in partitions
                ]
                if max(left) <= 0:
                    return
                await asyncio.sleep(0.1)
    finally:
        await admin.close()
        await consumer.stop()


async def _flush(bootstrap: str, topic: str, workload: Workload) -> None:
    """Let all windows close: by events of many items, so that every partition has some."""
    after = START + workload.steps * STEP_MS + round(LATENESS.total_seconds() * 1000)
    users = np.arange(64 * PARTITIONS)
    for moment in (after + 2 * STEP_MS, after + 4 * STEP_MS):
        columns = Columns(users, workload.items + users, np.full(len(users), moment))
        await append(bootstrap, topic, columns)


async def _check(bootstrap: str, topic: str, truth: Mapping[tuple[int, str], int]) -> None:
    expected = {place: users for place, users in truth.items() if users >= LEAST_USERS}
    if not expected:
        raise RuntimeError(f"no item has {LEAST_USERS} users: this is not the work to be measured")
    records = await committed(bootstrap, topic)
    deadline = time.monotonic() + 60
    while len(records) < len(expected) and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
        records = await committed(bootstrap, topic)
    windows = [(json.loads(record.key), json.loads(record.value)) for record in records]
    found = {
        ((window["start"] - START) // STEP_MS, item): window["value"] for item, window in windows
    }
    if found != expected or len(records) != len(expected):
        wrong = dict(found.items() ^ expected.items())
        raise RuntimeError(f"Quix's counts are not the truth: {list(wrong.items())[:5]}")


if __name__ == "__main__":
    command_line(measure)
