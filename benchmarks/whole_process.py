"""The memory of the whole service with ten million charged users.

    python -m benchmarks.whole_process [--users 1000000]

Their budgets are in the state topic. The service restores them and goes on: it reads
events, closes steps and charges more users. The peak of all that is measured.
"""

import asyncio

import numpy as np

from benchmarks.end_to_end import STREAM
from benchmarks.kafka import Deployment, broker
from benchmarks.loading import load
from benchmarks.past import write_past
from benchmarks.running import service
from benchmarks.table import Row, below, command_line
from benchmarks.workload import Workload

CONTRIBUTIONS, SHARES = 3, (1.0, 0.5, 0.25)
"""All users were charged once, half of those twice, and an eighth is exhausted."""


def measure(users: int = 10_000_000, events: int = 1_000_000) -> list[Row]:
    workload = Workload(events, 1_000_000, 100_000, first_step=len(SHARES))
    return asyncio.run(_measure(users, workload))


async def _measure(number: int, workload: Workload) -> list[Row]:
    users = np.unique(np.random.default_rng(1).integers(0, 2**64, number, dtype=np.uint64))
    with broker() as bootstrap:
        deployment = Deployment.reading(bootstrap, await load(bootstrap, workload))
        await write_past(deployment, users, SHARES, CONTRIBUTIONS)
        terms = {"STREAMER_PRIVACY__CONTRIBUTIONS": str(CONTRIBUTIONS)}
        async with service(deployment.environment() | STREAM | terms) as running:
            reads = await running.says("reading")
            restored = running.memory("VmHWM")
            await running.says(f"step {workload.last_step} closed")
            now, peak = running.memory("VmRSS"), running.memory("VmHWM")
            await running.finish()
    return [
        Row(
            f"memory of the whole process with {number:,} charged users",
            peak,
            "MB",
            below(600),
            f"peak; {restored:.0f} MB after the restore, {now:.0f} MB at the end, "
            f"{workload.steps} steps of {workload.per_step:,} events later; reads "
            f"{reads.clock - running.began:.1f} s after its start",
        )
    ]


if __name__ == "__main__":
    command_line(measure)
