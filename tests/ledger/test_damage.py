"""A damaged ledger is refused, or read exactly; it is never taken for another or a new one."""

import asyncio
import random
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamer.errors import UnusableJournalError
from streamer.ledger.contract import Entry, Life
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import FileLedger, peek
from streamer.ledger.file_tables import ENDED, Tables
from streamer.ledger.output_files import OutputFiles
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from tests.ledger.making import facts_of, publication_of

pytestmark = pytest.mark.slow

LIFE, KEY = Life(60_000, 0), "0123456789abcdef"
TERMS = Terms(
    1.0, 1e-6, 10, Neighbours.REPLACE, Method.EXACT, 1440, refresh_steps=5, beta=0.05, items=1000
)
FIRST, LAST = 3, 20
DAMAGES = 300
BESIDE = f"{DATABASE}-journal"


def entry(step: int, period: Period) -> Entry:
    users = np.arange(step, 8 * step, dtype=np.uint64) << np.uint64(40)
    decided = Decided(
        step, step, period, (Hitter(f"crash:{step}", 500 + step),), Charges.full(users)
    )
    return Entry(decided, {"lines": 10 * step})


async def fill(ledger: FileLedger) -> None:
    """Decisions, charges, a snapshot, charges after it; the last one is unpublished."""
    period = Period.containing(FIRST, TERMS)
    for step in range(FIRST, LAST + 1):
        decision = entry(step, period)
        await ledger.append(decision)
        if step < LAST:
            await ledger.publish(publication_of(decision.decided))
        if step == 12:
            state = (await ledger.restore()).state
            await ledger.snapshot(state.charges)


async def told(directory: Path) -> tuple | None:
    """Everything that a ledger says; None if it says that it is new."""
    ledger = FileLedger(directory / DATABASE, LIFE, KEY)
    try:
        restored = await ledger.restore()
        outputs = Tables(ledger._database).published()[1] if restored else {}
        return restored and (facts_of(restored), outputs)
    finally:
        await ledger.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The directory of a ledger."""
    directory = tmp_path_factory.mktemp("whole")

    async def make() -> None:
        outputs = OutputFiles(directory / "hitters.jsonl", directory / "steps.jsonl")
        ledger = FileLedger(directory / DATABASE, LIFE, KEY, outputs)
        assert await ledger.restore() is None
        await ledger.claim()
        await fill(ledger)
        await ledger.close()

    asyncio.run(make())
    return directory


@pytest.fixture(scope="module", params=["step", "snapshot"])
def half(request, whole, tmp_path_factory):
    """The directory of a ledger as a process leaves it that was killed in the middle of a
    transaction: pages of it are in the file, and those before it in the file beside it."""
    directory = shutil.copytree(whole, tmp_path_factory.mktemp("half") / "open")
    database = sqlite3.connect(directory / DATABASE, isolation_level=None)
    database.execute("PRAGMA journal_mode = TRUNCATE")
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN IMMEDIATE")
    tables = Tables(database)
    charges = Charges.full(np.arange(5000, dtype=np.uint64))
    if request.param == "step":
        more = entry(LAST + 1, Period.containing(FIRST, TERMS))
        tables.put_step(replace(more, decided=replace(more.decided, charges=charges)))
    else:
        tables.put_snapshot(charges)
    left = shutil.copytree(directory, directory.parent / "left")
    database.close()
    assert (left / BESIDE).stat().st_size > 0
    assert (left / DATABASE).read_bytes() != (whole / DATABASE).read_bytes()
    return left


def overwritten(content: bytearray, chance: random.Random) -> None:
    at, number = chance.randrange(len(content)), chance.choice([1, 8, 300])
    number = min(number, len(content) - at)
    content[at : at + number] = chance.randbytes(number)


def flipped(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def zeroed(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content)) // 512 * 512
    content[at : at + 512] = bytes(512)


def truncated(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def pages_swapped(content: bytearray, chance: random.Random) -> None:
    one, other = (chance.randrange(len(content) // 4096) * 4096 for _ in range(2))
    first, second = content[one : one + 4096], content[other : other + 4096]
    content[one : one + 4096], content[other : other + 4096] = second, first


def damaged(directory: Path, file: str, damage, seed: int, work: Path) -> tuple | str | None:
    """What a copy of this ledger says after the damage."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(directory, work)
    content = bytearray((work / file).read_bytes())
    damage(content, random.Random(seed))
    (work / file).write_bytes(content)
    try:
        return asyncio.run(told(work))
    except UnusableJournalError:
        return "refused"


@pytest.mark.parametrize(
    "damage",
    [overwritten, flipped, zeroed, truncated, pages_swapped],
    ids=lambda each: each.__name__,
)
def test_damage_anywhere_in_the_file_is_refused_or_does_not_matter(whole, tmp_path, damage):
    right = asyncio.run(told(whole))
    for seed in range(DAMAGES):
        assert damaged(whole, DATABASE, damage, seed, tmp_path / "j") in ("refused", right), seed


def test_a_file_of_which_nothing_is_left_is_refused(whole, tmp_path):
    assert damaged(whole, DATABASE, lambda content, _: content.clear(), 0, tmp_path) == "refused"


def test_what_a_killed_process_left_is_taken_back(whole, half, tmp_path):
    left = shutil.copytree(half, tmp_path / "left")
    assert asyncio.run(told(left)) == asyncio.run(told(whole))


def test_the_mark_of_an_end_that_was_not_committed_is_taken_back(whole, half, tmp_path):
    left = shutil.copytree(half, tmp_path / "left")
    content = bytearray((left / DATABASE).read_bytes())
    content[60:64] = ENDED.to_bytes(4)
    (left / DATABASE).write_bytes(content)
    assert asyncio.run(told(left)) == asyncio.run(told(whole))


def test_a_look_at_what_a_killed_process_left_takes_nothing_back(half, tmp_path):
    left = shutil.copytree(half, tmp_path / "left")
    before = {each.name: each.read_bytes() for each in left.iterdir()}
    with pytest.raises(UnusableJournalError, match="interrupted during a write"):
        peek(left / DATABASE)
    assert {each.name: each.read_bytes() for each in left.iterdir()} == before


def test_a_look_at_damaged_pages_is_refused(whole, tmp_path):
    left = shutil.copytree(whole, tmp_path / "left")
    content = bytearray((left / DATABASE).read_bytes())
    # The first page is as it was, so the header is; all others are gone.
    content[4096:] = bytes(len(content) - 4096)
    (left / DATABASE).write_bytes(content)
    with pytest.raises(UnusableJournalError, match="cannot be read"):
        peek(left / DATABASE)


@pytest.mark.parametrize("file", [DATABASE, BESIDE])
@pytest.mark.parametrize(
    "damage", [overwritten, flipped, zeroed, truncated], ids=lambda each: each.__name__
)
def test_damage_in_what_a_killed_process_left_is_refused_or_does_not_matter(
    whole, half, tmp_path, damage, file
):
    right = asyncio.run(told(whole))
    for seed in range(60):
        assert damaged(half, file, damage, seed, tmp_path / "j") in ("refused", right), seed


def test_a_lost_file_beside_the_database_is_refused(half, tmp_path):
    left = shutil.copytree(half, tmp_path / "left")
    (left / BESIDE).unlink()
    with pytest.raises(UnusableJournalError):
        asyncio.run(told(left))
