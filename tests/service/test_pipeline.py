"""The protocol of a step, with a journal and a sink that note what they are told."""

import numpy as np
import pytest

from streamer.errors import MonitorError
from streamer.ledger.contract import Entry, Restored
from streamer.monitors.seam import Hitter
from streamer.service.pipeline import Pipeline
from streamer.stream.decided import Decided
from streamer.stream.engine import Engine, EngineState
from streamer.stream.periods import Period
from streamer.stream.publication import LONG_RUN
from streamer.stream.watching import Phase, Watcher
from tests.stream.making import TIMING, RepeatingDecider, batch, new_intake, record, terms

TERMS = terms()
PERIOD = Period.containing(0, TERMS)


class Told:
    """A journal and a sink in one: whatever they are told, in order."""

    def __init__(self):
        self.story = []
        self.snapshot_due = False
        self.written = 0

    async def append(self, entry):
        self.story.append(("append", entry.decided.first, entry.decided.step, dict(entry.offsets)))

    async def note_published(self, published):
        self.story.append(("note", published.step, dict(published.outputs)))

    async def snapshot(self, users, charges):
        self.story.append(("snapshot", len(users), int(charges.sum())))

    def sizes(self):
        return {"out": self.written}

    def take_back(self, published, torn):
        self.story.append(("take back", published.step, torn))

    async def publish(self, publication):
        self.written += 10
        steps = [(each.first or each.step, each.step, each.hitters) for each in publication.steps]
        items = [(each.step, each.item) for each in publication.results]
        self.story.append(("publish", publication.through, items, steps))


class Bench(Watcher):
    def __init__(self, state=None):
        self.told, self.points, self.done = Told(), [], []
        self.taken_in, self.sent, self.phases = [], [], []
        self.engine = Engine(new_intake(), TERMS, state, RepeatingDecider(3))
        self.pipeline = Pipeline(
            self.engine, self.told, self.told, TIMING, self, self.points.append
        )
        self._offset = 0

    def closed(self, decided, engine):
        self.done.append(decided)

    def received(self, batch, received):
        self.taken_in.append((batch, received))

    def published(self, publication):
        self.sent.append((publication.through, self.points[-1]))

    def timed(self, phase, seconds):
        assert 0 <= seconds < 60
        self.phases.append(phase)

    def hold(self, step, item, users):
        records = [record(f"u{user}", item, step=step) for user in range(users)]
        self.engine.intake.receive(batch(records, first=self._offset), self.engine.closed, None)
        self._offset += users

    async def close_through(self, step):
        self.told.story.clear()
        await self.pipeline.close_through(step)
        return self.told.story


async def test_a_step_with_hitters_is_kept_then_published_then_noted():
    bench = Bench()
    await bench.pipeline.start_at(5)
    assert bench.told.story == [("note", 4, {"out": 0})]
    bench.hold(5, "a", 4)
    assert await bench.close_through(5) == [
        ("append", 5, 5, {"p": 4}),
        ("publish", 5, [(5, "a")], [(5, 5, 1)]),
        ("note", 5, {"out": 10}),
    ]
    assert bench.points == ["decided", "appended", "published", "noted"]
    assert [decided.step for decided in bench.done] == [5]


async def test_what_is_received_is_told_and_handed_back():
    bench = Bench()
    await bench.pipeline.start_at(5)
    records = batch([record("u", "a", step=5)])
    received = bench.pipeline.receive(records, None)
    assert bench.taken_in == [(records, received)]
    assert bench.engine.intake.open_steps == [5]


async def test_what_is_published_is_told_when_it_is_noted_with_how_long_everything_took():
    bench = Bench()
    await bench.pipeline.start_at(5)
    bench.told.snapshot_due = True
    bench.hold(5, "a", 4)
    await bench.close_through(5)
    assert bench.sent == [(5, "noted")]
    assert bench.phases == [Phase.DECIDE, Phase.APPEND, Phase.PUBLISH, Phase.SNAPSHOT]


async def test_steps_without_hitters_are_kept_and_recorded_later():
    bench = Bench()
    await bench.pipeline.start_at(5)
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
        ("publish", 8, [(8, "a")], [(5, 5, 0), (6, 6, 0), (7, 7, 0), (8, 8, 1)]),
        ("note", 8, {"out": 10}),
    ]


async def test_what_is_quiet_is_recorded_once():
    bench = Bench()
    await bench.pipeline.record_quiet_steps()  # there is no step yet
    await bench.pipeline.start_at(5)
    await bench.close_through(6)
    bench.told.story.clear()
    await bench.pipeline.record_quiet_steps()
    await bench.pipeline.record_quiet_steps()
    assert bench.told.story == [
        ("publish", 6, [], [(5, 5, 0), (6, 6, 0)]),
        ("note", 6, {"out": 10}),
    ]


@pytest.mark.parametrize("sender", [None, 40])
async def test_a_long_quiet_run_is_one_record_whoever_sent_anything_in_it(sender):
    bench = Bench()
    await bench.pipeline.start_at(5)
    if sender:
        bench.hold(sender, "alone", 1)
    await bench.close_through(5 + LONG_RUN)
    bench.told.story.clear()
    await bench.pipeline.record_quiet_steps()
    last = 5 + LONG_RUN
    assert bench.told.story[0] == ("publish", last, [], [(5, last, 0)])


async def test_a_snapshot_is_taken_when_it_is_due():
    bench = Bench()
    await bench.pipeline.start_at(5)
    bench.told.snapshot_due = True
    bench.hold(5, "a", 4)
    story = await bench.close_through(5)
    assert story[-1] == ("snapshot", 4, 4)
    assert bench.points[-1] == "snapshot taken"


async def test_nothing_is_closed_before_there_is_a_first_step():
    with pytest.raises(MonitorError, match="no first step"):
        await Bench().close_through(3)


def past(published, hitters=("a",)):
    """A journal that was decided up to step 9."""
    nobody = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint16)
    last = Decided(9, 9, PERIOD, tuple(Hitter(item, 7) for item in hitters))
    return Restored(EngineState(9, PERIOD, *nobody), Entry(last), Published(published), "key")


async def test_a_decision_that_may_not_be_published_is_published_as_it_was():
    restored = past(published=7)
    bench = Bench(restored.state)
    await bench.pipeline.recover(restored)
    assert bench.told.story == [
        ("take back", 7, True),
        ("publish", 9, [(9, "a")], [(8, 8, 0), (9, 9, 1)]),
        ("note", 9, {"out": 10}),
    ]


async def test_before_it_is_recovered_nothing_is_published():
    bench = Bench(past(published=7).state)
    with pytest.raises(MonitorError, match="no first step"):
        await bench.pipeline.record_quiet_steps()
    assert bench.told.story == []


async def test_what_is_published_is_not_published_again():
    restored = past(published=9)
    bench = Bench(restored.state)
    await bench.pipeline.recover(restored)
    await bench.pipeline.record_quiet_steps()
    assert bench.told.story == [("take back", 9, False)]


async def test_quiet_steps_that_were_not_recorded_are_so_with_what_follows():
    restored = past(published=7, hitters=())
    bench = Bench(restored.state)
    await bench.pipeline.recover(restored)
    assert bench.told.story == [("take back", 7, True)]
    bench.hold(10, "a", 3)
    story = await bench.close_through(10)
    assert story[1] == ("publish", 10, [(10, "a")], [(8, 8, 0), (9, 9, 0), (10, 10, 1)])
