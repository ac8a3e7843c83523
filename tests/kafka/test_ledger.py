"""The journal on a real broker: what is had back is what was kept, or it is refused."""

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import combinations

import msgspec
import numpy as np
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.errors import UnusableJournalError
from streamer.kafka import ledger as kafka
from streamer.kafka import ledger_records
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import KafkaLedger
from streamer.kafka.ledger_restore import read_past
from streamer.kafka.transactions import Transactions, ends_of
from streamer.ledger.contract import Entry, Life, SnapshotRule
from streamer.monitors.seam import Hitter
from streamer.privacy.terms import Method, Neighbours
from streamer.service.resume import check_key
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.pseudonyms import Pseudonyms
from tests.kafka.harness import Record, admin_of, make_topic, produce, records_of

LIFE, KEY = Life(60_000, 0), "0123456789abcdef"
TERMS = Terms(
    1.0, 1e-6, 10, Neighbours.REPLACE, Method.EXACT, 10, refresh_steps=3, beta=0.05, items=1000
)
FIRST = Period.containing(3, TERMS)
SECOND = FIRST.at(FIRST.end, TERMS)


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def decision(step, charged=(), period=FIRST, first=None):
    hitters = (Hitter(f"crash:{step}", 500 + step),) if len(charged) else ()
    return Decided(step, step if first is None else first, period, hitters, users(*charged))


@pytest.fixture
async def state(world):
    """The state topic of this world, empty."""
    await make_topic(world.bootstrap, world.topic("state"), cleanup_policy="compact")
    return world


@asynccontextmanager
async def opened(world, life=LIFE, events_topic="events", key=KEY):
    """A journal and its transactions, restored as at a start of the service."""
    connection = Connection((world.bootstrap,))
    transactions = Transactions(connection, world.name, world.topic("state"))
    journal = KafkaLedger(connection, transactions, world.topic("state"), life, events_topic, key)
    try:
        await transactions.start()
        yield journal, transactions, await journal.restore()
    finally:
        await transactions.stop()


async def keep(world, *decisions, offsets=None):
    """Decisions that are made and published."""
    async with opened(world) as (journal, transactions, _):
        for decided in decisions:
            await journal.append(Entry(decided, offsets or {"0": decided.step}))
            await transactions.commit([journal.note_of(decided.step)])


async def restored(world, **changes):
    async with opened(world, **changes) as (_, _, found):
        return found


async def put(world, key, value):
    """Write to the state topic behind the journal's back."""
    await produce(world.bootstrap, world.topic("state"), [Record(value, key=key)])


async def state_of(world):
    """What compaction would leave, without the markers of transactions."""
    last = {
        r.key.decode(): r.value for r in await records_of(world.bootstrap, world.topic("state"))
    }
    return {k: value for k, value in last.items() if value is not None and k != "transaction"}


async def keys_of(world):
    return set(await state_of(world))


def counters(found):
    return dict(zip(found.state.users.tolist(), found.state.charges.tolist(), strict=True))


async def test_an_empty_topic_is_a_new_journal(state):
    assert await restored(state) is None


async def test_a_topic_with_nothing_but_markers_is_a_new_journal(state):
    """Rejected records may be written before the first step closes."""
    async with opened(state) as (_, transactions, _):
        await transactions.commit([])
    assert await restored(state) is None


async def test_what_is_kept_is_had_back(state):
    await keep(state, decision(3, [7, 9]), decision(4), decision(5, [9]), offsets={"0": 5, "1": 2})
    found = await restored(state)
    assert found.state.closed == 5
    assert found.state.period == FIRST
    assert counters(found) == {7: 1, 9: 2}
    assert found.last.decided.hitters == (Hitter("crash:5", 505),)
    assert found.last.offsets == {"0": 5, "1": 2}
    assert found.published.step == 5
    assert found.key == KEY


async def test_a_run_of_empty_steps_is_had_back_as_one(state):
    await keep(state, decision(3, [1]), decision(9, first=4))
    async with opened(state) as (journal, _, found):
        assert (found.last.decided.first, found.state.closed) == (4, 9)
        assert [(each.first, each.step) for each in await journal.history(5)] == [(3, 3), (4, 9)]


