"""What the budgets of ten million charged users take: memory, disk, and time.

    python benchmarks/journal.py [USERS]

Times are compared with writing (and syncing) and reading a plain file of the same bytes
in the same run. The bar: 10 to 20 bytes a user, in memory and in the journal.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from streamer.journal.base import Life
from streamer.journal.directory import DATABASE
from streamer.journal.sqlite import SqliteJournal
from streamer.monitors.counters import Counters
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.periods import Period, Terms
from streamer.stream.publication import Published
from streamer.stream.records import Decided, Entry

USERS = 10_000_000
CONTRIBUTIONS, STEPS_SINCE = 10, 5
LIFE, KEY = Life(60_000, 0), "0123456789abcdef"
TERMS = Terms(
    1.0, 1e-6, CONTRIBUTIONS, Neighbours.REPLACE, Method.EXACT, 1440, 1, beta=0.05, items=100_000
)


@contextmanager
def measured(seconds: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - start)


def row(what: str, users: int, size: int, seconds: float | None = None, plain: float = 0) -> None:
    line = f"{what:44} {size / users:6.1f} B/user"
    if seconds is not None:
        line += f" {seconds:8.2f} s {seconds / plain:6.1f} x a plain file"
    print(line)


def on_disk(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def plain_file(path: Path, content: bytes) -> tuple[float, float]:
    """Seconds to write this durably, and to read it again."""
    seconds: list[float] = []
    with measured(seconds), path.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    with measured(seconds):
        path.read_bytes()
    path.unlink()
    return seconds[0], seconds[1]


def charged_users(number: int, generator: np.random.Generator) -> Counters:
    """So many users, each charged one to k times."""
    users = np.unique(generator.integers(0, 2**64, number, dtype=np.uint64))
    charges = generator.integers(1, CONTRIBUTIONS + 1, len(users)).astype(np.uint16)
    counters = Counters(CONTRIBUTIONS)
    counters.restore(users, charges)
    return counters


def in_memory(counters: Counters) -> int:
    return sum(value.nbytes for value in vars(counters).values() if isinstance(value, np.ndarray))


async def main(number: int) -> None:
    generator = np.random.default_rng(1)
    counters = charged_users(number, generator)
    users, charges = counters.snapshot()
    print(f"{counters.charged:,} charged users, {counters.exhausted:,} of them exhausted")
    row("in memory", number, in_memory(counters))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "journal"
        directory.mkdir()
        write, read = plain_file(Path(name) / "plain", users.tobytes() + charges.tobytes())
        period = Period.containing(1, TERMS)
        journal = SqliteJournal(directory / DATABASE, LIFE, KEY)
        await journal.note_published(Published(0))
        await journal.append(Entry(Decided(1, 1, period)))
        seconds: list[float] = []
        for what in ("first snapshot, journal open", "second snapshot, journal open"):
            with measured(seconds):
                await journal.snapshot(users, charges)
            row(what, number, on_disk(directory), seconds[-1], write)
        step = await charge_until_due(journal, period, counters, generator)
        row("charges until a snapshot is due, open", number, on_disk(directory))
        await journal.close()
        row("the same, journal closed", number, on_disk(directory))
        journal = SqliteJournal(directory / DATABASE, LIFE, KEY)
        with measured(seconds):
            restored = await journal.restore()
        since = on_disk(directory)
        row("restore: snapshot and charges", number, since, seconds[-1], read * since / 10 / number)
        state = restored.state
        with measured(seconds):
            await journal.snapshot(state.users, state.charges)
        row(f"snapshot after step {step}, open", number, on_disk(directory), seconds[-1], write)
        await journal.close()
        row("the same, journal closed", number, on_disk(directory))
        journal = SqliteJournal(directory / DATABASE, LIFE, KEY)
        with measured(seconds):
            await journal.restore()
        row("restore: snapshot alone", number, on_disk(directory), seconds[-1], read)
        await journal.close()


async def charge_until_due(
    journal: SqliteJournal, period: Period, counters: Counters, generator: np.random.Generator
) -> int:
    """Steps in each of which a fifth of the users are charged, until a snapshot is due."""
    users, charges = counters.snapshot()
    active = users[charges < CONTRIBUTIONS]
    step = 1
    while not journal.snapshot_due:
        step += 1
        charged = active[generator.random(len(active)) < 1 / STEPS_SINCE]
        await journal.append(Entry(Decided(step, step, period, (), charged)))
        await journal.note_published(Published(step))
    return step


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else USERS))
