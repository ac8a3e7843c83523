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
from streamer.kafka import ledger_records, steps_topic
from streamer.kafka.connection import Connection
from streamer.kafka.ledger_restore import read_past
from streamer.kafka.startup import topic_needs
from streamer.kafka.transactions import ends_of
from streamer.ledger import past
from streamer.ledger.contract import Life
from streamer.service.kafka_service import peek_journal
from streamer.stream.timing import StepTiming
from tests.kafka.harness import Record, admin_of, produce, records_of
from tests.ledger.making import (
    counters_of,
    entry,
    facts_of,
    keep,
    period_at,
    publication_of,
    resting,
    times,
)
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
            await ledger.snapshot(times({1: 1, 2: 1}))
            await ledger.append(entry(100, first=4))
        assert kinds(await store.state()) == {"life", "period", "step", "published"}

    async def test_each_part_is_small_and_what_led_to_it_is_deleted(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, range(7)))
            await ledger.snapshot(times(dict.fromkeys(range(7), 1)))
            assert {*await store.state()} == {
                *("life", "published", "period/0", "step/3", "snapshot"),
                *("counters/3/0", "counters/3/1", "counters/3/2"),
            }
            await ledger.append(entry(4, range(4)))
            await ledger.snapshot(times({1: 1, 2: 1}))
        assert {*await store.state()} == {
            *("life", "published", "period/0", "step/3", "step/4", "snapshot", "counters/4/0")
        }

    async def test_a_snapshot_that_was_restored_is_deleted_by_the_next(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, range(7)))
            await ledger.snapshot(times(dict.fromkeys(range(7), 1)))
        async with store.resumed() as ledger:
            await ledger.append(entry(4, [1]))
            await ledger.snapshot(times({**dict.fromkeys(range(7), 1), 1: 2}))
        assert "counters/3/0" not in await store.state()

    async def test_charges_since_are_added_to_the_part_that_their_users_are_in(self, store):
        """Before the first user of all, between parts, behind the last; known users and new."""
        chance = random.Random(1)
        people = range(100, 160)
        expected = dict.fromkeys(people[::2], 1)
        async with store.resumed() as ledger:
            await ledger.append(entry(3, [*expected]))
            await ledger.snapshot(times(dict.fromkeys(expected, 1)))
            for step in range(4, 10):
                charged = chance.sample(range(90, 170), 25)
                expected |= {user: expected.get(user, 0) + 1 for user in charged}
                await ledger.append(entry(step, charged))
        restored = await store.restored()
        assert counters_of(restored) == expected
        assert restored.state.charges.users.tolist() == sorted(expected)