async def test_items_rest_as_far_back_as_the_refresh_reaches(state):
    await keep(state, *(decision(step, [1]) for step in range(3, 8)))
    assert (await restored(state)).state.resting == {"crash:6": 9, "crash:7": 10}


async def test_a_decision_is_unpublished_until_the_note_of_it_is_committed(state):
    await keep(state, decision(3, [7]))
    async with opened(state) as (journal, transactions, _):
        await journal.append(Entry(decision(4, [7]), {"0": 4}))
        await journal.note_published(Published(4))  # says nothing of its own
        found = await journal.restore()
        assert (found.published.step, found.last.decided.step) == (3, 4)
        assert found.last.decided.hitters == (Hitter("crash:4", 504),)
        await transactions.commit([journal.note_of(4)])
        assert (await journal.restore()).published.step == 4


async def test_the_step_before_the_first_is_kept_with_the_first(state):
    async with opened(state) as (journal, _, _):
        await journal.note_published(Published(6))
        assert await restored(state) is None
    async with opened(state) as (journal, _, _):
        await journal.note_published(Published(6))
        await journal.append(Entry(decision(7, [7])))
    assert (await restored(state)).published.step == 6


class TestPeriods:
    async def test_a_new_period_forgets_all_charges(self, state):
        await keep(state, decision(8, [1, 2]), decision(9, [2]), decision(10, [5], SECOND))
        found = await restored(state)
        assert found.state.period == SECOND
        assert counters(found) == {5: 1}
        assert {key for key in await keys_of(state) if key.startswith("charges")} == {
            "charges/10/0"
        }

    async def test_also_if_it_begins_with_empty_steps(self, state):
        await keep(state, decision(3, [1, 2]), decision(11, (), SECOND, first=4))
        assert counters(await restored(state)) == {}

    async def test_also_after_a_restart_in_the_old_one(self, state):
        await keep(state, decision(9, [1, 2]))
        await keep(state, decision(10, [5], SECOND))
        assert counters(await restored(state)) == {5: 1}

    async def test_a_snapshot_does_not_outlive_its_period(self, state):
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, [1, 2])))
            await journal.snapshot(users(1, 2), np.array([1, 1], dtype=np.uint16))
            await journal.append(Entry(decision(10, [], SECOND, first=4)))
        assert counters(await restored(state)) == {}
        assert {key.partition("/")[0] for key in await keys_of(state)} == {
            *("life", "period", "step", "published")
        }


