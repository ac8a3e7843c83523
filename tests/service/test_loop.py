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
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming
from tests.service.noting import NotingLedger, NotingWatcher
from tests.stream.making import RepeatingDecider, batch, new_intake, record, terms
from tests.stream.scripted_source import Clock, ScriptedSource, away

DEADLINE = 30
SKEW, AHEAD = 50, 1000
SECONDS = StepTiming(1000, lateness_ms=200)
SCHEDULE = Schedule(SECONDS, SKEW)
DELAYED = Schedule(SECONDS, SKEW, release_ms=250)
STEP = 1000
"""The step in which the tests begin."""


def at(step, ms=0):
    """So long after the beginning of a step."""
    return SECONDS.start(step) + ms


def over(step):
    """When our clock says that nothing more can arrive for a step."""
    return SCHEDULE.due_at(step)


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


class Told(Audience):
    def __init__(self, stage):
        self._stage = stage

    def published(self, publication):
        self._stage.published[publication.through] = self._stage.clock()


class Stage(NotingWatcher):
    """A source, and a loop that counts what comes from it, from step `first` on."""

    def __init__(self, *partitions, now=None, schedule=SCHEDULE, first=STEP, threshold=1, **source):
        super().__init__()
        self.clock = Clock(at(STEP, 500) if now is None else now)
        self.source = ScriptedSource(self.clock, *partitions, **source)
        self.ledger, self.status = NotingLedger(), Status()
        self.stopping = asyncio.Event()
        self.closings, self.receipts, self.rests, self.waited_for = {}, [], [], []
        self.published = {}
        """By the last step of each publication, when it left."""
        self.after_close = lambda step: None
        self._schedule, self._first, self._users = schedule, first, 0
        self._decider = RepeatingDecider(threshold)
        self.engine = Engine(new_intake(schedule.timing), terms(), asked_by=self._decider)

    def send(self, arrival, partition="p", number=1):
        """Events of so many users, all of them new."""
        users = range(self._users, self._users + number)
        self._users += number
        self.source.arrive(partition, arrival, *(record(f"u{user}", "x") for user in users))

    async def run(self, until=None, loop=Loop, **options):
        """Until the source has ended, at this moment."""
        self.source.ends_at = until
        timing = self._schedule.timing
        pipeline = Pipeline(
            *(self.engine, self.ledger, timing, None, self, Told(self), lambda _: None)
        )
        pipeline.start_at(self._first)
        progress = Progress(self.source, self._schedule, self.clock, AHEAD)
        made = loop(
            *(self.source, progress, pipeline, self.status, self, self.stopping),
            **{"rest": self._rest} | options,
        )
        await asyncio.wait_for(made.run(), DEADLINE)

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
        assert stage.closings == {step: over(step) for step in steps}
        assert stage.counts == {STEP: 3, STEP + 2: 2}
        appended = [each for each in stage.ledger.story if each[0] == "append"]
        assert appended == [
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
        stage = Stage("p", now=0, schedule=Schedule(StepTiming(60_000)), first=0)
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
        assert stage.source.asked == [at(STEP, 500), over(STEP), over(STEP + 1)]

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
        clock = Clock(over(STEP + 1))
        progress = Progress(ScriptedSource(clock, "p"), Schedule(SECONDS, SKEW), clock, AHEAD)
        await progress.look_for_partitions()
        progress.read(batch([b""], [clock.now + ahead], "p"), clock.now)
        assert progress.closable() == closable
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
        assert stage.closings == {}


class TestASourceThatGoesAway:
    WAITS = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0)

    async def test_it_is_waited_for_longer_and_longer_and_nothing_is_lost(self):
        minutes = Schedule(StepTiming(60_000))
        stage = Stage("p", now=100, schedule=minutes, first=0)
        stage.send(600, number=3)
        stage.source.failures.extend(away(f"failure {number}") for number in range(8))
        await stage.run(until=minutes.due_at(0) + 1)
        assert stage.rests == list(self.WAITS)
        assert [(str(error), writing) for error, writing in stage.failures] == [
            (f"failure {number}", False) for number in range(8)
        ]
        assert all(type(error) is OSError for error, _ in stage.failures)
        assert stage.waited_for == [
            f"waiting for the source (failure {number})" for number in range(8)
        ]
        assert stage.status.waiting_for == ""
        assert stage.counts == {0: 3}

    async def test_it_is_tried_again_at_every_moment_on_the_schedule(self):
        """However many attempts failed before, which depends on what there was to read."""
        stage = Stage("p", now=over(STEP) - 700, schedule=DELAYED)
        stage.source.failures.extend(away() for _ in range(6))
        await stage.run(until=over(STEP) + 451)
        assert stage.rests == [0.2, 0.4, 0.1, 0.2, 0.05, 0.2]
        assert stage.published == {STEP: over(STEP) + 450}

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
        await stage.run(until=over(STEP + 1) + 1)
        assert ready == [True, True]