class TestSplit:
    """Decisions whose hitters take several records."""

    ITEMS = tuple(f"item {number}" for number in range(20))

    @pytest.fixture
    def small(self, monkeypatch):
        monkeypatch.setattr(ledger_records, "CHUNK_BYTES", 200)

    async def test_parts_are_kept_in_the_transaction_of_their_step(self, store, small):
        async with store.resumed() as ledger:
            await ledger.append(entry(3, [1], self.ITEMS))
        parts = [key for key in await store.state() if key.startswith("hitters/")]
        assert parts == [f"hitters/3/{part}" for part in range(len(parts))]
        assert len(parts) > 2
        keys = [key.decode() for _, _, key, _ in await store.contents()]
        claimed, appended = (place for place, key in enumerate(keys) if key == "transaction")
        assert all(claimed < keys.index(key) < appended for key in ("step/3", *parts))

    async def test_parts_are_deleted_with_their_step(self, store, small, monkeypatch):
        for room in (past, kafka):
            monkeypatch.setattr(room, "HISTORY", 2)
        await kept(store, entry(3, [1], self.ITEMS, period=period_at(3, refresh_steps=1)))
        for step in (4, 5):  # after restarts: what is known of them is restored
            await kept(store, entry(step, period=period_at(step, refresh_steps=1)))
        assert kinds(await store.state()) == {"life", "published", "period", "step", "charges"}

    async def test_each_missing_part_is_noticed(self, store, small):
        await kept(store, entry(3, [1], self.ITEMS))
        state = await store.state()
        for key in [key for key in state if key.startswith("hitters/")]:
            await store.put({key.encode(): None})
            with pytest.raises(UnusableJournalError, match=rf"\({key} is missing\): restore it"):
                await store.restored()
            await store.put({key.encode(): state[key]})
        assert len((await store.restored()).last.decided.hitters) == len(self.ITEMS)

    async def test_version_0_1_0_refuses_what_it_would_read_in_part(self, store, small):
        await kept(store, entry(3, [1], self.ITEMS))
        entries = msgspec.json.decode((await store.state())["step/3"])
        assert entries["hitters"] is None, "that version wants an array"

    async def test_topics_whose_limits_are_just_large_enough_take_all_there_can_be(self, world):
        """Thousands of the longest items, all of which JSON escapes, and full parts of users."""
        needs = {need.setting: need for need in topic_needs(world.settings().kafka, 1024)}
        state, hitters = needs["kafka.state_topic"], needs["kafka.hitters_topic"]
        store = KafkaStore(world)
        await store.make(
            hitters={"max_message_bytes": str(hitters.message_bytes)},
            max_message_bytes=str(state.message_bytes),
        )
        items = [f"{number:04d}" + "\x01" * 1020 for number in range(2_000)]
        people = range(2**64 - 120_000, 2**64)
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, people, items))
            await ledger.snapshot(times(dict.fromkeys(people, 1)))
        restored = await store.restored()
        assert [hitter.item for hitter in restored.last.decided.hitters] == items
        assert len(restored.state.charges.users) == len(people)
        assert len((await store.published())[0]) == len(items)


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
        state = (await store.restored()).state
        assert resting(state) == {f"i{step}": step + 6 for step in range(7, 12)}


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

    async def test_another_identity_names_the_setting(self, store):
        await kept(store, entry(3, [1]))
        message = r"created with another kafka\.transactional_id .*, not other\): .*; use the old"
        with pytest.raises(UnusableJournalError, match=message):
            await store.restored(identity="other")
        assert (await store.restored()).state.closed == 3

    async def test_another_cluster_names_the_setting(self, store):
        await kept(store, entry(3, [1]))
        life = msgspec.json.decode((await store.state())["life"])
        await store.put({b"life": msgspec.json.encode(life | {"cluster_id": "elsewhere"})})
        message = r"created with another kafka\.bootstrap_servers \(cluster_id elsewhere, not "
        with pytest.raises(UnusableJournalError, match=message):
            await store.restored()

    async def test_a_look_at_it_does_not_ask_for_its_identity(self, store):
        await kept(store, entry(3, [1]))
        topics = {f"{kind}_topic": getattr(store.topics, kind) for kind in ("state", "events")}
        settings = store.world.settings(
            stream={"step_seconds": 60}, kafka={"transactional_id": "other", **topics}
        )
        restored, _ = await peek_journal(Connection((store.world.bootstrap,)), settings)
        assert restored.state.closed == 3

    async def test_a_newer_format(self, store):
        await kept(store, entry(3, [1]))
        await store.put({b"life": msgspec.json.encode({"format": 3, "all": "new"})})
        with pytest.raises(
            UnusableJournalError, match="has format 3, but this version supports formats 1 and 2"
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


class TestIdentity:
    async def test_one_without_ids_is_accepted_and_gets_them_with_the_next_decision(self, store):
        """As version 0.1.0 wrote them."""
        await kept(store, entry(3, [1]))
        whole = msgspec.json.decode((await store.state())["life"])
        assert whole["transactional_id"] == store.world.name
        bare = {name: whole[name] for name in ("format", "length_ms", "epoch_ms", "events_topic")}
        await store.put({b"life": msgspec.json.encode(bare)})
        async with store.resumed() as ledger:
            assert msgspec.json.decode((await store.state())["life"]) == bare
            await ledger.append(entry(4, [1]))
        assert msgspec.json.decode((await store.state())["life"]) == whole
        before = len(await store.contents())
        async with store.resumed() as ledger:
            await ledger.append(entry(5))
        assert len(await store.contents()) == before + 3, "two markers and a step"


class TestBehind:
    """An older copy of the state topic would decide again what was published."""

    @pytest.fixture
    async def older(self, store):
        """Its steps topic holds step 4, of which it knows nothing."""
        await kept(store, entry(3, [1]))
        copy = await store.copy()
        await kept(store, entry(4, [1], ["a"]))
        await store.bring_back(copy)
        return store

    async def refusal(self, store, **changes):
        with pytest.raises(UnusableJournalError) as refusal:
            await store.restored(**changes)
        assert "\n" not in str(refusal.value)
        return str(refusal.value)

    async def test_the_sentence_says_what_to_do(self, older):
        sentence = await self.refusal(older)
        topics = older.topics
        assert sentence.startswith(
            f"the state topic {topics.state} is behind what was published: it ends with step 3, "
            f"but {topics.steps} holds step 4"
        )
        assert "name a new, empty topic in kafka.state_topic and set kafka.start_anew" in sentence

    async def test_to_start_anew_takes_an_empty_one(self, older):
        assert "is behind" in await self.refusal(older, start_anew=True)
        await older.lose_ledger()
        assert await older.restored(start_anew=True) is None

    async def test_one_that_is_decided_but_not_published_in_the_copy_is_behind_too(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, [1]))
            await ledger.append(entry(4, [1], ["a"]))
            copy = await store.copy()
            await ledger.publish(publication_of(entry(4, [1], ["a"]).decided))
        assert (await store.restored()).published == 4
        await store.bring_back(copy)
        assert "it ends with step 3" in await self.refusal(store)

    async def test_marks_and_aborted_records_behind_the_last_step_do_not_hide_it(
        self, older, monkeypatch
    ):
        monkeypatch.setattr(steps_topic, "_LOOK_BACK", 2)
        for _ in range(5):
            producer = await in_a_transaction(older, older.topics.steps, b"4", b"nonsense")
            await producer.abort_transaction()
            await producer.stop()
        assert "holds step 4" in await self.refusal(older)

    async def test_nor_do_records_of_somebody_else(self, older, monkeypatch):
        monkeypatch.setattr(steps_topic, "_LOOK_BACK", 2)
        foreign = [None, b"", b"\xff\xfe", b"[]", b'{"step":9}', *[b"more"] * 9]
        records = [Record(value, key=b"foreign") for value in foreign]
        await produce(older.world.bootstrap, older.topics.steps, records)
        assert "holds step 4" in await self.refusal(older)

    async def test_a_step_that_was_aborted_was_not_published(self, store):
        await kept(store, entry(3, [1]))
        later = msgspec.json.encode(publication_of(entry(9).decided, 8).steps[0])
        producer = await in_a_transaction(store, store.topics.steps, b"9", later)
        await producer.abort_transaction()
        await producer.stop()
        assert (await store.restored()).published == 3

    async def test_the_latest_of_several_partitions_counts(self, world):
        store = KafkaStore(world)
        await store.make(steps_partitions=3)
        await kept(store, entry(3, [1]))
        copy = await store.copy()
        await kept(store, *(entry(step) for step in range(4, 20)))
        records = await records_of(world.bootstrap, store.topics.steps)
        assert len({record.partition for record in records}) == 3
        assert (await store.restored()).published == 19
        await store.bring_back(copy)
        assert "holds step 19" in await self.refusal(store)

    async def test_a_steps_topic_that_retention_has_emptied_says_nothing(self, older):
        partition = TopicPartition(older.topics.steps, 0)
        async with admin_of(older.world.bootstrap) as admin:
            await admin.delete_records({partition: RecordsToDelete(before_offset=-1)})
        assert (await older.restored()).published == 3

    async def test_steps_of_another_life_say_nothing(self, store):
        """A stream that was started anew with longer steps has lower numbers."""
        await kept(store, entry(3, [1]))
        seconds = publication_of(entry(400).decided, 399, StepTiming(1_000)).steps[0]
        odd = msgspec.structs.replace(seconds, step=10**30, end="whenever")
        for each in (seconds, odd):
            value = Record(msgspec.json.encode(each), key=b"400")
            await produce(store.world.bootstrap, store.topics.steps, [value])
            assert (await store.restored()).published == 3


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
                    await ledger.snapshot(times({**dict.fromkeys(range(7), 2), 7: 1}))
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
        with pytest.raises(UnusableJournalError, match=r"125 units of charges found.* records 110"):
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


async def in_a_transaction(store, topic=None, key=b"step/4", value=b"nonsense"):
    """A producer of the ledger's identity that wrote something and did not commit it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=store.world.bootstrap, transactional_id=store.world.name
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait(topic or store.topics.state, value, key)
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
                await ledger.snapshot(times({9: 4, **dict.fromkeys(range(100, 104), 1)}))
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
