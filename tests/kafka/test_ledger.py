"""The ledger on a real broker: what it promises beyond the contract of every ledger."""

import asyncio
import random
from dataclasses import replace
from itertools import combinations

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.errors import UnusableJournalError
from streamer.kafka import ledger as kafka
from streamer.kafka import ledger_records
from streamer.kafka.connection import Connection
from streamer.kafka.ledger_restore import read_past
from streamer.kafka.transactions import ends_of
from streamer.ledger import past
from streamer.ledger.contract import Life
from tests.kafka.harness import admin_of, records_of
from tests.ledger.making import counters_of, entry, facts_of, keep, period_at, times, users
from tests.ledger.stores import KafkaStore


@pytest.fixture
async def store(world):
    store = KafkaStore(world)
    await store.make()
    return store


async def kept(store, *entries):
    """Decisions that are made and published by one run."""
    async with store.resumed() as ledger:
        await keep(ledger, *entries)


def kinds(state):
    """Which kinds of keys there are."""
    return {key.partition("/")[0] for key in state}


async def test_a_topic_with_nothing_but_markers_is_a_new_ledger(store):
    """Rejected records may be written before the first step closes."""
    for _ in range(2):
        async with store.opened() as ledger:
            assert await ledger.restore() is None
            await ledger.claim()
    assert {key for _, _, key, _ in await store.contents()} == {b"transaction"}


async def test_a_publication_and_the_note_of_it_are_one_transaction(store):
    await kept(store, entry(3, [7], ["a"]))
    state = store.topics.state
    markers = [
        offset
        for topic, offset, key, _ in await store.contents()
        if (topic, key) == (state, b"transaction")
    ]
    notes = [
        offset
        for topic, offset, key, _ in await store.contents()
        if (topic, key) == (state, b"published")
    ]
    claimed, appended, published = markers
    assert claimed < notes[0] < appended < notes[1] < published


