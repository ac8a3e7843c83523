"""Two worlds: file runs with and without one user's events publish the same bytes.

The decider reports a fixed list, whatever anybody holds. So whatever differs between the
worlds leaks past the noise: which steps close, how quiet ones are recorded, whether a run
ends with an error. What a real decider would see may differ by that one user alone.
"""

import asyncio
from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamer.service.line_job import LineJob, run_lines
from streamer.stream.timing import format_rfc3339
from tests.service.fixed_list import FixedList
from tests.service.repeatable import event, settings, write_events

pytestmark = pytest.mark.slow

LIST = {"crash:A": 500, "held by nobody": 321}


@dataclass(frozen=True)
class Piece:
    """A file and the step that a run over it ends at; None: it ends with the file."""

    events: list
    until: int | None = None


@dataclass(frozen=True)
class World:
    """What runs over pieces publish, and what their decider saw."""

    hitters: bytes
    steps: bytes
    tallies: dict
    accepted: list

    def unlike(self, other):
        """By how many holders the steps differ that a decider saw in both or one of them."""
        found = {}
        for step in self.tallies.keys() | other.tallies.keys():
            here, there = self.tallies.get(step, {}), other.tallies.get(step, {})
            items = here.keys() | there.keys()
            found[step] = sum(abs(here.get(item, 0) - there.get(item, 0)) for item in items)
        return found


def world(directory, pieces, reporting, start=None, ordered=False):
    """Run over each piece, in a new directory, with a journal that they share."""
    directory.mkdir()
    decider = FixedList(LIST, reporting)
    start = None if start is None else format_rfc3339(1000 * start)
    accepted = []
    for piece in pieces:
        source = write_events(directory / "events.jsonl", piece.events)
        until = None if piece.until is None else format_rfc3339(1000 * piece.until)
        outputs = {"sink": directory / "hitters", "steps": directory / "steps"}
        job = LineJob(
            str(source), ordered=ordered, until=until, journal=directory / "journal", **outputs
        )
        made = settings(stream={"start": start})
        accepted.append(asyncio.run(run_lines(job, made, asked_by=decider)).accepted)
    written = [(directory / name).read_bytes() for name in ("hitters", "steps")]
    return World(*written, decider.tallies, accepted)


@pytest.fixture
def directory(memory):
    made = memory / str(uuid4())
    made.mkdir()
    return made


def crowd(steps, users=8):
    """Sorted by time: these users hold one of two items in each step."""
    return [
        event(user, f"crash:{'AB'[user % 2]}", 1000 * step + 10 * user)
        for step in steps
        for user in range(users)
    ]


def mine(step):
    return event("mine", "crash:A", 1000 * step + 500)


def agree(one, other):
    assert one.hitters == other.hitters
    assert one.steps == other.steps
    assert one.hitters
    assert max(one.unlike(other).values(), default=0) <= 1


@pytest.mark.parametrize("ordered", [True, False], ids=["sorted", "unordered"])
@pytest.mark.parametrize("first", [True, False], ids=["first line", "last line"])
def test_one_event_late_in_the_evening_in_the_morning_file(directory, ordered, first):
    """The day has 288 seconds here. The event is for 23:50."""
    morning, afternoon = range(0, 144, 12), range(144, 288, 12)
    evening = [mine(286)]
    worlds = []
    for name, stray in (("with", evening), ("without", [])):
        made = [*stray, *crowd(morning)] if first else [*crowd(morning), *stray]
        pieces = [Piece(made, 144), Piece(crowd(afternoon), 288)]
        reporting = {*morning, *afternoon}
        worlds.append(world(directory / name, pieces, reporting, start=0, ordered=ordered))
    agree(*worlds)
    assert worlds[0].accepted == worlds[1].accepted == [96, 96]


@pytest.mark.parametrize("until", [12, None])
@pytest.mark.parametrize("step", [3, 7, 11])
@pytest.mark.parametrize("line", [0, 20, 40, 72])
def test_one_line_out_of_order_in_a_sorted_file(directory, line, step, until):
    others = crowd(range(3, 12))
    worlds = []
    for name, stray in (("with", [mine(step)]), ("without", [])):
        made = [*others[:line], *stray, *others[line:]]
        start = None if until is None else 3
        worlds.append(
            world(directory / name, [Piece(made, until)], range(3, 12), start, ordered=True)
        )
    agree(*worlds)
    assert worlds[0].accepted[0] - worlds[1].accepted[0] in (0, 1)


ENDS = (4, 9, 14)


@given(
    strays=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 16) | st.just(10**6))
    ),
    busy=st.sets(st.integers(0, 13), min_size=1),
    ordered=st.booleans(),
)
@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_events_of_one_user_in_three_files(memory, strays, busy, ordered):
    """Given by file, line and step."""
    directory = memory / str(uuid4())
    directory.mkdir()
    worlds = []
    for name, found in (("with", strays), ("without", [])):
        pieces = []
        for number, (begin, end) in enumerate(zip((0, *ENDS), ENDS, strict=False)):
            made = crowd(sorted(step for step in busy if begin <= step < end), users=3)
            for file, line, step in found:
                if file == number:
                    made.insert(line, event("mine", "crash:A", 1000 * step))
            pieces.append(Piece(made, end))
        worlds.append(world(directory / name, pieces, busy, start=0, ordered=ordered))
    agree(*worlds)
