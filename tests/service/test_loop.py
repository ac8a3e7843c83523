"""The loop of a running stream, with a scripted source and a clock that waits move on."""

import asyncio

import pytest

from streamer.errors import UnreachableError
from streamer.operations.health import Status
from streamer.service.loop import Loop
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.stream.engine import Engine
from streamer.stream.publication import Audience
from streamer.stream.timing import StepTiming
from tests.service.noting import NotingLedger, NotingWatcher
from tests.stream.making import RepeatingDecider, batch, new_intake, record, terms
from tests.stream.scripted_source import Clock, ScriptedSource, away

DEADLINE = 30
SKEW, AHEAD = 50, 1000
SECONDS = StepTiming(1000, lateness_ms=200)
STEP = 1000
"""The step in which the tests begin."""


def at(step, ms=0):
    """So long after the beginning of a step."""
    return SECONDS.start(step) + ms


def over(step):
    """When our clock says that nothing more can arrive for a step."""
    return SECONDS.end(step) + SECONDS.lateness_ms + SKEW


class Rejected:
    """Implements `Rejects`, and notes in the story of the ledger what is written."""

    def __init__(self, story, most=10**9):
        self._story, self._most, self._kept = story, most, []

    @property
    def full(self):
        return len(self._kept) >= self._most

    def add(self, batch, rejections):
        self._kept += [int(batch.offsets[each.place]) for each in rejections]

    async def write(self):
        if self._kept:
            self._story.append(("reject", self._kept))
        self._kept = []


class Stage(NotingWatcher):
    """A source, and a loop that counts what comes from it."""

    def __init__(self, *partitions, now=None, timing=SECONDS, threshold=1, **source):
        super().__init__()
        self.clock = Clock(at(STEP, 500) if now is None else now)
        self.source = ScriptedSource(self.clock, *partitions, **source)
        self.ledger, self.status = NotingLedger(), Status()
        self.stopping = asyncio.Event()
        self.closings, self.receipts, self.rests, self.waited_for = {}, [], [], []
        self.after_close = lambda step: None
        self._timing, self._users = timing, 0
        self._decider = RepeatingDecider(threshold)
        self.engine = Engine(new_intake(timing), terms(), asked_by=self._decider)

    def send(self, arrival, partition="p", number=1):
        """Events of so many users, all of them new."""
        users = range(self._users, self._users + number)
        self._users += number
        self.source.arrive(partition, arrival, *(record(f"u{user}", "x") for user in users))

    async def run(self, until=None, **options):
        """Until the source has ended, at this moment."""
        self.source.ends_at = until
        pipeline = Pipeline(
            *(self.engine, self.ledger, self._timing, None, self, Audience(), lambda _: None)
        )
        progress = Progress(self.source, self._timing, self.clock, SKEW, AHEAD)
        loop = Loop(
            *(self.source, progress, pipeline, self.status, self, self.stopping),
            **{"rest": self._rest} | options,
        )
        await asyncio.wait_for(loop.run(), DEADLINE)

    @property
    def counts(self):
        """How many users were counted in each step that had any."""
        return {step: items["x"] for step, items in self._decider.counts.items()}

    def received(self, batch, received):
        self.receipts.append((self.clock(), batch.partition, self.engine.intake.buffered))

    def closed(self, decided, engine):
        del engine
        self.closings[decided.step] = self.clock()
        self.after_close(decided.step)

    async def _rest(self, seconds):
        self.rests.append(seconds)
        self.waited_for.append(self.status.waiting_for)
        await self.clock.wait(round(1000 * seconds))


