"""Which step an event counts for, and when steps close: on a broker, with a clock of ours.

The topic keeps the producers' timestamps, so each test says when each record arrives.
"""

import asyncio
from functools import partial

import pytest
from aiokafka import AIOKafkaProducer

from streamer.errors import FencedError, UnusableJournalError
from streamer.kafka.source import KafkaSource
from streamer.stream.publication import LONG_RUN
from streamer.stream.timing import format_rfc3339
from tests.kafka.harness import DEADLINE, Record, add_partitions, event, eventually
from tests.kafka.stage import AHEAD, LATENESS, STEP, Stage, at, over


@pytest.fixture
def staged(world):
    return partial(Stage.make, world)


@pytest.fixture
def shut(monkeypatch):
    """Partitions that the consumer is kept from reading, as if they were slow."""
    shut, poll = set(), KafkaSource.poll

    async def poll_less(source, timeout_ms, skip):
        return await poll(source, timeout_ms, {*skip, *shut})

    monkeypatch.setattr(KafkaSource, "poll", poll_less)
    return shut


def covered(records):
    """The steps that have a record, in the order of the records."""
    return [
        step
        for record in records
        for step in range(record.get("first", record["step"]), record["step"] + 1)
    ]


class TestClosing:
    async def test_an_idle_partition_does_not_hold_a_step_up(self, staged):
        stage = await staged(partitions=3)
        async with stage.run() as service:
            await stage.send(at(STEP, 100), partition=1, number=4)
            await eventually(lambda: service.engine.intake.buffered == 4)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert stage.counts == {STEP: 4}

    async def test_a_step_is_open_until_lateness_and_skew_have_passed(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await stage.send(at(STEP, 100))
            await eventually(lambda: service.engine.intake.buffered == 1)
            stage.clock.now = over(STEP) - 1
            await stage.turns()
            assert service.engine.closed == STEP - 1
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)

    async def test_a_partition_with_a_backlog_holds_the_step_until_it_is_read(self, staged, shut):
        stage = await staged(partitions=2)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP - 1)
            shut.add("1")
            await stage.turns(2)
            await stage.send(at(STEP, 100), partition=1, number=30)
            await stage.send(at(STEP, 100), partition=0)
            stage.clock.now = over(STEP + 5)
            await eventually(lambda: service.engine.intake.buffered == 1)
            await stage.turns()
            assert service.engine.closed == STEP - 1
            shut.clear()
            await eventually(lambda: service.engine.closed == STEP + 5)
        assert stage.counts == {STEP: 31}

    async def test_a_backlog_goes_to_its_steps_however_it_is_read(self, staged):
        """The one partition is read to its end long before the other: small polls."""
        stage = await staged(partitions=2, max_poll_records=20)
        stage.clock.now = over(STEP + 9)
        for step in range(STEP, STEP + 10):
            await stage.send(at(step, 500), partition=0, number=20)
        await stage.send(at(STEP, 999), partition=1)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP + 9)
        assert stage.counts == {STEP: 21} | dict.fromkeys(range(STEP + 1, STEP + 10), 20)

    async def test_an_added_partition_counts_from_its_first_event_on(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await stage.send(at(STEP, 100), number=2)
            await eventually(lambda: service.engine.intake.buffered == 2)
            await add_partitions(stage.world.bootstrap, stage.world.topic("events"), 3)
            await stage.send(at(STEP, 200), partition=2, number=3)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert stage.counts == {STEP: 5}

    async def test_transactions_count_if_they_are_committed_and_stall_nothing(self, staged):
        """What ends a transaction, or was aborted, takes offsets that nobody ever reads."""
        stage = await staged()
        producer = AIOKafkaProducer(
            bootstrap_servers=stage.world.bootstrap, transactional_id=f"{stage.world.name}-other"
        )
        await producer.start()
        async with stage.run() as service:
            for end in (producer.commit_transaction, producer.abort_transaction):
                await producer.begin_transaction()
                value = event(end.__name__, "x")
                place = {"partition": 0, "timestamp_ms": at(STEP, 100)}
                await producer.send_and_wait(stage.world.topic("events"), value, **place)
                await end()
            await producer.stop()
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        assert stage.counts == {STEP: 1}
        async with stage.run() as service:
            stage.clock.now = over(STEP + 1)
            await eventually(lambda: service.engine.closed == STEP + 1)


class TestNewStreams:
    @pytest.mark.parametrize(("start", "first"), [(None, STEP), (at(STEP - 3, 10), STEP - 3)])
    async def test_they_begin_with_the_clock_or_where_they_are_told(self, staged, start, first):
        """Never with the first event, which somebody sent."""
        stage = await staged()
        stage.start = start and format_rfc3339(start)
        await stage.send(at(STEP - 5, 100))
        await stage.send(at(STEP - 2, 100), number=2)
        await stage.send(at(STEP, 100), number=3)
        async with stage.run() as service:
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        counts = {STEP - 2: 2, STEP: 3}
        assert stage.counts == {step: n for step, n in counts.items() if step >= first}
        assert covered(await stage.steps()) == list(range(first, STEP + 1))


class TestFates:
    async def test_an_event_counts_until_the_lateness_has_passed_and_not_after(self, staged):
        stage = await staged()
        async with stage.run() as service:
            for arrival in (at(STEP + 1, LATENESS - 1), at(STEP + 1, LATENESS)):
                await stage.send(arrival, time=at(STEP, 999))
            stage.clock.now = over(STEP + 1)
            await eventually(lambda: service.engine.closed == STEP + 1)
            assert (service.summary.accepted, service.summary.late) == (1, 1)
        assert stage.counts == {STEP: 1}

    async def test_a_late_event_is_late_also_if_it_is_read_before_its_step_closes(self, staged):
        stage = await staged(partitions=2)
        stage.clock.now = over(STEP + 1)
        await stage.send(at(STEP + 1, LATENESS), partition=0, time=at(STEP))
        await stage.send(at(STEP, 100), partition=1)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP + 1)
            assert service.summary.late == 1
        assert stage.counts == {STEP: 1}

    async def test_times_are_told_in_several_ways(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await stage.send(at(STEP, 100), time=at(STEP + 1, 5))
            await stage.send(at(STEP, 100), time="2023-11-14T22:30:01.5Z")
            await stage.send(at(STEP, 100), step=STEP + 1)
            await stage.send(at(STEP, 100))
            stage.clock.now = over(STEP + 1)
            await eventually(lambda: service.engine.closed == STEP + 1)
        assert stage.counts == {STEP: 1, STEP + 1: 3}

    async def test_an_arrival_far_ahead_of_the_clock_is_rejected(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await stage.send(stage.clock.now + AHEAD)
            await stage.send(stage.clock.now + AHEAD + 1)
            await stage.send(at(STEP), time=at(STEP) + AHEAD + 1)
            await eventually(lambda: service.summary.records == 3)
            assert service.summary.accepted == 1
            assert service.summary.rejected == {"arrival_ahead": 1, "time_ahead": 1}

    async def test_and_closes_no_step_for_those_behind_it(self, staged):
        stage = await staged(max_poll_records=1)
        stage.clock.now = over(STEP + 9)
        too_far = stage.clock.now + AHEAD + 1
        await stage.send(too_far)
        await stage.put([Record(b"no event", 0, too_far)])
        await stage.send(at(STEP + 3, 100))
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP + 9)
        assert stage.counts == {STEP + 3: 1}


class TestRestarts:
    async def test_after_an_outage_all_steps_are_there_once(self, staged):
        stage = await staged(partitions=2)
        async with stage.run() as service:
            await stage.send(at(STEP, 100), number=2)
            await eventually(lambda: service.engine.intake.buffered == 2)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.summary.hitters)
        await stage.send(at(STEP + 7, 100), partition=1, number=3)
        await stage.send(at(STEP + 300, 100), partition=0, number=4)
        stage.clock.now = over(STEP + 1000)
        async with stage.run() as service:
            await eventually(lambda: service.engine.closed == STEP + 1000)
            assert service.summary.records == 7, "what was decided is not read again"
        assert stage.counts == {STEP: 2, STEP + 7: 3, STEP + 300: 4}
        records = await stage.steps()
        assert covered(records) == list(range(records[0]["step"], STEP + 1001))
        assert [record["step"] for record in records if record["hitters"]] == list(stage.counts)
        runs = [(record["first"], record["step"]) for record in records if "first" in record]
        assert runs == [(STEP + 8, STEP + 299), (STEP + 301, STEP + 1000)]
        assert all(last - first >= LONG_RUN for first, last in runs)

    async def test_what_was_only_in_memory_is_read_again(self, staged):
        stage = await staged(partitions=2)
        async with stage.run() as service:
            await stage.send(at(STEP, 100), partition=0, number=2)
            await stage.send(at(STEP, 200), partition=1, number=3, step=STEP + 2)
            await eventually(lambda: service.engine.intake.buffered == 5)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        async with stage.run() as service:
            stage.clock.now = over(STEP + 2)
            await eventually(lambda: service.engine.closed == STEP + 2)
            assert service.summary.records == 3
        assert stage.counts == {STEP: 2, STEP + 2: 3}

    async def test_an_idle_partition_is_not_read_from_its_beginning_again(self, staged):
        stage = await staged(partitions=2)
        async with stage.run() as service:
            await stage.send(at(STEP, 100), partition=1, number=5)
            await eventually(lambda: service.engine.intake.buffered == 5)
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        for step in (STEP + 1, STEP + 2):
            async with stage.run() as service:
                stage.clock.now = over(step)
                await eventually(lambda step=step: service.engine.closed == step)
                assert service.summary.records == 0


