"""A run that dies and is started again ends as if nothing had happened.

The runs are processes of their own that end by SIGKILL, at every point of the protocol,
in the middle of a line and at random moments. The noise depends on the step and the item
alone, so that a step decided twice over other users would give other values.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import peek
from streamer.privacy.prices import FULL
from streamer.stream.timing import format_rfc3339
from tests.ledger.making import units_of
from tests.service.repeatable import SETTINGS, events, write_events

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
POINTS = ("decided", "appended", "published", "noted", "snapshot taken")
# Several periods of 40 steps, single empty steps, and long gaps: within a period, to the
# end of one, and over a whole one.
SHORT = [*range(3, 25), *range(30, 40), *range(45, 60, 3), *range(130, 150)]
LONG = [step for step in range(3, 1100) if step % 17 and not 150 < step < 240]
MARK = "PRAGMA user_version ="
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
    attention: str = "changes"

    def order(self) -> dict[str, str]:
        return {
            "source": str(self.source),
            "sink": str(self.directory / "hitters.jsonl"),
            "steps": str(self.directory / "steps.jsonl"),
            "journal": str(self.directory / "journal"),
            "attention": self.attention,
        }

    def outcome(self) -> tuple:
        """Everything that must not depend on how often a run died."""
        hitters = (self.directory / "hitters.jsonl").read_text().splitlines()
        steps = (self.directory / "steps.jsonl").read_text().splitlines()
        restored = peek(self.directory / "journal" / DATABASE).restored
        state = restored.state
        assert restored.published == state.closed
        counters = units_of(restored)
        assert max(counters.values()) <= FULL * SETTINGS["privacy"]["contributions"]
        said = [(decided.step, decided.hitters) for decided in state.recent if decided.hitters]
        return hitters, steps, state.closed, state.period, counters, said


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def directory(memory):
    made = memory / str(uuid4())
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def counted(directory):
    """Where a run that nothing disturbs shows how often it passes a point."""
    made = directory / "counted"
    made.mkdir()
    return made


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
    states = Counter(json.loads(record)["state"] for record in hitters)
    assert set(states) == {"new", "ongoing", "back", "gone"}
    assert states["gone"] > 5
    assert closed == 149
    assert period.number == 3
    assert max(counters.values()) == 3 * FULL
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


@pytest.fixture(scope="module")
def at_rest(nursery, short, memory):
    """How the run ends if items rest after a report, in place of staying public."""
    (memory / "at rest").mkdir()
    place = Place(memory / "at rest", short, "every_step")
    assert not nursery.run(**place.order())["killed"]
    return place.outcome()


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_while_items_rest(nursery, short, at_rest, directory, point, number):
    place = Place(directory, short, "every_step")
    assert nursery.run(**place.order(), kill_at=[point, number])["killed"]
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == at_rest


class TestAroundTheEnd:
    """A run without --until ends its journal, once everything is published."""

    def test_killed_after_its_last_publication(
        self, nursery, short, undisturbed, directory, counted
    ):
        place = Place(directory, short)
        last = nursery.run(**Place(counted, short).order())["seen"]["noted"]
        assert nursery.run(**place.order(), kill_at=["noted", last])["killed"]
        assert not peek(directory / "journal" / DATABASE).ended
        assert nursery.run(**place.order())["steps"] == 0
        assert peek(directory / "journal" / DATABASE).ended
        assert place.outcome() == undisturbed

    def test_killed_after_its_end(self, nursery, short, undisturbed, directory):
        place = Place(directory, short)
        assert nursery.run(**place.order(), kill_at=["ended", 1])["killed"]
        answer = nursery.run(**place.order())
        assert answer["error"] == "UnusableJournalError"
        assert "is ended" in answer["message"]
        assert place.outcome() == undisturbed

    @pytest.mark.parametrize("statement", [MARK, "COMMIT"])
    @pytest.mark.parametrize("way", ["kill_in", "fail_at"])
    def test_disturbed_while_it_is_marked(
        self, nursery, short, undisturbed, directory, counted, way, statement
    ):
        place = Place(directory, short)
        never = {"kill_in": [statement, 0]}
        last = nursery.run(**Place(counted, short).order(), **never)["seen"][statement]
        answer = nursery.run(**place.order(), **{way: [statement, last]})
        assert answer["killed"] or answer["error"] == "JournalWriteError"
        assert not peek(directory / "journal" / DATABASE).ended
        assert nursery.run(**place.order())["steps"] == 0
        assert peek(directory / "journal" / DATABASE).ended
        assert place.outcome() == undisturbed


@dataclass(frozen=True)
class Pieces:
    """The short stream in runs with --until: within a period, in a gap, and at the end."""

    nursery: Nursery
    place: Place
    ENDS = (17, 90, 150)

    def run(self, end, **order):
        times = {"start": format_rfc3339(1000 * SHORT[0]), "until": format_rfc3339(1000 * end)}
        return self.nursery.run(**self.place.order(), **times, **order)

    def complete(self, end):
        """The same command again does the rest, or says that there is none."""
        answer = self.run(end)
        assert not answer["killed"]
        assert "error" not in answer or "the journal is closed up to" in answer["message"], answer
        assert peek(self.place.directory / "journal" / DATABASE).restored.state.closed == end - 1


@pytest.fixture(scope="module")
def passed(nursery, short, memory):
    """How often a run over each piece passes each point, if nothing disturbs it."""
    (memory / "in pieces").mkdir()
    calm = Pieces(nursery, Place(memory / "in pieces", short))
    return {end: calm.run(end)["seen"] for end in Pieces.ENDS}


class TestInPieces:
    def test_undisturbed(self, nursery, short, undisturbed, directory):
        pieces = Pieces(nursery, Place(directory, short))
        assert [pieces.run(end)["steps"] for end in Pieces.ENDS] == [14, 73, 60]
        assert pieces.place.outcome() == undisturbed

    @pytest.mark.parametrize("ordered", [True, False], ids=["sorted", "unordered"])
    @pytest.mark.parametrize("number", [1, 5, "last"])
    @pytest.mark.parametrize("point", POINTS)
    def test_killed_at_a_point_of_every_piece(
        self, nursery, short, undisturbed, directory, passed, point, number, ordered
    ):
        pieces = Pieces(nursery, Place(directory, short))
        for end in Pieces.ENDS:
            seen = passed[end][point]
            at = seen if number == "last" else min(number, seen)
            assert pieces.run(end, ordered=ordered, kill_at=[point, at])["killed"]
            pieces.complete(end)
        assert pieces.place.outcome() == undisturbed

    def test_the_last_piece_may_end_the_journal(self, nursery, short, undisturbed, directory):
        pieces = Pieces(nursery, Place(directory, short))
        pieces.run(90)
        order = pieces.place.order()
        assert nursery.run(**order, kill_at=["noted", 2])["killed"]
        assert not nursery.run(**order)["killed"]
        assert pieces.place.outcome() == undisturbed
        assert "is ended" in pieces.run(151)["message"]


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


@pytest.mark.parametrize("kills", [60, pytest.param(250, marks=pytest.mark.chaos)])
def test_killed_at_many_random_moments(nursery, long, calm, directory, kills):
    place = Place(directory, long)
    chance = random.Random(3)
    for _ in range(kills):
        # So many points of the protocol, and a moment more: anywhere in a step.
        moment = [chance.randrange(9), chance.uniform(0, 0.001)]
        assert nursery.run(**place.order(), kill_after=moment)["killed"], "it ended too early"
    assert not nursery.run(**place.order())["killed"]
    assert place.outcome() == calm
