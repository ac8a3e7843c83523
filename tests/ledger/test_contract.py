"""What every ledger promises, whatever it is kept in: the same tests for all of them.

What is kept is restored exactly, or the ledger is refused and left as it is.
"""

import random
from contextlib import nullcontext

import msgspec
import pytest

from streamer.errors import MonitorError, UnusableJournalError
from streamer.kafka import ledger as kafka_ledger
from streamer.kafka import ledger_records
from streamer.ledger import file_ledger, file_tables, past
from streamer.ledger.contract import Entry, Life, SnapshotRule
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.privacy.prices import FULL
from streamer.service.resume import check_key
from streamer.stream.decided import Decided
from tests.ledger.making import (
    KEY,
    LIFE,
    OTHER_KEY,
    PERIOD,
    TERMS,
    charges,
    counters_of,
    entry,
    facts_of,
    keep,
    period_at,
    publication_of,
    resting,
    times,
    units_of,
    users,
)
from tests.ledger.stores import FileStore, KafkaStore

HOSTILE = ["", "'; DROP TABLE steps; --", "\0", 'a"b\\', "\u2028\x85\r\n", "🦜" * 400, "%s{}?#"]


@pytest.fixture(params=["file", pytest.param("kafka", marks=pytest.mark.kafka)])
def new_store(request, tmp_path):
    """Makes stores: what a ledger is kept in, and what it publishes to."""
    if request.param == "file":
        return lambda name="ledger": FileStore(tmp_path / name)
    world = request.getfixturevalue("world")
    return lambda name="ledger": KafkaStore(type(world)(world.bootstrap, f"{world.name}-{name}"))


@pytest.fixture
async def store(new_store):
    store = new_store()
    await store.make()
    return store


@pytest.fixture
def small_parts(monkeypatch):
    for room in (file_tables, ledger_records):
        monkeypatch.setattr(room, "CHUNK_USERS", 3)


@pytest.fixture
def short_history(monkeypatch):
    for room in (past, file_ledger, kafka_ledger):
        monkeypatch.setattr(room, "HISTORY", 5)
    monkeypatch.setattr(file_ledger, "_PRUNE_EVERY", 2)


class TestRestoring:
    async def test_a_new_ledger_has_no_past(self, store):
        assert await store.restored() is None
        async with store.resumed() as ledger:
            assert not ledger.snapshot_due
        assert await store.restored() is None

    async def test_a_decision_is_restored_as_it_was(self, store):
        hitters = tuple(Hitter(item, -(2**62)) for item in sorted(HOSTILE))
        decided = Decided(7, 5, PERIOD, hitters, Charges.full(users(0, 1, 2**63, 2**64 - 1)))
        offsets = dict.fromkeys(HOSTILE, 2**63 - 1)
        async with store.resumed() as ledger:
            await keep(ledger, Entry(decided, offsets))
        restored = await store.restored()
        last = restored.last.decided
        assert (last.step, last.first, last.hitters, last.period) == (7, 5, hitters, PERIOD)
        assert dict(restored.last.offsets) == offsets
        assert (restored.state.closed, restored.state.period) == (7, PERIOD)
        assert (restored.published, restored.key) == (7, KEY.fingerprint)
        assert counters_of(restored) == {0: 1, 1: 1, 2**63: 1, 2**64 - 1: 1}
        assert restored.state.charges.users.tolist() == [0, 1, 2**63, 2**64 - 1]

    async def test_a_decision_with_very_many_long_items_is_restored_as_it_was(self, store):
        """Three megabytes of items, some of which take six times the room in JSON."""
        items = [f"{number:05d}" + "\x01" * 70 + "ü" * 200 for number in range(3_000)]
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, [1], ["a"]))
            await ledger.append(entry(4, [2], items))
        for _ in range(2):
            restored = await store.restored()
            assert [hitter.item for hitter in restored.last.decided.hitters] == items
            assert restored.history[-1].hitters == restored.last.decided.hitters
            assert restored.published == 3
        async with store.resumed() as ledger:
            await ledger.publish(publication_of(restored.last.decided))
        results, _ = await store.published()
        assert [each["item"] for each in results if each["step"] == 4] == items
        assert (await store.restored()).published == 4

    async def test_a_run_of_empty_steps_is_restored_as_one(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, [1], ["a"]), entry(9, first=4, offsets={"0": 5, "1": 2}))
        restored = await store.restored()
        assert (restored.last.decided.first, restored.state.closed) == (4, 9)
        assert dict(restored.last.offsets) == {"0": 5, "1": 2}
        assert [(each.first, each.step) for each in restored.history] == [(3, 3), (4, 9)]

    async def test_it_changes_nothing(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5], ["a"]), entry(2, [5, 6]))
            await ledger.snapshot(times({5: 2, 6: 1}))
            await ledger.append(entry(3, [6], ["b"]))
        before = await store.contents()
        first = facts_of(await store.restored())
        async with store.opened() as ledger:
            assert facts_of(await ledger.restore()) == first
            assert facts_of(await ledger.restore()) == first
        assert await store.contents() == before

    async def test_a_ledger_goes_on_after_each_restart(self, store):
        for step in range(1, 5):
            async with store.resumed() as ledger:
                await keep(ledger, entry(step, [5, step + 10], [f"i{step}"]))
        restored = await store.restored()
        assert counters_of(restored) == {5: 4, 11: 1, 12: 1, 13: 1, 14: 1}
        assert [each.step for each in restored.history] == [1, 2, 3, 4]

    async def test_nothing_is_appended_before_it(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]))
        before = await store.contents()
        async with store.opened() as ledger:
            with pytest.raises(MonitorError, match="must be restored before"):
                await ledger.append(entry(2, [5]))
            assert facts_of(await ledger.restore())["closed"] == 1
            assert await store.contents() == before
            await ledger.claim()
            await ledger.append(entry(2, [5]))
        assert counters_of(await store.restored()) == {5: 2}


