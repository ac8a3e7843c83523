"""The protocol of a step, with a ledger that notes what it is asked."""

import json
from contextlib import AsyncExitStack

import pytest

from streamer.errors import MonitorError
from streamer.ledger.contract import Life
from streamer.ledger.file_ledger import FileLedger
from streamer.ledger.output_files import OutputFiles
from streamer.privacy.prices import FULL
from streamer.service.pipeline import Pipeline
from streamer.service.resume import Course, Opened, resume
from streamer.stream.engine import Engine
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import LONG_RUN, PublicSettings
from streamer.stream.watching import Phase
from tests.service.noting import NotingAudience, NotingLedger, NotingWatcher
from tests.stream.making import KEY, TIMING, RepeatingDecider, batch, new_intake, record, terms


class Bench:
    def __init__(self):
        self.ledger, self.watcher, self.points = NotingLedger(), NotingWatcher(), []
        self.story = self.ledger.story
        self.engine = Engine(new_intake(), terms(), asked_by=RepeatingDecider(3))
        self.pipeline = Pipeline(
            *(self.engine, self.ledger, TIMING, None),
            *(self.watcher, NotingAudience(self.story), self.points.append),
        )
        self._offset = 0

    def hold(self, step, item, users):
        records = [record(f"u{user}", item, step=step) for user in range(users)]
        self.engine.intake.receive(batch(records, first=self._offset), self.engine.closed, None)
        self._offset += users

    async def close_through(self, step):
        self.story.clear()
        await self.pipeline.close_through(step)
        return self.story


async def test_a_step_with_hitters_is_kept_then_published():
    bench = Bench()
    bench.pipeline.start_at(5)
    assert bench.story == []
    bench.hold(5, "a", 4)
    assert await bench.close_through(5) == [
        ("append", 5, 5, {"p": 4}),
        ("publish", 5, [(5, "a", 4)], [(5, 5, 1)]),
        ("audience published", 5),
    ]
    assert bench.points == ["decided", "appended", "noted"]
    assert [decided.step for decided in bench.watcher.decided] == [5]


async def test_what_is_received_is_told_and_handed_back():
    bench = Bench()
    bench.pipeline.start_at(5)
    records = batch([record("u", "a", step=5)])
    received = bench.pipeline.receive(records, None)
    assert bench.watcher.taken_in == [(records, received)]
    assert bench.engine.intake.open_steps == [5]


async def test_operators_are_told_how_long_everything_took():
    bench = Bench()
    bench.pipeline.start_at(5)
    bench.ledger.snapshot_due = True
    bench.hold(5, "a", 4)
    await bench.close_through(5)
    assert bench.watcher.phases == [Phase.DECIDE, Phase.APPEND, Phase.PUBLISH, Phase.SNAPSHOT]


async def test_nobody_is_told_of_what_could_not_be_published():
    bench = Bench()

    async def fail(publication):
        raise OSError(publication)

    bench.pipeline.start_at(5)
    bench.ledger.publish = fail
    bench.hold(5, "a", 4)
    with pytest.raises(OSError, match="through=5"):
        await bench.close_through(5)
    assert bench.story == [("append", 5, 5, {"p": 4})]
    assert bench.watcher.decided == []


async def test_steps_without_hitters_are_kept_and_recorded_later():
    bench = Bench()
    bench.pipeline.start_at(5)
    bench.hold(6, "few", 2)
    bench.hold(8, "a", 3)
    story = await bench.close_through(8)
    assert [each[:3] for each in story if each[0] == "append"] == [
        ("append", 5, 5),
        ("append", 6, 6),
        ("append", 7, 7),
        ("append", 8, 8),
    ]
    assert story[-2:] == [
        ("publish", 8, [(8, "a", 3)], [(5, 5, 0), (6, 6, 0), (7, 7, 0), (8, 8, 1)]),
        ("audience published", 8),
    ]


async def test_what_is_quiet_is_recorded_once():
    bench = Bench()
    await bench.pipeline.record_quiet_steps()  # there is no step yet
    bench.pipeline.start_at(5)
    await bench.close_through(6)
    bench.story.clear()
    await bench.pipeline.record_quiet_steps()
    await bench.pipeline.record_quiet_steps()
    assert bench.story == [
        ("publish", 6, [], [(5, 5, 0), (6, 6, 0)]),
        ("audience published", 6),
    ]


@pytest.mark.parametrize("sender", [None, 40])
async def test_a_long_quiet_run_is_one_record_whoever_sent_anything_in_it(sender):
    bench = Bench()
    bench.pipeline.start_at(5)
    if sender:
        bench.hold(sender, "alone", 1)
    await bench.close_through(5 + LONG_RUN)
    bench.story.clear()
    await bench.pipeline.record_quiet_steps()
    last = 5 + LONG_RUN
    assert bench.story[0] == ("publish", last, [], [(5, last, 0)])


async def test_a_snapshot_is_taken_when_it_is_due():
    bench = Bench()
    bench.pipeline.start_at(5)
    bench.ledger.snapshot_due = True
    bench.hold(5, "a", 4)
    story = await bench.close_through(5)
    assert story[-1] == ("snapshot", 4, 4 * FULL)
    assert bench.points[-1] == "snapshot taken"


async def test_nothing_is_closed_before_there_is_a_first_step():
    with pytest.raises(MonitorError, match="no first step"):
        await Bench().close_through(3)