class TestSnapshots:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)

    async def test_a_snapshot_and_the_charges_since(self, state):
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, range(10))))
            await journal.append(Entry(decision(4, range(5, 10))))
            before = await journal.restore()
            await journal.snapshot(before.state.users, before.state.charges)
            await journal.append(Entry(decision(5, range(8, 20, 2))))
        expected = {user: 1 + (user >= 5) for user in range(10)}
        for user in range(8, 20, 2):
            expected[user] = expected.get(user, 0) + 1
        assert counters(await restored(state)) == expected

    async def test_each_part_is_small_and_what_led_to_it_is_deleted(self, state):
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, range(7))))
            await journal.snapshot(users(*range(7)), np.ones(7, dtype=np.uint16))
            assert await keys_of(state) == {
                *("life", "published", "period/0", "step/3", "snapshot"),
                *("counters/3/0", "counters/3/1", "counters/3/2"),
            }
            await journal.append(Entry(decision(4, range(4))))
            await journal.snapshot(users(1, 2), np.ones(2, dtype=np.uint16))
        assert await keys_of(state) == {
            *("life", "published", "period/0", "step/3", "step/4", "snapshot", "counters/4/0")
        }

    async def test_a_snapshot_that_was_restored_is_replaced_by_the_next(self, state):
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, range(7))))
            await journal.snapshot(users(*range(7)), np.ones(7, dtype=np.uint16))
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(4, [1])))
            await journal.snapshot(
                users(*range(7)), np.array([1, 2, 1, 1, 1, 1, 1], dtype=np.uint16)
            )
        assert counters(await restored(state)) == {**dict.fromkeys(range(7), 1), 1: 2}
        assert "counters/3/0" not in await keys_of(state)

    async def test_a_snapshot_of_nobody(self, state):
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3)))
            await journal.snapshot(users(), np.empty(0, dtype=np.uint16))
        assert counters(await restored(state)) == {}

    async def test_charges_since_are_added_to_the_part_that_their_users_are_in(self, state):
        """Before the first user of all, between parts, behind the last; known users and new."""
        chance = random.Random(1)
        people = range(100, 160)
        expected = dict.fromkeys(people[::2], 1)
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, expected)))
            await journal.snapshot(users(*expected), np.ones(len(expected), dtype=np.uint16))
            for step in range(4, 10):
                charged = sorted(chance.sample(range(90, 170), 25))
                expected |= {user: expected.get(user, 0) + 1 for user in charged}
                await journal.append(Entry(decision(step, charged)))
        found = await restored(state)
        assert counters(found) == expected
        assert found.state.users.tolist() == sorted(expected)

    async def test_it_is_due_when_charges_take_half_the_room_of_the_counters(
        self, state, monkeypatch
    ):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        async with opened(state) as (journal, _, _):
            await journal.append(Entry(decision(3, [1, 2])))
            assert journal.snapshot_due
            await journal.snapshot(users(1, 2), np.ones(2, dtype=np.uint16))
            assert not journal.snapshot_due
            await journal.append(Entry(decision(4, [1])))
            assert not journal.snapshot_due
            await journal.append(Entry(decision(5, [1])))
            assert journal.snapshot_due
        async with opened(state) as (journal, _, _):
            assert journal.snapshot_due


class TestHistory:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(kafka, "HISTORY", 4)

    async def test_only_the_last_decisions_are_kept(self, state):
        async with opened(state) as (journal, _, _):
            for step in range(3, 10):
                await journal.append(Entry(decision(step, [step])))
            assert [each.step for each in await journal.history(2)] == [8, 9]
            assert [each.step for each in await journal.history(99)] == [6, 7, 8, 9]
        async with opened(state) as (journal, _, found):
            assert [each.step for each in await journal.history(99)] == [6, 7, 8, 9]
            assert counters(found) == dict.fromkeys(range(3, 10), 1)

    async def test_and_the_periods_that_they_belong_to(self, state):
        await keep(state, decision(9), *(decision(step, [1], SECOND) for step in range(10, 13)))
        assert {"period/0", "period/1"} <= await keys_of(state)
        await keep(state, decision(13, [1], SECOND))
        assert {key for key in await keys_of(state) if key.startswith("period")} == {"period/1"}
        assert (await restored(state)).state.closed == 13

    async def test_older_ones_are_kept_as_long_as_their_items_rest(self, state):
        patient = Period.containing(3, replace(TERMS, refresh_steps=6))
        async with opened(state) as (journal, _, _):
            for step in range(3, 12):
                await journal.append(Entry(decision(step, [step], patient)))
            assert [each.step for each in await journal.history(99)] == [*range(7, 12)]
        resting = (await restored(state)).state.resting
        assert resting == {f"crash:{step}": step + 6 for step in range(7, 12)}


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "setting"),
        [
            ({"life": Life(30_000, 0)}, "stream.step_seconds"),
            ({"life": Life(60_000, 1)}, "stream.epoch"),
            ({"events_topic": "others"}, "kafka.events_topic"),
        ],
    )
    async def test_another_life_names_the_setting(self, state, change, setting):
        await keep(state, decision(3, [1]))
        with pytest.raises(UnusableJournalError, match=f"made with another {setting} "):
            await restored(state, **change)
        assert (await restored(state)).state.closed == 3

    async def test_a_newer_format(self, state):
        await keep(state, decision(3, [1]))
        await put(state, b"life", msgspec.json.encode({"format": 2, "all": "new"}))
        with pytest.raises(UnusableJournalError, match="has format 2, this program knows 1"):
            await restored(state)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            (b"life", b"\xff"),
            (b"life", b"[]"),
            (b"life", None),
            (b"step/3", b"{}"),
            (b"step/4", b'{"step":'),
            (b"period/0", b'{"period": 1}'),
            (b"period/0", None),
            (b"charges/3/0", b"\0" * 20),
            (b"charges/3/0", b""),
            (b"charges/3/0", bytes(4)),
            (b"published", b"3"),
            (b"snapshot", b'{"step":3,"chunks":1}'),
            (b"\xff\xfe", b"not a key of ours"),
        ],
    )
    async def test_a_damaged_record(self, state, key, value):
        await keep(state, decision(3, [1, 2]))
        await put(state, key, value)
        with pytest.raises(UnusableJournalError, match=state.topic("state")):
            await restored(state)

    async def test_another_key_as_long_as_somebody_is_charged_under_the_old_one(self, state):
        pseudonyms = Pseudonyms(bytes(32))
        await keep(state, decision(3, [1]))
        with pytest.raises(UnusableJournalError, match="another key"):
            check_key(await restored(state), pseudonyms)
        await keep(state, decision(10, (), SECOND, first=4))
        check_key(await restored(state), pseudonyms)

    async def test_the_key_of_a_period_is_that_of_its_charges(self, state):
        await keep(state, decision(9))
        async with opened(state, key="fedcba9876543210") as (journal, _, found):
            assert found.key == KEY
            await journal.append(Entry(decision(10, [1], SECOND)))
        assert (await restored(state)).key == "fedcba9876543210"


