"""The file journal with the budgets of ten million charged users: disk and time.

    python -m benchmarks.journal [--users 1000000]

Times are compared with writing (and syncing) and reading a plain file of the same bytes
in the same run.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.bare_engine import TERMS
from benchmarks.table import Row, at_most, command_line
from streamer.ledger.contract import Entry, Life
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import FileLedger
from streamer.monitors.counters import Charges, Counters
from streamer.privacy.prices import FULL
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Publication

STEPS_SINCE = 5
LIFE, KEY = Life(60_000, 0), "0123456789abcdef"


def measure(users: int = 10_000_000) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(_measure(users, Path(directory)))


async def _measure(number: int, place: Path) -> list[Row]:
    generator = np.random.default_rng(1)
    counters = _charged_users(number, generator)
    charges = counters.snapshot()
    content = charges.users.tobytes() + charges.units.tobytes()
    plain_write, plain_read = _plain_file(place / "plain", content)
    directory = place / "journal"
    directory.mkdir()
    period = Period.containing(1, TERMS)
    journal = FileLedger(directory / DATABASE, LIFE, KEY)
    await journal.restore()
    await journal.append(Entry(Decided(1, 1, period)))
    seconds: dict[str, float] = {}
    with _measured(seconds, "snapshot"):
        await journal.snapshot(charges)
    snapshot = _on_disk(directory)
    await _charge_until_due(journal, period, counters, generator)
    await journal.close()
    due = _on_disk(directory)
    journal = FileLedger(directory / DATABASE, LIFE, KEY)
    with _measured(seconds, "restore"):
        await journal.restore()
    await journal.close()
    write, read = seconds["snapshot"], seconds["restore"]
    return [
        Row(
            "file journal, on disk for a charged user",
            due / number,
            "bytes",
            at_most(20),
            f"when a snapshot is due, which is the most; {snapshot / number:.1f} after one; "
            f"{number:,} users",
        ),
        Row(
            "file journal, a snapshot",
            write,
            "s",
            None,
            f"{write / plain_write:.1f} times writing and syncing a plain file",
        ),
        Row(
            "file journal, restore of a snapshot and as many charges",
            read,
            "s",
            None,
            f"a plain file is read from the cache in {plain_read:.2f} s",
        ),
    ]


@contextmanager
def _measured(seconds: dict[str, float], part: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - start


def _on_disk(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def _plain_file(path: Path, content: bytes) -> tuple[float, float]:
    """Seconds to write this durably, and to read it again."""
    seconds: dict[str, float] = {}
    with _measured(seconds, "write"), path.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    with _measured(seconds, "read"):
        path.read_bytes()
    return seconds["write"], seconds["read"]


def _charged_users(number: int, generator: np.random.Generator) -> Counters:
    """This many users, each charged one to k times."""
    users = np.unique(generator.integers(0, 2**64, number, dtype=np.uint64))
    times = generator.integers(1, TERMS.contributions + 1, len(users))
    counters = Counters(TERMS.contributions)
    counters.restore(Charges(users, (FULL * times).astype(np.uint16)))
    return counters


async def _charge_until_due(
    journal: FileLedger, period: Period, counters: Counters, generator: np.random.Generator
) -> None:
    """Steps in each of which a fifth of the users are charged, until a snapshot is due."""
    users = counters.snapshot().users
    active = users[counters.active(users)]
    step = 1
    while not journal.snapshot_due:
        step += 1
        charged = active[generator.random(len(active)) < 1 / STEPS_SINCE]
        await journal.append(Entry(Decided(step, step, period, (), Charges.full(charged))))
        await journal.publish(Publication(step, (), ()))


if __name__ == "__main__":
    command_line(measure)