class TestPublishing:
    async def test_the_first_decision_notes_that_everything_before_it_is_published(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(7, [1], ["a"], first=5))
        restored = await store.restored()
        assert (restored.published, restored.last.decided.step) == (4, 7)

    async def test_no_later_decision_notes_anything(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
            await ledger.append(entry(2, [5], ["a"]))
        assert (await store.restored()).published == 1
        async with store.resumed() as ledger:
            await ledger.append(entry(3, [5], ["b"]))
            await ledger.snapshot(times({5: 2}))
        restored = await store.restored()
        assert (restored.published, restored.last.decided.step) == (1, 3)
        assert restored.last.decided.hitters == (Hitter("b", 10),)

    async def test_what_was_published_is_known(self, store):
        async with store.resumed() as ledger:
            await ledger.append(entry(1))
            await ledger.append(entry(2, [5], ["a"]))
            await ledger.publish(publication_of(entry(2, [5], ["a"]).decided, recorded=0))
            await ledger.append(entry(3))
        assert (await store.restored()).published == 2

    async def test_each_result_is_out_exactly_once(self, store):
        decisions = [
            entry(1, [5], ["a", "b"]),
            entry(4, first=2),
            entry(5, [5], HOSTILE),
            entry(6, [6], ["a"]),
        ]
        publications = [publication_of(each.decided) for each in decisions]
        async with store.resumed() as ledger:
            await keep(ledger, *decisions[:2])
        async with store.resumed() as ledger:
            await keep(ledger, decisions[2])
            await ledger.append(decisions[3])
        # The last one is decided: the next run publishes it.
        restored = await store.restored()
        due = publication_of(restored.last.decided, recorded=restored.published)
        assert due == publications[3]
        async with store.resumed() as ledger:
            await ledger.publish(due)
        assert (await store.restored()).published == 6
        results = [record for each in publications for record in each.results]
        steps = [record for each in publications for record in each.steps]
        assert await store.published() == (msgspec.to_builtins(results), as_written(steps))

    async def test_results_whose_ledger_is_lost_are_refused(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5], ["a"]))
        await store.lose_ledger()
        before = await store.published()
        with pytest.raises(UnusableJournalError, match=r"start.anew.*spends the users' budgets"):
            await store.restored()
        assert await store.published() == before

    async def test_a_ledger_starts_anew_beside_results_if_it_is_told_to(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5], ["a"]))
        await store.lose_ledger()
        async with store.opened(start_anew=True) as ledger:
            assert await ledger.restore() is None
            await ledger.claim()
            await keep(ledger, entry(2, [6], ["b"]))
        assert counters_of(await store.restored()) == {6: 1}
        results, _ = await store.published()
        assert [result["item"] for result in results] == ["a", "b"]


def as_written(records):
    """Step records as they are read: without what is left out if it is None."""
    return [msgspec.json.decode(msgspec.json.encode(record)) for record in records]


