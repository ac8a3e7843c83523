"""A run that dies and is started again ends as if nothing had happened.

The runs are processes of their own that end by SIGKILL, at every point of the protocol,
in the middle of a line and at random moments. The noise depends on the step and the item
alone, so that a step decided twice over other users would give other values.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from streamer.ledger.contract import Life
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import FileLedger
from streamer.stream.pseudonyms import Pseudonyms
from tests.service.repeatable import KEY, SETTINGS, events, write_events

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
POINTS = ("decided", "appended", "published", "noted", "snapshot taken")
# Several periods of 40 steps, single empty steps, and long gaps: within a period, to the
# end of one, and over a whole one.
SHORT = [*range(3, 25), *range(30, 40), *range(45, 60, 3), *range(130, 150)]
LONG = [step for step in range(3, 1100) if step % 17 and not 150 < step < 240]
KILLS = 250
STATEMENTS = (
    "BEGIN",
    "INSERT INTO steps",
    "INSERT INTO charges",
    "INSERT INTO published",
    "INSERT INTO counters",
    "DELETE FROM charges",
    "COMMIT",
)


class Nursery:
    """Runs jobs in forks of one warm process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.service.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self, **order: object) -> dict:
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery has died"
        return json.loads(answer)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@dataclass(frozen=True)
class Place:
    """Where a run has its input, outputs and journal."""

    directory: Path
    source: Path

    def order(self) -> dict[str, str]:
        return {
            "source": str(self.source),
            "sink": str(self.directory / "hitters.jsonl"),
            "steps": str(self.directory / "steps.jsonl"),
            "journal": str(self.directory / "journal"),
        }

    def outcome(self) -> tuple:
        """Everything that must not depend on how often a run died."""
        hitters = (self.directory / "hitters.jsonl").read_text().splitlines()
        steps = (self.directory / "steps.jsonl").read_text().splitlines()
        restored = asyncio.run(_restored(self.directory / "journal"))
        state = restored.state
        assert restored.published == state.closed
        assert state.charges.max() <= SETTINGS["privacy"]["contributions"]
        counters = dict(zip(state.users.tolist(), state.charges.tolist(), strict=True))
        return hitters, steps, state.closed, state.period, counters, dict(state.resting)