class TestHolding:
    """What is decided on the clock is held back until its results are to leave."""

    async def test_a_decision_is_durable_at_once_and_published_when_it_is_released(self):
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.hold(5, "a", 4)
        await bench.pipeline.close_next(5, goal=5)
        assert bench.story == [("append", 5, 5, {"p": 4})]
        assert not await bench.pipeline.release(4)
        assert bench.watcher.decided == []
        assert await bench.pipeline.release(5)
        assert bench.story[1:] == [
            ("publish", 5, [(5, "a", 4)], [(5, 5, 1)]),
            ("audience published", 5),
        ]
        assert [decided.step for decided in bench.watcher.decided] == [5]

    async def test_it_is_released_once(self):
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.hold(5, "a", 4)
        await bench.pipeline.close_next(5, goal=5)
        await bench.pipeline.release(5)
        bench.story.clear()
        assert await bench.pipeline.release(5)
        assert bench.story == []

    async def test_whatever_is_held_leaves_without_a_limit(self):
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.hold(5, "a", 4)
        await bench.pipeline.close_next(5, goal=5)
        assert await bench.pipeline.release()
        assert bench.story[1][:2] == ("publish", 5)

    async def test_a_snapshot_waits_for_the_results_to_leave(self):
        """It would make the entry one of the past, and only the last one is published again."""
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.ledger.snapshot_due = True
        bench.hold(5, "a", 4)
        await bench.pipeline.close_next(5, goal=5)
        assert [each[0] for each in bench.story] == ["append"]
        await bench.pipeline.release(5)
        assert [each[0] for each in bench.story] == [
            *("append", "publish", "audience published", "snapshot")
        ]

    async def test_quiet_steps_before_the_goal_hold_nothing_up(self):
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.hold(5, "few", 2)
        bench.hold(6, "few", 2)
        await bench.pipeline.close_next(6, goal=6)
        assert await bench.pipeline.release(0)
        await bench.pipeline.close_next(6, goal=6)
        assert not await bench.pipeline.release(5)
        assert await bench.pipeline.release(6)
        assert [each for each in bench.story if each[0] == "publish"] == [
            ("publish", 6, [], [(5, 5, 0), (6, 6, 0)])
        ]

    async def test_quiet_steps_of_an_earlier_start_are_held_too(self):
        """They were closed, and the process ended before they were recorded."""
        bench = Bench()
        bench.pipeline.start_at(5)
        await bench.close_through(6)
        bench.story.clear()
        bench.pipeline.hold_quiet_steps()
        assert not await bench.pipeline.release(5)
        assert bench.story == []
        assert await bench.pipeline.release(6)
        assert bench.story[0] == ("publish", 6, [], [(5, 5, 0), (6, 6, 0)])
        assert bench.watcher.decided[-1].step == 6, "closing was reported when they were closed"

    async def test_without_quiet_steps_nothing_is_held(self):
        bench = Bench()
        bench.pipeline.start_at(5)
        bench.pipeline.hold_quiet_steps()
        assert await bench.pipeline.release(0)
        assert bench.story == []


HELD = {5: "a", 6: "b", 7: "c"}
"""By step, an item that is reported."""


class TestCrashesWhileSomethingIsHeld:
    """On a real ledger: each start publishes what is decided and not published."""

    @pytest.fixture
    def restart(self, tmp_path):
        """One life of the process after the other."""
        outputs = OutputFiles(tmp_path / "hitters", tmp_path / "steps")
        stack, story = AsyncExitStack(), []

        async def open_ledger(at_end):
            pseudonyms = Pseudonyms(KEY)
            ledger = FileLedger(
                *(tmp_path / "journal", Life(TIMING.length_ms, 0), pseudonyms.fingerprint, outputs)
            )
            at_end.push_async_callback(ledger.close)
            return Opened(ledger, pseudonyms)

        async def start():
            await stack.aclose()
            story.clear()
            course = Course(
                *(TIMING, PublicSettings(terms()), lambda _: new_intake(), RepeatingDecider(3)),
                *(NotingWatcher(), NotingAudience(story), lambda _: None),
            )
            pipeline = await resume(course, open_ledger, stack)
            if pipeline.engine.closed is None:
                pipeline.start_at(5)
            records = [
                record(f"{item}{user}", item, step=step)
                for step, item in HELD.items()
                for user in range(4)
            ]
            pipeline.receive(batch(records), None)
            return pipeline, story

        return start

    def published(self, tmp_path):
        lines = (tmp_path / "hitters").read_text().splitlines()
        return [(each["step"], each["item"]) for each in map(json.loads, lines)]

    async def test_each_is_published_by_the_next_start_and_once(self, restart, tmp_path):
        for step in HELD:
            pipeline, story = await restart()
            assert ("audience published", step - 1) in story or step == 5
            await pipeline.close_next(step, goal=7)
            assert not await pipeline.release(step - 1)
        await restart()
        await restart()
        assert self.published(tmp_path) == list(HELD.items())

    async def test_between_two_decisions_only_the_second_is_left(self, restart, tmp_path):
        pipeline, _ = await restart()
        await pipeline.close_next(7, goal=7)
        assert await pipeline.release(5)
        await pipeline.close_next(7, goal=7)
        assert self.published(tmp_path) == [(5, "a")]
        await restart()
        assert self.published(tmp_path) == [(5, "a"), (6, "b")]