class TestMissing:
    """Budgets would be spent twice if a journal were believed that is not whole."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)
        monkeypatch.setattr(kafka, "HISTORY", 7)

    @pytest.fixture
    async def whole(self, state):
        """Two periods, a snapshot in parts, charges since in parts, quiet steps; all of it is
        published."""
        async with opened(state) as (journal, transactions, _):
            for step, number in enumerate([4, 5, 0, 7, 8, 0, 2, 5, 0], start=7):
                charged, period = range(number), FIRST if step < FIRST.end else SECOND
                await journal.append(Entry(decision(step, charged, period), {"0": step}))
                await transactions.commit([journal.note_of(step)])
                if step == 11:
                    now = (await journal.restore()).state
                    await journal.snapshot(now.users, now.charges)
        return state

    async def test_the_journal_is_whole(self, whole):
        """What the tests below take something away from."""
        found = read_past(await state_of(whole)).restored
        assert counters(found) == dict(enumerate([4, 4, 3, 3, 3, 2, 2, 1]))
        assert await keys_of(whole) == {
            *("life", "published", "snapshot", "period/0", "period/1"),
            *(f"step/{step}" for step in range(9, 16)),
            *(f"counters/11/{part}" for part in range(3)),
            *("charges/13/0", "charges/14/0", "charges/14/1"),
        }

    async def test_each_deleted_key_is_noticed_and_the_journal_is_left_as_it_is(self, whole):
        for key, value in (await state_of(whole)).items():
            await put(whole, key.encode(), None)
            with pytest.raises(UnusableJournalError, match=r"missing\): restore it") as complaint:
                await restored(whole)
            assert "\n" not in str(complaint.value)
            await put(whole, key.encode(), value)
            assert (await restored(whole)).state.closed == 15

    async def test_several_deleted_keys_do_not_hide_one_another(self, whole):
        state = await state_of(whole)
        del state["life"]  # which the journal looks at before everything else
        chance = random.Random(1)
        taken = [
            *combinations(state, 2),
            *(chance.sample([*state], chance.randint(3, len(state))) for _ in range(500)),
        ]
        for missing in taken:
            with pytest.raises(ValueError, match=r"missing|charges are there"):
                read_past({key: state[key] for key in state.keys() - set(missing)})

    async def test_the_last_step_is_missed_if_it_is_published(self, state):
        await keep(state, decision(3, [1]), decision(4))
        await put(state, b"step/4", None)
        with pytest.raises(UnusableJournalError, match="step/4 is missing"):
            await restored(state)

    async def test_charges_from_before_the_snapshot_that_came_back_are_refused(self, whole):
        await put(whole, b"charges/10/0", (await state_of(whole))["charges/14/0"])
        with pytest.raises(UnusableJournalError, match=r"25 charges are there.* knows of 22"):
            await restored(whole)

    async def test_a_log_without_its_beginning_is_refused_wherever_it_is_cut(self, whole):
        partition = TopicPartition(whole.topic("state"), 0)
        records = await records_of(whole.bootstrap, partition.topic)
        first = min(record.offset for record in records if record.key == b"life")
        last = max(record.offset for record in records if record.key != b"transaction")
        wrong = {"cleanup.policy": "compact,delete"}
        async with admin_of(whole.bootstrap) as admin:
            await admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, partition.topic, wrong)]
            )
            for cut in range(first + 1, last + 1):
                await admin.delete_records({partition: RecordsToDelete(before_offset=cut)})
                with pytest.raises(UnusableJournalError, match="life is missing"):
                    await restored(whole)


class TestWhatIsRead:
    async def test_a_transaction_that_was_aborted_is_as_if_it_had_never_been(self, state):
        await keep(state, decision(3, [1]))
        producer = AIOKafkaProducer(bootstrap_servers=state.bootstrap, transactional_id=state.name)
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(state.topic("state"), b"nonsense", b"step/4")
        await producer.abort_transaction()
        await producer.stop()
        assert (await restored(state)).state.closed == 3

    async def test_a_transaction_that_was_left_open_is_ended_by_the_start(self, state):
        await keep(state, decision(3, [1]))
        producer = AIOKafkaProducer(bootstrap_servers=state.bootstrap, transactional_id=state.name)
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(state.topic("state"), b"nonsense", b"step/4")
        try:
            assert (await restored(state)).state.closed == 3
        finally:
            await producer.stop()

    async def test_an_end_of_nothing_but_marks_is_reached(self, state):
        """Each start and each aborted transaction leaves marks that are no records."""
        await keep(state, decision(3, [1]))
        for _ in range(3):
            producer = AIOKafkaProducer(
                bootstrap_servers=state.bootstrap, transactional_id=state.name
            )
            await producer.start()
            await producer.begin_transaction()
            await producer.send_and_wait(state.topic("state"), b"nonsense", b"step/4")
            await producer.abort_transaction()
            await producer.stop()
        last = (await records_of(state.bootstrap, state.topic("state")))[-1].offset
        partition = TopicPartition(state.topic("state"), 0)
        end = (await ends_of(Connection((state.bootstrap,)), [partition]))[partition]
        assert end - last >= 7, "the end is nothing but what nobody reads"
        assert (await restored(state)).state.closed == 3


async def test_a_compacted_topic_tells_the_same(world, monkeypatch):
    monkeypatch.setattr(kafka, "HISTORY", 5)
    await make_topic(
        world.bootstrap,
        world.topic("state"),
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="0",
        max_compaction_lag_ms="200",
    )
    async with opened(world) as (journal, transactions, _):
        for step in range(3, 20):
            period = FIRST if step < FIRST.end else SECOND
            await journal.append(Entry(decision(step, [step, 99], period), {"0": step}))
            await transactions.commit([journal.note_of(step)])
            if step == 13:
                state = (await journal.restore()).state
                await journal.snapshot(state.users, state.charges)
    before = await restored(world)
    async with asyncio.timeout(60):
        # Compaction leaves the newest record of each key, and the newest segment as it is.
        while len(await records_of(world.bootstrap, world.topic("state"))) > 30:
            await put(world, b"transaction", b"roll the segment")
            await asyncio.sleep(0.2)
    after = await restored(world)
    assert counters(after) == counters(before)
    assert counters(after) == {**dict.fromkeys(range(10, 20), 1), 99: 10}
    assert (after.state.closed, after.last.offsets) == (19, {"0": 19})
    assert after.state.resting == before.state.resting
    assert after.published.step == 19