class TestClosing:
    async def test_steps_are_read_and_closed_in_order_as_soon_as_they_are_over(self):
        stage = Stage("p")
        stage.send(at(STEP, 700), number=3)
        stage.send(at(STEP + 2, 100), number=2)
        await stage.run(until=over(STEP + 3) + 1)
        steps = range(STEP, STEP + 4)
        assert stage.closings == {STEP - 1: at(STEP, 600)} | {step: over(step) for step in steps}
        assert stage.counts == {STEP: 3, STEP + 2: 2}
        appended = [each for each in stage.ledger.story if each[0] == "append"]
        assert appended == [
            ("append", STEP - 1, STEP - 1, {}),
            ("append", STEP, STEP, {"p": 3}),
            ("append", STEP + 1, STEP + 1, {"p": 3}),
            ("append", STEP + 2, STEP + 2, {"p": 5}),
            ("append", STEP + 3, STEP + 3, {"p": 5}),
        ]

    async def test_an_idle_partition_stalls_nothing(self):
        stage = Stage("p", "q", "r")
        stage.send(at(STEP, 600), "q", number=4)
        await stage.run(until=over(STEP + 1) + 1)
        assert stage.counts == {STEP: 4}
        assert (stage.closings[STEP], stage.closings[STEP + 1]) == (over(STEP), over(STEP + 1))

    async def test_a_backlog_is_not_cut_off_however_slowly_it_is_read(self):
        stage = Stage("p", "q", now=over(STEP + 9))
        stage.source.slow["q"] = 3
        stage.send(at(STEP, 999), "p")
        for step in range(STEP, STEP + 10):
            stage.send(at(step, 500), "q", number=20)
        await stage.run(until=over(STEP + 9) + 1)
        assert stage.counts == {STEP: 21} | dict.fromkeys(range(STEP + 1, STEP + 10), 20)

    async def test_a_new_partition_holds_back_closing_until_it_is_read(self):
        stage = Stage("p")
        stage.source.add("q", since=at(STEP + 1))
        stage.source.slow["q"] = 1
        stage.send(at(STEP, 600), "p")
        stage.send(at(STEP + 1, 10), "q", number=50)
        await stage.run(until=over(STEP + 1) + 1)
        assert stage.counts == {STEP: 1, STEP + 1: 50}

    async def test_new_partitions_are_found_also_while_no_step_closes(self):
        minutes = StepTiming(60_000)
        stage = Stage("p", now=0, timing=minutes)
        stage.source.add("q", since=15_000)
        stage.send(15_000, "q")
        await stage.run(until=50_000)
        [(moment, partition, buffered)] = stage.receipts
        assert (partition, buffered) == ("q", 1)
        assert 15_000 < moment <= 15_000 + 10_000 + 200

    async def test_it_polls_no_longer_than_until_a_step_is_over(self):
        stage = Stage("p", now=over(STEP) - 30)
        await stage.run(until=over(STEP) + 150)
        polls = [(moment, timeout) for moment, timeout, _ in stage.source.polls]
        assert polls == [(over(STEP) - 30, 30), (over(STEP), 100), (over(STEP) + 100, 100)]

    async def test_it_asks_what_is_drained_when_a_step_is_over_and_not_before(self):
        stage = Stage("p")
        await stage.run(until=over(STEP + 1) + 500)
        assert stage.source.asked == [at(STEP, 600), over(STEP), over(STEP + 1)]

    async def test_with_a_backlog_it_asks_now_and_then(self):
        stage = Stage("p", now=over(STEP), most_records=1)
        stage.send(at(STEP, 100), number=50)
        await stage.run(until=over(STEP) + 1)
        assert len(stage.source.asked) < 5


class TestArrivalsAheadOfTheClock:
    """The broker's clock is fast, or a producer's that tells the arrival."""

    @pytest.mark.parametrize(
        ("ahead", "closable", "skew"), [(AHEAD, STEP + 1, AHEAD), (AHEAD + 1, None, AHEAD + 1)]
    )
    async def test_they_say_no_more_than_the_clock_and_far_ahead_nothing(
        self, ahead, closable, skew
    ):
        clock = Clock(over(STEP + 1) - SKEW)
        progress = Progress(ScriptedSource(clock, "p"), SECONDS, clock, SKEW, AHEAD)
        await progress.look_for_partitions()
        progress.read(batch([b""], [clock.now + ahead], "p"), clock.now)
        assert await progress.closable() == closable
        assert progress.skew_ms == skew


class TestFullBuffers:
    LIMIT, EACH, STEPS = 500, 100, 15

    async def test_partitions_that_are_ahead_wait_and_nothing_is_lost(self):
        last = STEP + self.STEPS - 1
        stage = Stage("p", "q", now=over(last), most_records=100)
        stage.source.slow["q"] = 10
        for step in range(STEP, last + 1):
            stage.send(at(step, 100), "p", self.EACH)
            stage.send(at(step, 100), "q", self.EACH)
        await stage.run(until=over(last) + 1, most_buffered=self.LIMIT)
        assert stage.counts == dict.fromkeys(range(STEP, last + 1), 2 * self.EACH)
        peak = max(buffered for *_, buffered in stage.receipts)
        assert self.LIMIT <= peak <= self.LIMIT + 2 * (self.EACH + 100)
        skipped = [skip for *_, skip in stage.source.polls]
        assert [] in skipped
        assert ["p"] in skipped
        assert not any("q" in skip for skip in skipped)

    async def test_without_a_limit_nobody_waits(self):
        stage = Stage("p", "q", now=over(STEP + 1))
        stage.source.slow["q"] = 1
        stage.send(at(STEP + 1, 100), "p", 1000)
        stage.send(at(STEP, 100), "q", 20)
        await stage.run(until=over(STEP + 1) + 1)
        assert all(skip == [] for *_, skip in stage.source.polls)


class TestRejects:
    async def test_they_are_written_before_the_ledger_moves_past_them(self):
        stage = Stage("p")
        stage.source.arrive("p", at(STEP, 700), b"no event", record("ann", "x"), b"nor this")
        stage.source.arrive("p", at(STEP + 1, 600), record("bob", "x"))
        await stage.run(until=over(STEP + 1) + 1, rejects=Rejected(stage.ledger.story))
        kept = [each[:3] for each in stage.ledger.story if each[0] in {"append", "reject"}]
        assert kept == [
            ("append", STEP - 1, STEP - 1),
            ("reject", [0, 2]),
            ("append", STEP, STEP),
            ("append", STEP + 1, STEP + 1),
        ]

    async def test_they_are_written_at_once_when_there_are_many(self):
        stage = Stage("p", most_records=2)
        stage.source.arrive("p", at(STEP, 700), *[b"no event"] * 7)
        await stage.run(until=at(STEP, 900), rejects=Rejected(stage.ledger.story, most=3))
        assert [each for each in stage.ledger.story if each[0] == "reject"] == [
            ("reject", [0, 1, 2, 3]),
            ("reject", [4, 5, 6]),
        ]
        assert list(stage.closings) == [STEP - 1]