async def _restored(directory: Path):
    fingerprint = Pseudonyms(bytes.fromhex(KEY)).fingerprint
    journal = FileLedger(directory / DATABASE, Life(1000, 0), fingerprint)
    try:
        return await journal.restore()
    finally:
        await journal.close()


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def memory():
    """A directory in memory if there is one: what a killed process wrote is not lost there,
    and hundreds of runs need not wait for a disk."""
    disk = Path("/dev/shm")
    with TemporaryDirectory(dir=disk if os.access(disk, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture
def directory(memory):
    made = memory / str(uuid4())
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def short(memory):
    return write_events(memory / "short.jsonl", events(SHORT))


@pytest.fixture(scope="module")
def undisturbed(nursery, short, memory):
    place = Place(memory, short)
    answer = nursery.run(**place.order())
    assert not answer["killed"]
    assert answer["steps"] == 147
    return place.outcome()


@pytest.fixture(scope="module")
def long(memory):
    return write_events(memory / "long.jsonl", events(LONG, seed=2))


@pytest.fixture(scope="module")
def calm(nursery, long, memory):
    """How the long run ends if nothing disturbs it."""
    (memory / "calm").mkdir()
    place = Place(memory / "calm", long)
    assert not nursery.run(**place.order())["killed"]
    return place.outcome()


def test_the_undisturbed_run_has_something_to_lose(undisturbed):
    hitters, steps, closed, period, counters, _ = undisturbed
    assert len(hitters) > 50
    assert closed == 149
    assert period.number == 3
    assert max(counters.values()) == 3
    covered = [
        step
        for record in map(json.loads, steps)
        for step in range(record.get("first", record["step"]), record["step"] + 1)
    ]
    assert covered == list(range(3, 150))


@pytest.mark.parametrize("ordered", [True, False], ids=["sorted", "unordered"])
@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_of_the_protocol(
    nursery, short, undisturbed, directory, point, number, ordered
):
    place = Place(directory, short)
    assert nursery.run(**place.order(), ordered=ordered, kill_at=[point, number])["killed"]
    assert not nursery.run(**place.order(), ordered=ordered)["killed"]
    assert place.outcome() == undisturbed


@pytest.mark.parametrize("write", [1, 2, 3, 4, 15, 16])
def test_killed_in_the_middle_of_writing_a_line(nursery, short, undisturbed, directory, write):
    place = Place(directory, short)
    assert nursery.run(**place.order(), tear_write=write)["killed"]
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == undisturbed


def test_killed_twice_while_it_recovers(nursery, short, undisturbed, directory):
    place = Place(directory, short)
    for order in ({"tear_write": 9}, {"tear_write": 1}, {"kill_at": ["published", 1]}):
        assert nursery.run(**place.order(), **order)["killed"]
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == undisturbed


@pytest.mark.parametrize("number", [1, 2, 20])
def test_a_decision_that_cannot_be_kept_is_not_published(
    nursery, short, undisturbed, directory, number
):
    place = Place(directory, short)
    answer = nursery.run(**place.order(), fail_at=["INSERT INTO steps", number])
    assert answer["error"] == "JournalWriteError"
    assert "disk I/O error" in answer["message"]
    failed = SHORT[number - 1]  # up to there every step has events
    earlier = [record for record in undisturbed[1] if json.loads(record)["step"] < failed]
    while earlier and not json.loads(earlier[-1])["hitters"]:
        earlier.pop()  # is recorded with the next hitters, or at the end
    assert (directory / "steps.jsonl").read_text().splitlines() == earlier


@pytest.mark.parametrize("number", [3, 6])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_journal_that_fails_at_a_statement_is_as_it_was_before_the_transaction(
    nursery, short, undisturbed, directory, statement, number
):
    place = Place(directory, short)
    answer = nursery.run(**place.order(), fail_at=[statement, number])
    assert answer["error"] == "JournalWriteError"
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == undisturbed


@pytest.mark.parametrize("number", [1, 3, 6])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_killed_in_the_middle_of_writing_the_journal(
    nursery, short, undisturbed, directory, statement, number
):
    place = Place(directory, short)
    assert nursery.run(**place.order(), kill_in=[statement, number])["killed"]
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == undisturbed


def test_a_transaction_that_is_half_in_its_file_is_taken_back(nursery, long, calm, directory):
    place, half = Place(directory, long), 0
    for number in (2, 60, 200, 500):
        assert nursery.run(**place.order(), kill_in=["COMMIT", number])["killed"]
        half += (directory / "journal" / f"{DATABASE}-journal").stat().st_size > 0
    assert half > 1
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == calm


def test_a_full_disk_ends_the_run_and_more_room_lets_it_go_on(nursery, long, calm, directory):
    place = Place(directory, long)
    assert nursery.run(**place.order(), file_limit=20_000)["error"] == "UnusableJournalError"
    for limit in (50_000, 90_000, 91_000, 110_000):
        answer = nursery.run(**place.order(), file_limit=limit)
        assert answer["error"] in ("JournalWriteError", "PublishError"), answer
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == calm


def test_a_full_disk_under_the_outputs_ends_the_run_and_more_room_lets_it_go_on(
    nursery, short, undisturbed, directory
):
    # A sink that is far larger than the journal is the first to reach the limit.
    earlier = "earlier\n" * 500_000
    (directory / "hitters.jsonl").write_text(earlier)
    place = Place(directory, short)
    answer = nursery.run(**place.order(), start_anew=True, file_limit=len(earlier) + 3000)
    assert answer["error"] == "PublishError"
    assert not nursery.run(**place.order())["killed"]
    hitters, *rest = place.outcome()
    assert hitters == earlier.splitlines() + undisturbed[0]
    assert rest == list(undisturbed[1:])


def test_killed_at_hundreds_of_random_moments(nursery, long, calm, directory):
    place = Place(directory, long)
    chance = random.Random(3)
    for _ in range(KILLS):
        # So many points of the protocol, and a moment more: anywhere in a step.
        moment = [chance.randrange(9), chance.uniform(0, 0.001)]
        assert nursery.run(**place.order(), kill_after=moment)["killed"], "it ended too early"
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == calm