class TestKeys:
    """What is in the topic when compaction is done."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)

    async def test_a_new_period_deletes_all_charges(self, store):
        await kept(store, entry(98, [1, 2]), entry(99, [2]), entry(100, [5]))
        charges = {key for key in await store.state() if key.startswith("charges")}
        assert charges == {"charges/100/0"}

    async def test_a_new_period_deletes_the_snapshot(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, [1, 2]))
            await ledger.snapshot(users(1, 2), times(1, 1))
            await ledger.append(entry(100, first=4))
        assert kinds(await store.state()) == {"life", "period", "step", "published"}

    async def test_each_part_is_small_and_what_led_to_it_is_deleted(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, range(7)))
            await ledger.snapshot(users(*range(7)), times(*[1] * 7))
            assert {*await store.state()} == {
                *("life", "published", "period/0", "step/3", "snapshot"),
                *("counters/3/0", "counters/3/1", "counters/3/2"),
            }
            await ledger.append(entry(4, range(4)))
            await ledger.snapshot(users(1, 2), times(1, 1))
        assert {*await store.state()} == {
            *("life", "published", "period/0", "step/3", "step/4", "snapshot", "counters/4/0")
        }

    async def test_a_snapshot_that_was_restored_is_deleted_by_the_next(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, range(7)))
            await ledger.snapshot(users(*range(7)), times(*[1] * 7))
        async with store.resumed() as ledger:
            await ledger.append(entry(4, [1]))
            await ledger.snapshot(users(*range(7)), times(1, 2, 1, 1, 1, 1, 1))
        assert "counters/3/0" not in await store.state()

    async def test_charges_since_are_added_to_the_part_that_their_users_are_in(self, store):
        """Before the first user of all, between parts, behind the last; known users and new."""
        chance = random.Random(1)
        people = range(100, 160)
        expected = dict.fromkeys(people[::2], 1)
        async with store.resumed() as ledger:
            await ledger.append(entry(3, expected))
            await ledger.snapshot(users(*expected), times(*[1] * len(expected)))
            for step in range(4, 10):
                charged = chance.sample(range(90, 170), 25)
                expected |= {user: expected.get(user, 0) + 1 for user in charged}
                await ledger.append(entry(step, charged))
        restored = await store.restored()
        assert counters_of(restored) == expected
        assert restored.state.users.tolist() == sorted(expected)


class TestHistory:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        for room in (past, kafka):
            monkeypatch.setattr(room, "HISTORY", 4)

    async def test_older_decisions_are_deleted(self, store):
        async with store.resumed() as ledger:
            for step in range(3, 10):
                await ledger.append(entry(step, [step]))
        steps = {key for key in await store.state() if key.startswith("step")}
        assert steps == {f"step/{step}" for step in (6, 7, 8, 9)}

    async def test_and_the_periods_that_they_belong_to(self, store):
        await kept(store, entry(99), *(entry(step, [1]) for step in range(100, 103)))
        assert {"period/0", "period/1"} <= {*await store.state()}
        await kept(store, entry(103, [1]))
        assert {key for key in await store.state() if key.startswith("period")} == {"period/1"}
        assert (await store.restored()).state.closed == 103

    async def test_but_not_while_their_items_rest(self, store):
        patient = period_at(0, refresh_steps=6)
        async with store.resumed() as ledger:
            for step in range(3, 12):
                await ledger.append(entry(step, [step], [f"i{step}"], period=patient))
        steps = {key for key in await store.state() if key.startswith("step")}
        assert steps == {f"step/{step}" for step in range(7, 12)}
        resting = (await store.restored()).state.resting
        assert resting == {f"i{step}": step + 6 for step in range(7, 12)}


class TestRefused:
    @pytest.mark.parametrize(
        ("life", "setting"),
        [(Life(30_000, 0), "stream.step_seconds"), (Life(60_000, 1), "stream.epoch")],
    )
    async def test_another_life_names_the_setting(self, store, life, setting):
        await kept(store, entry(3, [1]))
        with pytest.raises(UnusableJournalError, match=f"created with another {setting} "):
            await store.restored(life=life)
        assert (await store.restored()).state.closed == 3

    async def test_other_events_name_the_setting(self, store):
        await kept(store, entry(3, [1]))
        others = replace(store.topics, events="others")
        with pytest.raises(
            UnusableJournalError, match=r"created with another kafka\.events_topic "
        ):
            await store.restored(topics=others)
        assert (await store.restored()).state.closed == 3

    async def test_a_newer_format(self, store):
        await kept(store, entry(3, [1]))
        await store.put({b"life": msgspec.json.encode({"format": 2, "all": "new"})})
        with pytest.raises(
            UnusableJournalError, match="has format 2, but this version supports format 1"
        ):
            await store.restored()

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
    async def test_a_damaged_record(self, store, key, value):
        await kept(store, entry(3, [1, 2]))
        await store.put({key: value})
        with pytest.raises(UnusableJournalError, match=store.topics.state):
            await store.restored()


class TestMissing:
    """Budgets would be spent twice if a ledger were believed that is not whole."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)
        for room in (past, kafka):
            monkeypatch.setattr(room, "HISTORY", 7)

    @pytest.fixture
    async def whole(self, store):
        """Two periods, a snapshot in parts, charges since in parts, quiet steps; all of it is
        published."""
        async with store.resumed() as ledger:
            for step, number in enumerate([4, 5, 0, 7, 8, 0, 2, 5, 0], start=97):
                period = period_at(step, contributions=10)
                await keep(ledger, entry(step, range(number), period=period, offsets={"0": step}))
                if step == 101:
                    await ledger.snapshot(users(*range(8)), times(2, 2, 2, 2, 2, 2, 2, 1))
        return store

    async def test_the_ledger_is_whole(self, whole):
        """What the tests below take something away from."""
        found = read_past(await whole.state()).restored
        assert counters_of(found) == dict(enumerate([4, 4, 3, 3, 3, 2, 2, 1]))
        assert {*await whole.state()} == {
            *("life", "published", "snapshot", "period/0", "period/1"),
            *(f"step/{step}" for step in range(99, 106)),
            *(f"counters/101/{part}" for part in range(3)),
            *("charges/103/0", "charges/104/0", "charges/104/1"),
        }

    async def test_each_deleted_key_is_noticed_and_the_ledger_is_left_as_it_is(self, whole):
        for key, value in (await whole.state()).items():
            await whole.put({key.encode(): None})
            with pytest.raises(UnusableJournalError, match=r"missing\): restore it") as complaint:
                await whole.restored()
            assert "\n" not in str(complaint.value)
            await whole.put({key.encode(): value})
            assert (await whole.restored()).state.closed == 105

    async def test_several_deleted_keys_do_not_hide_one_another(self, whole):
        state = await whole.state()
        del state["life"]  # which the ledger looks at before everything else
        chance = random.Random(1)
        taken = [
            *combinations(state, 2),
            *(chance.sample([*state], chance.randint(3, len(state))) for _ in range(500)),
        ]
        for missing in taken:
            with pytest.raises(ValueError, match=r"missing|charges found"):
                read_past({key: state[key] for key in state.keys() - set(missing)})

    async def test_charges_from_before_the_snapshot_that_came_back_are_refused(self, whole):
        await whole.put({b"charges/100/0": (await whole.state())["charges/104/0"]})
        with pytest.raises(UnusableJournalError, match=r"25 charges found.* records 22"):
            await whole.restored()

    async def test_a_log_without_its_beginning_is_refused_wherever_it_is_cut(self, whole):
        partition = TopicPartition(whole.topics.state, 0)
        records = await records_of(whole.world.bootstrap, partition.topic)
        first = min(record.offset for record in records if record.key == b"life")
        last = max(record.offset for record in records if record.key != b"transaction")
        wrong = {"cleanup.policy": "compact,delete"}
        async with admin_of(whole.world.bootstrap) as admin:
            await admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, partition.topic, wrong)]
            )
            for cut in range(first + 1, last + 1):
                await admin.delete_records({partition: RecordsToDelete(before_offset=cut)})
                with pytest.raises(UnusableJournalError, match="life is missing"):
                    await whole.restored()