class TestHistory:
    async def test_it_is_the_decisions_from_the_oldest_on(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, *(entry(step, [step], [f"i{step}"]) for step in range(5, 15)))
        history = (await store.restored()).history
        assert [decided.step for decided in history] == [*range(5, 15)]
        assert [decided.hitters[0].item for decided in history] == [f"i{i}" for i in range(5, 15)]
        assert all(len(decided.charges) == 0 for decided in history)

    async def test_only_the_last_decisions_are_in_it(self, store, short_history):
        async with store.resumed() as ledger:
            for step in range(1, 14):
                await ledger.append(entry(step, [step]))
        restored = await store.restored()
        assert [decided.step for decided in restored.history] == [9, 10, 11, 12, 13]
        async with store.resumed() as ledger:
            await ledger.append(entry(14, [14]))
        restored = await store.restored()
        assert [decided.step for decided in restored.history] == [10, 11, 12, 13, 14]
        assert counters_of(restored) == dict.fromkeys(range(1, 15), 1)

    async def test_charges_since_the_snapshot_outlive_it(self, store, short_history):
        async with store.resumed() as ledger:
            await keep(ledger, entry(0, [1]), entry(1, [2]))
            for step in range(2, 30):
                await ledger.append(entry(step))
            await ledger.append(entry(30, [1]))
        async with store.resumed():
            pass
        assert counters_of(await store.restored()) == {1: 2, 2: 1}


class TestResting:
    async def test_items_rest_as_far_back_as_the_refresh_reaches(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, *(entry(step, [1], [f"i{step}"]) for step in range(3, 8)))
        assert resting((await store.restored()).state) == {"i5": 9, "i6": 10, "i7": 11}

    async def test_decisions_outlive_the_history_while_their_items_rest(self, store, short_history):
        patient = period_at(0, refresh_steps=20)
        async with store.resumed() as ledger:
            await ledger.append(entry(0, period=patient))
            for step in range(1, 19):
                items = [f"i{step}"] if step in (3, 10) else []
                await ledger.append(entry(step, items=items, period=patient))
        assert resting((await store.restored()).state) == {"i3": 23, "i10": 30}
        async with store.resumed() as ledger:
            await ledger.append(entry(22, first=19, period=patient))
        restored = await store.restored()
        assert resting(restored.state) == {"i10": 30}  # i3 is asked about in step 23
        assert [decided.step for decided in restored.history] == [15, 16, 17, 18, 22]

    async def test_items_rest_as_long_as_the_terms_of_their_report_said(self, store, short_history):
        long, brisk = period_at(0, refresh_steps=30), period_at(100, refresh_steps=2)
        async with store.resumed() as ledger:
            await ledger.append(entry(0, period=long))
            await ledger.append(entry(60, items=["i60"], period=long, first=1))
            await ledger.append(entry(80, items=["i80"], period=long, first=61))
            for step in range(81, 100):
                await ledger.append(entry(step, period=long))
            for step in range(100, 105):
                await ledger.append(entry(step, items=[f"i{step}"], period=brisk))
        # i104 is asked about again in 106: it still rests in 105.
        assert resting((await store.restored()).state) == {"i80": 110, "i104": 106}


class Model:
    """Counters as a dictionary of units."""

    def __init__(self):
        self.period, self.step, self.counters = PERIOD, -1, {}

    def charge(self, period, step, charged):
        if period != self.period:
            self.period, self.counters = period, {}
        self.step = step
        for user, units in charged.items():
            self.counters[user] = self.counters.get(user, 0) + units

    def left(self, period, user):
        spent = self.counters.get(user, 0) if period == self.period else 0
        return TERMS.contributions * FULL - spent


OPERATIONS = ["step", "new period", "snapshot"]