class TestQuietSteps:
    async def test_they_are_recorded_as_they_close_on_time(self):
        stage = Stage("p", threshold=100)
        stage.send(at(STEP, 600))
        await stage.run(until=over(STEP + 1) + 1)
        published = [each for each in stage.ledger.story if each[0] == "publish"]
        assert published == [("publish", step, [], [(step, step, 0)]) for step in (STEP, STEP + 1)]

    @pytest.mark.parametrize("senders", [[], [STEP + 3], [*range(STEP, STEP + 61)]])
    async def test_after_an_outage_they_are_recorded_together_whoever_sent_anything(self, senders):
        stage = Stage("p", now=over(STEP + 60), threshold=100, most_records=1)
        for step in senders:
            stage.send(at(step, 100))
        await stage.run(until=over(STEP + 61) + 1)
        published = [each for each in stage.ledger.story if each[0] == "publish"]
        quiet = [(step, step, 0) for step in range(STEP, STEP + 61)]
        assert published == [
            ("publish", STEP + 60, [], quiet),
            ("publish", STEP + 61, [], [(STEP + 61, STEP + 61, 0)]),
        ]

    async def test_what_becomes_due_while_it_catches_up_is_recorded_apart(self):
        """The run ends at the last step that was due when catching up began."""
        stage = Stage("p", now=over(STEP + 9), threshold=100)
        stage.send(at(STEP + 2, 100))

        def work_slowly(step):
            if step == STEP + 2:
                stage.clock.now = over(STEP + 12)

        stage.after_close = work_slowly
        await stage.run(until=over(STEP + 12) + 1)
        assert list(stage.published) == [STEP + 9, STEP + 12]

    @pytest.mark.parametrize("calls", [0, 1, 2])
    async def test_catching_up_begins_also_while_the_source_is_away(self, calls):
        """Whichever call fails: which one is made depends on what there was to read."""
        stage = Stage("p", now=over(STEP), threshold=100)
        stage.source.failures.extend([None] * calls)
        stage.source.failures.extend(away() for _ in range(12))
        if calls == 2:
            stage.send(at(STEP, 100))
        await stage.run(until=over(STEP + 4) + 1)
        assert len(stage.rests) == 12
        assert list(stage.published) == [STEP, STEP + 4]