class TestBackPressure:
    LIMIT, POLL, STEPS, EACH = 500, 100, 15, 100

    async def test_partitions_ahead_wait_with_full_buffers_and_nothing_is_lost(self, staged, shut):
        stage = await staged(
            partitions=2, max_buffered_events=self.LIMIT, max_poll_records=self.POLL
        )
        stage.clock.now = over(STEP + self.STEPS - 1)
        for partition in (0, 1):
            await stage.put(
                [
                    Record(event(f"{partition}-{step}-{n}", "x"), partition, at(step, n))
                    for step in range(STEP, STEP + self.STEPS)
                    for n in range(self.EACH)
                ]
            )
        shut.add("1")
        peaks = []
        async with stage.run() as service:
            stage.clock.watch = lambda: peaks.append(service.engine.intake.buffered)
            await eventually(lambda: service.engine.intake.buffered >= self.LIMIT)
            await stage.turns()
            assert service.engine.intake.buffered <= self.LIMIT + self.POLL
            shut.clear()
            await eventually(lambda: service.engine.closed == STEP + self.STEPS - 1)
        # The one that holds things up is read on, at most for another step and a poll.
        assert max(peaks) <= self.LIMIT + 2 * (self.EACH + self.POLL)
        assert stage.counts == dict.fromkeys(range(STEP, STEP + self.STEPS), 2 * self.EACH)


