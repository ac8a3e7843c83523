"""From the broker to published results, beside a raw drain of the same topic.

    python -m benchmarks.end_to_end [--events 200000 --rounds 1]

The service runs as it is deployed, a process of its own with its Kafka journal; the drain
reads the same topic with aiokafka and does nothing with it. They take turns. Start-up is
told apart: the service is measured from the moment it reads until the last step with
events is published, and what it published is held against the truth.
"""

import asyncio
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.kafka import Deployment, broker
from benchmarks.loading import PARTITIONS, load
from benchmarks.published import check_hitters, published
from benchmarks.running import answer, service
from benchmarks.table import Row, at_least, at_most, command_line
from benchmarks.workload import START, STEP_MS, Workload
from streamer.settings import StreamSettings
from streamer.stream.timing import format_rfc3339

USERS, ITEMS, LEAST_HOLDERS = 1_000_000, 100_000, 1_000
ITEMS_PER_STEP = StreamSettings().items_per_step
STREAM = {
    "STREAMER_STREAM__STEP_SECONDS": str(STEP_MS / 1000),
    "STREAMER_STREAM__EPOCH": format_rfc3339(START),  # so the first step is step 0
    "STREAMER_STREAM__START": format_rfc3339(START),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the service over the whole topic."""

    start_up: float
    seconds: float
    cpu: float
    peak_mb: float


def measure(events: int = 2_000_000, rounds: int = 5) -> list[Row]:
    return asyncio.run(_measure(Workload(events, USERS, ITEMS), rounds))


async def _measure(workload: Workload, rounds: int) -> list[Row]:
    truth = workload.truth(ITEMS_PER_STEP)
    if max(truth.values()) < LEAST_HOLDERS:
        raise SystemExit("events: too few for anything to be reported; try 60000 or more")
    with broker() as bootstrap:
        topic = await load(bootstrap, workload)
        drains: list[Mapping[str, float]] = []
        runs: list[Run] = []
        for _ in range(rounds):
            drains.append(await answer("benchmarks.drain", bootstrap, topic))
            runs.append(await run_once(Deployment.reading(bootstrap, topic), workload, truth))
    return _rows(workload, drains, runs)


async def run_once(
    deployment: Deployment, workload: Workload, truth: Mapping[tuple[int, str], int]
) -> Run:
    """The service over the whole topic, from an empty journal on."""
    async with service(deployment.environment() | STREAM) as running:
        reads = await running.says("reading")
        done = await running.says(f"step {workload.last_step} closed")
        peak = running.memory("VmHWM")
        await running.finish()
    hitters = await published(deployment.bootstrap, deployment.topic("hitters"))
    check_hitters(hitters, truth)
    return Run(reads.clock - running.began, done.clock - reads.clock, done.cpu - reads.cpu, peak)


def _rows(workload: Workload, drains: list[Mapping[str, float]], runs: list[Run]) -> list[Row]:
    ratios = [drain["seconds"] / run.seconds for drain, run in zip(drains, runs, strict=True)]
    rate = workload.events / statistics.median(run.seconds for run in runs)
    raw = workload.events / statistics.median(drain["seconds"] for drain in drains)
    million = workload.events / 1e6
    drain_cpu = statistics.median(drain["cpu"] for drain in drains) / million
    name = f"{workload.events:,} events, {PARTITIONS} partitions, {len(runs)} rounds in turns"
    spread = f"from {min(ratios):.2f} to {max(ratios):.2f}"
    return [
        Row(
            "end to end, of a raw aiokafka drain",
            statistics.median(ratios),
            "",
            at_least(0.6),
            f"{rate:,.0f} of {raw:,.0f} events/s, {spread}; {name}",
        ),
        Row(
            "CPU of the service for a million events",
            statistics.median(run.cpu for run in runs) / million,
            "s",
            at_most(4),
            f"the drain alone takes {drain_cpu:.2f} s",
        ),
        Row("peak memory on that run", max(run.peak_mb for run in runs), "MB", at_most(300)),
        Row("start-up of the service", statistics.median(run.start_up for run in runs), "s"),
    ]


if __name__ == "__main__":
    command_line(measure)
