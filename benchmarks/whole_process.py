"""The memory of the whole service with ten million charged users.

    python -m benchmarks.whole_process [--users 1000000]

Their budgets are in the state topic. The service restores them and goes on: it reads
events, closes steps and charges more users. The peak of all that is measured.
"""

import asyncio
from dataclasses import replace

import numpy as np

from benchmarks.bare_engine import TERMS
from benchmarks.kafka import KEY, Deployment, broker, make_topic
from benchmarks.loading import load
from benchmarks.running import service
from benchmarks.table import Row, below, command_line
from benchmarks.workload import START, STEP_MS, Workload
from streamer.broker.connection import Connection
from streamer.broker.transactions import Transactions
from streamer.journal.base import Life
from streamer.journal.kafka import KafkaJournal
from streamer.monitors.counters import Counters
from streamer.stream.periods import Period
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Published
from streamer.stream.records import Decided, Entry
from streamer.stream.timing import format_rfc3339

CONTRIBUTIONS, SHARES = 3, (1.0, 0.5, 0.25)
"""How many of the users were charged in each of the past steps."""
PAST_STEPS = len(SHARES)
PAST_TERMS = replace(TERMS, contributions=CONTRIBUTIONS)
LIFE = Life(STEP_MS, START - PAST_STEPS * STEP_MS)
STREAM = {
    "STREAMER_STREAM__STEP_SECONDS": str(STEP_MS / 1000),
    "STREAMER_STREAM__EPOCH": format_rfc3339(LIFE.epoch_ms),
    "STREAMER_PRIVACY__CONTRIBUTIONS": str(CONTRIBUTIONS),
}


def measure(users: int = 10_000_000, events: int = 1_000_000) -> list[Row]:
    return asyncio.run(_measure(users, Workload(events, 1_000_000, 100_000)))


async def _measure(users: int, workload: Workload) -> list[Row]:
    with broker() as bootstrap:
        deployment = Deployment.reading(bootstrap, await load(bootstrap, workload))
        await _write_past(deployment, users)
        async with service(deployment.environment() | STREAM) as running:
            reads = await running.says("reading")
            restored = running.memory("VmHWM")
            await running.says(f"step {PAST_STEPS + workload.steps - 1} closed")
            now, peak = running.memory("VmRSS"), running.memory("VmHWM")
            await running.finish()
    return [
        Row(
            "memory of the whole process with so many charged users",
            peak,
            "MB",
            below(600),
            f"peak; {users:,} users; {restored:.0f} MB after the restore, {now:.0f} MB at the end, "
            f"{workload.steps} steps of {workload.per_step:,} events later; reads "
            f"{reads.clock - running.began:.1f} s after its start",
        )
    ]


async def _write_past(deployment: Deployment, number: int) -> None:
    """A journal of somebody who charged so many users, some of them as often as is allowed."""
    topic, connection = deployment.topic("state"), Connection((deployment.bootstrap,))
    await make_topic(deployment.bootstrap, topic, 1, cleanup_policy="compact")
    transactions = Transactions(connection, deployment.name, topic)
    await transactions.start()
    journal = KafkaJournal(
        connection,
        transactions,
        topic,
        LIFE,
        deployment.events_topic,
        Pseudonyms(bytes.fromhex(KEY)).fingerprint,
    )
    await journal.restore()
    await journal.note_published(Published(PAST_STEPS - 1))
    generator, period = np.random.default_rng(1), Period.containing(0, PAST_TERMS)
    users = np.unique(generator.integers(0, 2**64, number, dtype=np.uint64))
    counters = Counters(CONTRIBUTIONS)
    for step, share in enumerate(SHARES):
        charged = users[counters.active(users) & (generator.random(len(users)) < share)]
        counters.charge(charged)
        await journal.append(Entry(Decided(step, step, period, (), charged)))
    await journal.snapshot(*counters.snapshot())
    await transactions.stop()


if __name__ == "__main__":
    command_line(measure)
