"""The protocol of a step, with a ledger that notes what it is asked."""

import pytest

from streamer.errors import MonitorError
from streamer.service.pipeline import Pipeline
from streamer.stream.engine import Engine
from streamer.stream.publication import LONG_RUN
from streamer.stream.watching import Phase
from tests.service.noting import NotingAudience, NotingLedger, NotingWatcher
from tests.stream.making import TIMING, RepeatingDecider, batch, new_intake, record, terms


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
    assert story[-1] == ("snapshot", 4, 4)
    assert bench.points[-1] == "snapshot taken"


async def test_nothing_is_closed_before_there_is_a_first_step():
    with pytest.raises(MonitorError, match="no first step"):
        await Bench().close_through(3)