class TestASourceThatGoesAway:
    WAITS = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0)

    async def test_it_is_waited_for_longer_and_longer_and_nothing_is_lost(self):
        stage = Stage("p")
        stage.send(at(STEP, 600), number=3)
        stage.source.failures.extend(away(f"failure {number}") for number in range(8))
        await stage.run(until=over(STEP + 60))
        assert stage.rests == list(self.WAITS)
        assert [(str(error), writing) for error, writing in stage.failures] == [
            (f"failure {number}", False) for number in range(8)
        ]
        assert all(type(error) is OSError for error, _ in stage.failures)
        assert stage.waited_for == [
            f"waiting for the source (failure {number})" for number in range(8)
        ]
        assert stage.status.waiting_for == ""
        assert stage.counts == {STEP: 3}

    async def test_after_a_success_waits_begin_anew(self):
        stage = Stage("p")
        stage.after_close = lambda step: stage.source.failures.extend([away(), away()])
        await stage.run(until=over(STEP + 3) + 1)
        assert len(stage.closings) > 3
        assert stage.rests[:6] == [0.2, 0.4] * 3

    @pytest.mark.parametrize("calls", range(8))
    async def test_whichever_call_fails_the_next_turn_goes_on(self, calls):
        stage = Stage("p", "q", most_records=2)
        stage.source.failures.extend([None] * calls)
        stage.source.failures.append(away())
        stage.send(at(STEP, 400), "p", 5)
        stage.send(at(STEP, 450), "q", 5)
        await stage.run(until=over(STEP) + 1)
        assert stage.rests == [0.2]
        assert stage.counts == {STEP: 10}

    async def test_an_error_without_a_cause_is_reported_itself(self):
        stage, error = Stage("p"), UnreachableError("gone")
        stage.source.failures.append(error)
        await stage.run(until=at(STEP, 900))
        assert stage.failures == [(error, False)]

    async def test_any_other_error_ends_the_loop(self):
        stage = Stage("p")
        stage.source.failures.append(ValueError("broken"))
        with pytest.raises(ValueError, match="broken"):
            await stage.run()
        assert stage.rests == []


class TestEnding:
    async def test_who_is_stopped_before_it_begins_reads_nothing(self):
        stage = Stage("p")
        stage.stopping.set()
        await stage.run()
        assert stage.source.polls == []

    async def test_who_is_stopped_finishes_its_turn_and_ends(self):
        stage = Stage("p")
        stage.after_close = lambda step: step == STEP and stage.stopping.set()
        stage.send(at(STEP, 600))
        await stage.run()
        assert max(stage.closings) == STEP
        assert stage.ledger.story[-1][:2] == ("publish", STEP)

    async def test_who_is_stopped_while_the_source_is_away_ends(self):
        stage = Stage("p")
        stage.source.failures.extend(away() for _ in range(5))

        async def rest(seconds):
            stage.rests.append(seconds)
            stage.stopping.set()

        await stage.run(rest=rest)
        assert stage.rests == [0.2]

    async def test_it_ends_with_its_source_and_not_before_everything_is_read(self):
        stage = Stage("p", most_records=1)
        stage.send(at(STEP, 600), number=20)
        await stage.run(until=at(STEP, 600))
        assert stage.engine.intake.buffered == 20
        assert stage.source.ended

    async def test_while_it_runs_it_is_ready(self):
        stage = Stage("p")
        ready = []
        stage.after_close = lambda step: ready.append(stage.status.ready().good)
        await stage.run(until=over(STEP) + 1)
        assert ready == [True, True]


class TestQuietSteps:
    async def test_they_are_recorded_as_they_close_on_time(self):
        stage = Stage("p", threshold=100)
        stage.send(at(STEP, 600))
        await stage.run(until=over(STEP + 1) + 1)
        published = [each for each in stage.ledger.story if each[0] == "publish"]
        assert published == [
            ("publish", step, [], [(step, step, 0)]) for step in range(STEP - 1, STEP + 2)
        ]

    async def test_after_an_outage_they_are_recorded_together_when_it_is_up_to_date(self):
        stage = Stage("p", now=over(STEP + 60), threshold=100, most_records=1)
        for step in range(STEP, STEP + 61):
            stage.send(at(step, 100))
        await stage.run(until=over(STEP + 60) + 1)
        published = [each for each in stage.ledger.story if each[0] == "publish"]
        first, up_to_date = STEP - 2, STEP + 50
        quiet = [(step, step, 0) for step in range(first, up_to_date + 1)]
        assert published[0] == ("publish", up_to_date, [], quiet)
        assert [through for _, through, *_ in published] == [
            *range(up_to_date, STEP + 59),
            STEP + 60,  # the last two are over when nothing is left
        ]