class TestRelease:
    """With a delay: what is published leaves at a moment that the clock alone sets."""

    async def test_results_leave_at_their_moment_and_reading_goes_on_meanwhile(self):
        stage = Stage("p", schedule=DELAYED)
        stage.send(at(STEP, 600), number=3)
        between = over(STEP) + 100
        stage.send(between, number=2)
        await stage.run(until=DELAYED.release_at(STEP + 1) + 1)
        leaves = {step: DELAYED.release_at(step) for step in (STEP, STEP + 1)}
        assert stage.published == leaves
        assert stage.closings == leaves
        assert (between, "p", 2) in stage.receipts
        assert stage.counts == {STEP: 3, STEP + 1: 2}

    async def test_a_step_is_decided_when_it_is_due_and_only_then_held(self):
        stage = Stage("p", schedule=DELAYED)
        stage.send(at(STEP, 600))
        await stage.run(until=over(STEP) + 1)
        assert [each[0] for each in stage.ledger.story] == ["append"]
        assert stage.engine.closed == STEP

    async def test_quiet_steps_leave_at_that_moment_too(self):
        stage = Stage("p", schedule=DELAYED, threshold=100)
        stage.send(at(STEP, 600))
        await stage.run(until=DELAYED.release_at(STEP + 1) + 1)
        assert stage.published == {step: DELAYED.release_at(step) for step in (STEP, STEP + 1)}

    async def test_if_the_decision_takes_longer_they_leave_at_once(self):
        stage = Stage("p", schedule=DELAYED)
        stage.send(at(STEP, 600))
        append = stage.ledger.append

        async def append_slowly(entry):
            await append(entry)
            stage.clock.now += 400

        stage.ledger.append = append_slowly
        await stage.run(until=DELAYED.release_at(STEP) + 200)
        assert stage.published == {STEP: over(STEP) + 400}

    async def test_after_an_outage_they_leave_at_once_and_one_after_the_other(self):
        began = DELAYED.release_at(STEP + 5)
        stage = Stage("p", now=began, schedule=DELAYED)
        stage.send(at(STEP + 1, 100))
        stage.send(at(STEP + 3, 100))
        await stage.run(until=began + 1)
        assert stage.published == dict.fromkeys((STEP + 1, STEP + 3, STEP + 5), began)
        assert [each[0] for each in stage.ledger.story] == [
            *("append", "append", "publish"),
            *("append", "append", "publish"),
            *("append", "publish"),  # the last two were empty
        ]

    async def test_at_most_one_decision_is_held_with_steps_shorter_than_the_delay(self):
        tens = StepTiming(10)
        schedule = Schedule(tens, release_ms=35)
        stage = Stage("p", now=tens.start(0), schedule=schedule, first=0)
        for step in range(12):
            stage.send(tens.start(step))
        await stage.run(until=schedule.release_at(11) + 1)
        assert stage.counts == dict.fromkeys(range(12), 1)
        assert stage.published == {step: schedule.release_at(step) for step in range(12)}
        story = [each[0] for each in stage.ledger.story]
        assert story[:24] == ["append", "publish"] * 12

    async def test_who_looks_a_moment_too_early_does_not_wait_for_records(self):
        """Otherwise results would leave earlier if somebody sends something."""
        stage = Stage("p", schedule=DELAYED)
        stage.send(at(STEP, 600))
        hold_back = Loop._hold_back

        class Slow(Loop):
            def _hold_back(self):
                hold_back(self)
                if stage.engine.closed == STEP and not stage.published:
                    stage.clock.now = DELAYED.release_at(STEP)

        stage.clock.now = DELAYED.release_at(STEP) - 1
        await stage.run(until=DELAYED.release_at(STEP) + 50, loop=Slow)
        assert stage.published == {STEP: DELAYED.release_at(STEP)}

    async def test_what_is_held_when_it_is_stopped_is_left_to_the_next_start(self):
        stage = Stage("p", schedule=DELAYED)
        stage.send(at(STEP, 600))
        append = stage.ledger.append

        async def append_last(entry):
            await append(entry)
            stage.stopping.set()

        stage.ledger.append = append_last
        await stage.run()
        assert [each[0] for each in stage.ledger.story] == ["append"]
        assert stage.published == {}


class TestProgress:
    def test_it_is_behind_by_the_time_since_the_last_closed_step_ended(self):
        clock = Clock(SECONDS.end(4) + 27)
        progress = Progress(ScriptedSource(clock, "p"), SCHEDULE, clock)
        assert progress.behind(4) == 27

    async def test_nothing_closes_before_partitions_were_listed_when_it_was_due(self):
        """One that is added between two steps may hold events for the first of them."""
        clock = Clock(over(STEP) - 1)
        source = ScriptedSource(clock, "p")
        progress = Progress(source, SCHEDULE, clock)
        await progress.look_for_partitions()
        source.add("q", since=over(STEP) - 1)
        clock.now = over(STEP)
        progress.read(batch([b""], [over(STEP)], "p"), clock.now)
        assert progress.closable() == STEP - 1
        source.arrive("q", over(STEP), b"")
        await progress.look_for_drained(reading=False)
        assert progress.closable() is None