class TestBudgets:
    @pytest.mark.slow
    async def test_they_are_the_last_snapshot_and_all_charges_since(self, new_store, small_parts):
        for seed in range(new_store().PLAYS):
            store = new_store(f"play-{seed}")
            await store.make()
            await self.play(store, random.Random(seed))

    async def play(self, store, chance):
        """Random steps, periods and snapshots, one to three of them in each run."""
        model = Model()
        for _ in range(10):
            async with store.resumed() as ledger:
                number = chance.randint(1, 3)
                for operation in chance.choices(OPERATIONS, [6, 1, 2], k=number):
                    if operation == "snapshot" and model.step >= 0:
                        await ledger.snapshot(charges(model.counters))
                    else:
                        await self.close_a_step(ledger, model, operation, chance)
            restored = await store.restored()
            assert units_of(restored) == model.counters
            assert (restored.state.closed, restored.state.period) == (model.step, model.period)

    async def close_a_step(self, ledger, model, operation, chance):
        step = model.period.end if operation == "new period" else model.step + 1
        period = period_at(step)
        charged = {
            user: chance.randint(1, model.left(period, user))
            for user in chance.sample(range(13), chance.randint(0, 8))
            if model.left(period, user)
        }
        await ledger.append(entry(step, charged, first=model.step + 1))
        model.charge(period, step, charged)

    async def test_each_user_has_the_units_of_its_charges(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, {5: 7, 2**64 - 1: 50_000}), entry(2, {0: 1, 5: 3}))
        assert units_of(await store.restored()) == {0: 1, 5: 10, 2**64 - 1: 50_000}
        async with store.resumed() as ledger:
            await ledger.snapshot(charges({0: 1, 5: 10, 2**64 - 1: 50_000}))
            await keep(ledger, entry(3, {4: 2, 5: 1}))
        assert units_of(await store.restored()) == {0: 1, 4: 2, 5: 11, 2**64 - 1: 50_000}

    async def test_a_new_period_forgets_those_of_the_last(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(98, [5]), entry(99, [5]), entry(100, [9]))
        restored = await store.restored()
        assert (restored.state.period, counters_of(restored)) == (period_at(100), {9: 1})

    async def test_a_snapshot_does_not_outlive_its_period(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]), entry(2, [5]))
            await ledger.snapshot(times({5: 2}))
            await ledger.append(entry(100, [9], first=3))
        assert counters_of(await store.restored()) == {9: 1}

    async def test_a_period_that_begins_with_empty_steps_is_a_new_one(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, [1, 2]), entry(111, first=4))
        assert counters_of(await store.restored()) == {}

    async def test_a_period_that_begins_after_a_restart_is_a_new_one(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(99, [1, 2]))
        async with store.resumed() as ledger:
            await keep(ledger, entry(100, [5]))
        assert counters_of(await store.restored()) == {5: 1}


class TestSnapshots:
    async def test_one_of_nobody_is_restored(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(3))
            await ledger.snapshot(times({}))
        assert counters_of(await store.restored()) == {}

    async def test_one_that_was_restored_is_replaced_by_the_next(self, store, small_parts):
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, range(7)))
            await ledger.snapshot(times(dict.fromkeys(range(7), 1)))
        async with store.resumed() as ledger:
            await keep(ledger, entry(4, [1]))
            await ledger.snapshot(times({**dict.fromkeys(range(7), 1), 1: 2}))
        assert counters_of(await store.restored()) == {**dict.fromkeys(range(7), 1), 1: 2}

    async def test_what_is_due_is_known_again_after_a_restart(self, store, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, range(100)))
            assert ledger.snapshot_due
            await ledger.snapshot(times(dict.fromkeys(range(100), 1)))
            assert not ledger.snapshot_due
            await ledger.append(entry(2, range(50)))
        async with store.resumed() as ledger:
            assert not ledger.snapshot_due
            await ledger.append(entry(3, range(50, 51)))
            assert ledger.snapshot_due
        async with store.resumed() as ledger:
            assert ledger.snapshot_due
            await ledger.append(entry(100, [], first=4))
            assert not ledger.snapshot_due
            await ledger.append(entry(101, [1]))
            assert ledger.snapshot_due  # there is none in this period


class TestSnapshotRule:
    def test_one_is_due_when_charges_take_half_the_room_of_the_counters(self, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        rule = SnapshotRule()
        assert not rule.due
        rule.taken(2000)
        rule.charged(1000)
        assert not rule.due
        rule.charged(1)
        assert rule.due
        rule.taken(3000)
        assert not rule.due

    def test_a_new_period_begins_without_charges_and_without_a_snapshot(self, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        rule = SnapshotRule()
        rule.taken(1600)
        rule.charged(1001)
        rule.forget()
        assert not rule.due
        rule.charged(1)
        assert rule.due

    def test_a_small_ledger_takes_none(self):
        rule = SnapshotRule()
        rule.charged(SnapshotRule.LEAST_BYTES // 10)
        assert not rule.due
        rule.charged(1)
        assert rule.due


class TestKey:
    async def test_another_one_is_refused_while_anybody_is_charged(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]))
        restored = await store.restored(key=OTHER_KEY)
        assert restored.key == KEY.fingerprint
        check_key(restored, KEY)
        with pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, OTHER_KEY)

    async def test_another_one_is_taken_up_while_nobody_is(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
        check_key(await store.restored(key=OTHER_KEY), OTHER_KEY)
        async with store.resumed(key=OTHER_KEY) as ledger:
            await keep(ledger, entry(2, [5]))
        restored = await store.restored(key=OTHER_KEY)
        assert restored.key == OTHER_KEY.fingerprint
        with pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, KEY)

    @pytest.mark.parametrize(("step", "taken"), [(98, False), (99, True)])
    async def test_another_one_is_taken_up_when_the_period_is_over(self, store, step, taken):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]), entry(step, first=2))
        restored = await store.restored(key=OTHER_KEY)
        assert restored.state.period.end == 100
        with nullcontext() if taken else pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, OTHER_KEY)

    async def test_that_of_a_period_is_that_of_its_charges(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(99, [5]))
        async with store.resumed(key=OTHER_KEY) as ledger:
            await ledger.append(entry(100, [5]))
        assert (await store.restored()).key == OTHER_KEY.fingerprint