class TestWhatIsRead:
    async def test_a_transaction_that_was_aborted_is_as_if_it_had_never_been(self, store):
        await kept(store, entry(3, [1]))
        producer = await in_a_transaction(store)
        await producer.abort_transaction()
        await producer.stop()
        assert (await store.restored()).state.closed == 3

    async def test_a_transaction_that_was_left_open_is_ended_by_the_start(self, store):
        await kept(store, entry(3, [1]))
        producer = await in_a_transaction(store)
        try:
            assert (await store.restored()).state.closed == 3
        finally:
            await producer.stop()

    async def test_an_end_of_nothing_but_marks_is_reached(self, store):
        """Each start and each aborted transaction leaves marks that are no records."""
        await kept(store, entry(3, [1]))
        for _ in range(3):
            producer = await in_a_transaction(store)
            await producer.abort_transaction()
            await producer.stop()
        last = (await records_of(store.world.bootstrap, store.topics.state))[-1].offset
        partition = TopicPartition(store.topics.state, 0)
        end = (await ends_of(Connection((store.world.bootstrap,)), [partition]))[partition]
        assert end - last >= 7, "the end is nothing but what nobody reads"
        assert (await store.restored()).state.closed == 3


async def in_a_transaction(store):
    """A producer of the ledger's identity that wrote nonsense and did not commit it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=store.world.bootstrap, transactional_id=store.world.name
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait(store.topics.state, b"nonsense", b"step/4")
    return producer


async def test_a_compacted_topic_says_the_same(world, monkeypatch):
    for room in (past, kafka):
        monkeypatch.setattr(room, "HISTORY", 5)
    store = KafkaStore(world)
    await store.make(
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="0",
        max_compaction_lag_ms="200",
    )
    async with store.resumed() as ledger:
        for step in range(93, 110):
            period = period_at(step, contributions=10)
            offsets = {"0": step}
            await keep(ledger, entry(step, [step, 9], ["a"], period=period, offsets=offsets))
            if step == 103:
                await ledger.snapshot(users(9, *range(100, 104)), times(4, 1, 1, 1, 1))
    before = await store.restored()
    async with asyncio.timeout(60):
        # Compaction leaves the newest record of each key, and the newest segment as it is.
        while len(await records_of(world.bootstrap, store.topics.state)) > 30:
            await store.put({b"transaction": b"roll the segment"})
            await asyncio.sleep(0.2)
    after = await store.restored()
    assert facts_of(after) == facts_of(before)
    assert counters_of(after) == {**dict.fromkeys(range(100, 110), 1), 9: 10}
    assert (after.state.closed, after.last.offsets) == (109, {"0": 109})
    assert after.published == 109