class TestLostState:
    async def test_no_state_beside_steps_is_refused_until_told_to_start_anew(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await eventually(lambda: service.summary.steps)
        lost = {"state_topic": stage.world.topic("other")}
        with pytest.raises(UnusableJournalError, match=r"kafka\.start_anew") as complaint:
            async with stage.run(**lost):
                pass
        assert complaint.value.exit_code == 2
        async with stage.run(**lost, start_anew=True) as service:
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        async with stage.run(**lost) as service:
            assert service.engine.closed == STEP

    async def test_starting_anew_decides_nothing_again_that_was_published(self, staged):
        stage = await staged()
        await stage.send(at(STEP, 500), number=7)
        await stage.send(at(STEP + 1, 500), number=5)
        async with stage.run() as service:
            stage.clock.now = over(STEP)
            await eventually(lambda: service.engine.closed == STEP)
        lost = {"state_topic": stage.world.topic("other"), "start_anew": True}
        stage.decider.counts.clear()
        stage.clock.now = at(STEP + 3)
        async with stage.run(**lost) as service:
            await stage.send(at(STEP + 3, 500), number=3)
            stage.clock.now = over(STEP + 3)
            await eventually(lambda: service.engine.closed == STEP + 3)
            assert service.summary.already_closed == 7 + 5
        assert stage.counts == {STEP + 3: 3}

    async def test_a_new_world_needs_not_be_told(self, staged):
        stage = await staged()
        async with stage.run() as service:
            await eventually(lambda: service.summary.steps)


async def test_a_second_instance_ends_the_first_with_code_3(staged):
    stage = await staged()

    async def replaced():
        async with stage.run() as older:
            await eventually(lambda: older.summary.steps)  # counted when they are published
            async with stage.run() as newer:
                stage.clock.now = over(STEP)
                await eventually(lambda: newer.summary.steps)
            await asyncio.Event().wait()

    with pytest.raises(FencedError) as complaint:
        await replaced()
    assert complaint.value.exit_code == 3
    # The newer one may have been stopped before it published; then its successor does.
    async with stage.run(), asyncio.timeout(DEADLINE):
        while covered(await stage.steps()) != [STEP - 1, STEP]:
            await asyncio.sleep(0.05)