class TestRefusals:
    """Budgets would be spent twice if a ledger were believed that is not whole."""

    @pytest.fixture
    async def whole(self, store, small_parts):
        """A snapshot in parts, quiet steps and charges since; all but the last is published."""
        async with store.resumed() as ledger:
            await keep(ledger, entry(0, [7]), entry(1, range(7)))
            await ledger.snapshot(times(dict.fromkeys(range(8), 1)))
            await keep(ledger, entry(2, [5]), entry(3), entry(4, [6], ["a"]))
            await ledger.append(entry(5, [5]))
        assert counters_of(await store.restored()) == {**dict.fromkeys(range(8), 1), 5: 3, 6: 2}
        return store

    @pytest.mark.parametrize(
        ("what", "which"),
        [
            *(("step", step) for step in (1, 2, 3, 4, 5)),
            *(("charges", step) for step in (2, 4, 5)),
            *(("part of the snapshot", part) for part in range(3)),
            *((what, None) for what in ("all decisions", "snapshot", "published", "periods")),
        ],
    )
    async def test_whatever_is_missing_is_noticed(self, whole, what, which):
        await whole.lose(what, which)
        before = await whole.contents()
        with pytest.raises(UnusableJournalError, match=r"cannot be (read|used) \(") as refusal:
            await whole.restored()
        assert "\n" not in str(refusal.value)
        assert await whole.contents() == before

    @pytest.mark.parametrize("items", [(), ("a",)])
    async def test_an_older_copy_is_refused(self, store, items):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]))
        older = await store.copy()
        async with store.resumed() as ledger:
            await keep(ledger, entry(2, [5], items))
        newest = await store.copy()
        await store.bring_back(older)
        before = await store.contents()
        with pytest.raises(UnusableJournalError, match="restore"):
            await store.restored()
        with pytest.raises(UnusableJournalError, match="restore"):
            await store.restored(start_anew=True)
        assert await store.contents() == before
        await store.bring_back(newest)
        assert (await store.restored()).published == 2

    @pytest.mark.parametrize("step", [0, 1, 3])
    async def test_charges_are_missed_from_the_first_step_on(self, store, step):
        async with store.resumed() as ledger:
            await keep(ledger, *(entry(each, [each]) for each in range(4)))
        await store.lose("charges", step)
        with pytest.raises(UnusableJournalError, match=r"charges of .* are missing"):
            await store.restored()

    async def test_the_last_decision_that_is_published_is_missed(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1), entry(2), entry(3))
        await store.lose("step", 3)
        with pytest.raises(UnusableJournalError, match="step 3 is missing"):
            await store.restored()

    # Nobody is charged, or all charges are in the snapshot: nothing else shows the steps.
    @pytest.mark.parametrize("charged", [[], [5]])
    async def test_losing_all_decisions_does_not_make_it_new(self, store, charged):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, charged))
            await ledger.snapshot(times(dict.fromkeys(charged, 1)))
        await store.lose("all decisions")
        with pytest.raises(UnusableJournalError, match="all decisions are missing"):
            await store.restored()

    @pytest.mark.parametrize(
        ("life", "setting"),
        [
            (Life(1000, LIFE.epoch_ms), "step_seconds"),
            (Life(LIFE.length_ms, 7000), "epoch"),
            (Life(LIFE.length_ms, 1_767_225_600_001), "epoch"),
        ],
    )
    async def test_time_is_cut_into_steps_once_and_for_all(self, store, life, setting):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]))
        before = await store.contents()
        with pytest.raises(UnusableJournalError, match=f"created with .*{setting}.* is fixed"):
            await store.restored(life=life)
        assert await store.contents() == before
        assert counters_of(await store.restored()) == {5: 1}
