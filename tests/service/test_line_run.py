"""A live pipe: events arrive when they are read, and steps close on the clock."""

import asyncio
import json
import threading

import pytest

from streamer.service.line_run import LineRun
from streamer.service.pipeline import Pipeline
from streamer.service.startup import intake_of, terms_of
from streamer.service.summary import Summary
from streamer.stream.engine import Engine
from streamer.stream.events import EventDecoder
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Audience
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming
from tests.service.noting import NotingLedger
from tests.service.repeatable import KEY, Repeatable, event, settings

TIMING = StepTiming(1000, lateness_ms=500)
SETTINGS = settings(stream={"ahead_seconds": 5.0})
TERMS = terms_of(SETTINGS.privacy, SETTINGS.stream)
DEADLINE = 20


class Kept(Audience):
    """Keeps what is published; `full` is set after so many steps."""

    def __init__(self, steps=10**9):
        self.results, self.steps, self.full = [], [], threading.Event()
        self._wanted = steps

    def published(self, publication):
        self.results += [(each.step, each.item) for each in publication.results]
        self.steps += publication.steps
        if len(self.steps) >= self._wanted:
            self.full.set()


class Bench:
    """Everything that a run needs, in memory."""

    def __init__(self, timing=TIMING, kept=None, start=None):
        intake = intake_of(
            SETTINGS.stream, timing, Pseudonyms(bytes.fromhex(KEY)), EventDecoder(timing)
        )
        self.engine = Engine(intake, TERMS, asked_by=Repeatable(threshold=3))
        self._timing = timing
        self.kept = kept or Kept()
        self.summary = Summary()
        pipeline = Pipeline(
            *(self.engine, NotingLedger(), timing, None),
            *(self.summary, self.kept, lambda _: None),
        )
        self.run = LineRun(pipeline, timing, 1000, start)

    def read_live(self, stream, clock, release_ms=0):
        schedule = Schedule(self._timing, release_ms=release_ms)
        asyncio.run(asyncio.wait_for(self.run.read_live(stream, schedule, clock), DEADLINE))
        return self.summary


class Script:
    """A pipe and a clock: each read takes until a moment, and hands over these events."""

    def __init__(self, start, *reads):
        self._now, self._reads = start, iter(reads)

    def clock(self):
        return self._now

    def read(self, size):
        del size
        self._now, made = next(self._reads)
        return b"".join(json.dumps(each).encode() + b"\n" for each in made)


def many(item, moment, users=20):
    return [event(number, item, moment) for number in range(users)]


def test_events_count_for_the_step_that_they_lie_in():
    script = Script(
        100_000,
        (100_300, many("a", 100_200)),
        (101_200, many("b", 100_999)),  # within the lateness
        (101_300, many("c", 101_100)),
        (103_000, []),
    )
    bench = Bench()
    summary = bench.read_live(script, script.clock)
    assert summary.accepted == 60
    assert bench.kept.results == [(100, "a"), (100, "b"), (101, "c")]
    assert [record.step for record in bench.kept.steps] == [100, 101, 102, 103]


def test_events_that_arrive_too_late_do_not_count():
    script = Script(
        100_000,
        (101_499, many("in time", 100_500)),
        (101_500, many("late", 100_500)),
        (104_000, []),
    )
    bench = Bench()
    summary = bench.read_live(script, script.clock)
    assert (summary.accepted, summary.late) == (20, 20)
    assert bench.kept.results == [(100, "in time")]


def test_events_from_before_the_start_are_of_a_step_that_is_over():
    script = Script(100_000, (100_200, many("before", 99_900)), (101_000, []))
    bench = Bench()
    summary = bench.read_live(script, script.clock)
    assert (summary.accepted, summary.already_closed) == (0, 20)
    assert bench.kept.results == []


@pytest.mark.parametrize(
    ("start", "steps", "accepted"), [(98, [98, 99, 100, 101], 40), (101, [101], 20)]
)
def test_a_pipe_can_begin_at_a_given_step(start, steps, accepted):
    script = Script(
        100_000, (100_200, many("a", 100_100)), (101_100, many("b", 101_050)), (101_200, [])
    )
    bench = Bench(start=start)
    assert bench.read_live(script, script.clock).accepted == accepted
    assert [record.step for record in bench.kept.steps] == steps


def test_a_step_that_lies_ahead_of_the_clock_stays_open_at_the_end():
    script = Script(
        100_000,
        (100_100, many("now", 100_050)),
        (100_200, many("soon", 102_000)),
        (100_300, many("far", 105_301)),  # further ahead than is allowed
        (100_400, []),
    )
    bench = Bench()
    summary = bench.read_live(script, script.clock)
    assert (summary.accepted, summary.rejected["time_ahead"]) == (40, 20)
    assert bench.kept.results == [(100, "now")]
    assert bench.engine.closed == 100
    assert bench.engine.intake.open_steps == [102]


def test_a_fast_clock_does_not_close_a_step_for_others():
    script = Script(
        100_000,
        (100_100, [event("fast", "x", 104_900)]),
        (100_200, many("a", 100_150)),
        (101_400, many("b", 100_900)),
        (106_000, []),
    )
    bench = Bench()
    assert bench.read_live(script, script.clock).accepted == 41
    assert bench.kept.results == [(100, "a"), (100, "b")]


def test_results_are_held_until_their_moment_and_leave_with_the_end_of_the_pipe():
    script = Script(
        100_000,
        (100_300, many("a", 100_200)),
        (101_500, many("b", 101_100)),  # step 100 is decided
        (101_749, many("c", 101_200)),
        (101_749, []),
    )
    bench, held = Bench(), []
    read = script.read

    def note(size):
        held.append((script.clock(), len(bench.kept.results), bench.engine.closed))
        return read(size)

    script.read = note
    bench.read_live(script, script.clock, release_ms=250)
    assert held[-1] == (101_749, 0, 100)
    assert bench.kept.results == [(100, "a"), (101, "b"), (101, "c")]


def test_lines_across_reads_and_a_last_one_without_its_end_count():
    lines = "\n\n".join(json.dumps(each) for each in many("a", 100_000)).encode()
    script = Script(100_000)
    blocks = iter([lines[:70], lines[70:75], lines[75:], b""])
    script.read = lambda size: next(blocks)
    bench = Bench()
    summary = bench.read_live(script, script.clock)
    assert (summary.records, summary.accepted) == (20, 20)
    assert bench.kept.results == [(100, "a")]


def test_steps_close_while_nothing_comes():
    class Silent:
        def __init__(self, kept):
            self._kept = kept

        def read(self, size):
            del size
            assert self._kept.full.wait(DEADLINE)
            return b""

    # Each look at the clock is half a step later.
    moments = iter(range(0, 10**9, 5))
    bench = Bench(StepTiming(10, lateness_ms=0), Kept(steps=20))
    bench.read_live(Silent(bench.kept), lambda: next(moments))
    steps = [record.step for record in bench.kept.steps]
    assert len(steps) >= 20
    assert steps == list(range(len(steps)))
