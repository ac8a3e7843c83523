"""How fast the budgets of charged users are restored from the state topic.

    python -m benchmarks.kafka_restore [--users 1000000 --rounds 1]

A ledger writes them: a snapshot, and then charges until the next one is due. What is read
is what compaction leaves of that, right after the snapshot and right before the next one.
Restoring takes turns with a consumer of the same settings that reads the same topic and
does nothing with it.
"""

import asyncio
import multiprocessing
import secrets
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiokafka import TopicPartition

from benchmarks.kafka import broker, make_topic
from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, at_least, command_line
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import KafkaLedger, LedgerTopics
from streamer.kafka.transactions import Message, Transactions, committed_consumer, read_committed
from streamer.ledger.contract import Entry, Life, Restored
from streamer.monitors.counters import Charges, Counters
from streamer.monitors.seam import Users
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms

CONTRIBUTIONS, SHARES, SHARE_SINCE, NEW = 3, (1.0, 0.5, 0.25), 0.2, 0.1
"""Of those who still count, how many are charged in each step before the snapshot and in
each one since; how many users there are since for each that was charged before."""
TERMS = Terms(
    1.0, 1e-6, CONTRIBUTIONS, Neighbours.REPLACE, Method.EXACT, 1440, 1, beta=0.05, items=100_000
)


@dataclass(frozen=True, slots=True)
class StateTopic:
    bootstrap: str
    name: str
    identity: str
    """The transactional id: what is restored was written under it."""

    @property
    def connection(self) -> Connection:
        return Connection((self.bootstrap,))

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.name, 0)

    async def make(self) -> None:
        await make_topic(self.bootstrap, self.name, 1, cleanup_policy="compact")

    def transactions(self) -> Transactions:
        return Transactions(self.connection, self.identity, self.name)

    def ledger(self, transactions: Transactions) -> KafkaLedger:
        topics = LedgerTopics(self.name, f"{self.name}.hitters", f"{self.name}.steps", "events")
        return KafkaLedger(self.connection, transactions, topics, Life(60_000, 0), "0" * 16)

    async def restore(self) -> Restored:
        restored = await self.ledger(self.transactions()).restore()
        if restored is None:
            raise RuntimeError("nothing was restored: this is not the work to be measured")
        return restored

    async def drain(self) -> None:
        """Read everything, and do nothing with it."""
        consumer = committed_consumer(self.connection)
        await consumer.start()
        consumer.assign([self.partition])
        consumer.seek(self.partition, 0)
        end = (await consumer.end_offsets([self.partition]))[self.partition]
        while await consumer.position(self.partition) < end:
            await consumer.getmany(timeout_ms=500)
        await consumer.stop()

    async def compacted(self) -> dict[bytes, bytes]:
        """What compaction leaves in the long run."""
        left: dict[bytes, bytes] = {}
        async for record in read_committed(self.connection, self.partition, 0):
            left.pop(record.key, None)
            if record.value is not None:
                left[record.key] = record.value
        return left


def measure(users: int = 10_000_000, rounds: int = 5) -> list[Row]:
    with broker() as bootstrap:
        name = f"bench-{secrets.token_hex(4)}"
        written, taken, due = (
            StateTopic(bootstrap, f"{name}.{each}", name) for each in ("written", "taken", "due")
        )
        _in_new_process(_filled, written, taken, due, users)
        return [
            *asyncio.run(_compared("a snapshot", taken, rounds)),
            *asyncio.run(_compared("a snapshot and charges until the next", due, rounds)),
        ]


def _filled(written: StateTopic, taken: StateTopic, due: StateTopic, users: int) -> None:
    asyncio.run(_fill(written, taken, due, users))


async def _fill(written: StateTopic, taken: StateTopic, due: StateTopic, number: int) -> None:
    """Charge this many users, some of them several times, and take a snapshot; then charge some
    of those who still count, and of new ones, until the next is due."""
    generator = np.random.default_rng(1)
    total = round((1 + NEW) * number)
    everybody = np.unique(generator.integers(0, 2**64, total, dtype=np.uint64))
    known = np.sort(generator.choice(everybody, number, replace=False))
    counters, period, step = Counters(CONTRIBUTIONS), Period.containing(1, TERMS), 0
    await written.make()
    transactions = written.transactions()
    await transactions.start()
    ledger = written.ledger(transactions)
    await ledger.restore()

    async def charge(users: Users, share: float) -> None:
        nonlocal step
        step += 1
        charged = users[counters.active(users) & (generator.random(len(users)) < share)]
        charges = Charges.full(charged)
        counters.charge(charges)
        await ledger.append(Entry(Decided(step, step, period, (), charges)))

    for share in SHARES:
        await charge(known, share)
    await ledger.snapshot(counters.snapshot())
    await _copy(written, taken)
    while not ledger.snapshot_due:
        await charge(everybody, SHARE_SINCE)
    await _copy(written, due)
    await transactions.stop()


async def _copy(written: StateTopic, compacted: StateTopic) -> None:
    await compacted.make()
    # Under an id of its own: the ledger that writes goes on.
    transactions = Transactions(compacted.connection, compacted.name, compacted.name)
    await transactions.start()
    left = await written.compacted()
    await transactions.commit([Message(compacted.name, key, value) for key, value in left.items()])
    await transactions.stop()


async def _compared(what: str, topic: StateTopic, rounds: int) -> list[Row]:
    size = sum(len(key) + len(value) for key, value in (await topic.compacted()).items())
    users = len((await topic.restore()).state.charges)
    watch = Stopwatch()
    for _ in range(rounds):
        with watch.measure("drain"):
            await topic.drain()
        with watch.measure("restore"):
            await topic.restore()
    drains, restores = watch.seconds["drain"], watch.seconds["restore"]
    ratios = [drain / restore for drain, restore in zip(drains, restores, strict=True)]
    seconds, raw = watch.median("restore"), watch.median("drain")
    before, most = _in_new_process(_memory_of_restore, topic)
    return [
        Row(
            f"restore of {what}, of a raw read",
            statistics.median(ratios),
            "",
            at_least(0.5),
            f"{users:,} users, {size:,} bytes: {seconds:.2f} s, {size / seconds / 1e6:,.0f} of "
            f"{size / raw / 1e6:,.0f} MB/s, from {min(ratios):.2f} to {max(ratios):.2f}; "
            f"{rounds} rounds in turns",
        ),
        Row("peak memory of that", most, "MB", detail=f"{before:.0f} MB before"),
    ]


def _in_new_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """So that its memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _memory_of_restore(topic: StateTopic) -> tuple[float, float]:
    before = _peak_memory()
    asyncio.run(topic.restore())
    return before, _peak_memory()


def _peak_memory() -> float:
    """Of this process, in MB: what getrusage tells begins with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    command_line(measure)
