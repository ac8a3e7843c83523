"""The embedded journal: what is put in is had back, and nothing else is let in."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.errors import JournalWriteError, UnusableJournalError
from streamer.ledger import sqlite, sqlite_restore
from streamer.ledger.contract import Entry, Life, SnapshotRule
from streamer.ledger.directory import DATABASE, KEY, LOCK, JournalDirectory
from streamer.ledger.file_ledger import FileLedger, peek
from streamer.ledger.file_tables import FORMAT, _crc
from streamer.monitors.seam import Hitter
from streamer.privacy.terms import Method, Neighbours
from streamer.service.resume import check_key
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.pseudonyms import Pseudonyms

LIFE = Life(60_000, 0)
OLD, NEW = Pseudonyms(b"o" * 32), Pseudonyms(b"n" * 32)
TERMS = Terms(
    *(10.0, 0.01, 3, Neighbours.REPLACE, Method.EXACT),
    *(100, 4, 0.5, 10),
)
PERIOD = Period.containing(0, TERMS)
HOSTILE = ["", "'; DROP TABLE steps; --", "\0", 'a"b\\', "\u2028\x85\r\n", "🦜" * 400, "%s{}?#"]
ROOT = Path(__file__).parent.parent.parent


def period_at(step, **terms):
    """The period of a step, with other terms perhaps; planning it anew would be slow."""
    number = step // 100
    return replace(PERIOD, number=number, first=100 * number, terms=replace(TERMS, **terms))


def users(*numbers):
    return np.array(sorted(numbers), dtype=np.uint64)


def entry(step, charged=(), hitters=(), *, period=PERIOD, first=None, offsets=None):
    told = tuple(Hitter(item, 10) for item in hitters)
    first = step if first is None else first
    return Entry(Decided(step, first, period, told, users(*charged)), offsets or {})


async def begin(path, *entries, key=OLD):
    """A journal with these decisions, all of them published."""
    journal = FileLedger(path, LIFE, key.fingerprint)
    if await journal.restore() is None:
        await journal.note_published(Published(entries[0].decided.first - 1))
    for each in entries:
        await journal.append(each)
        await journal.note_published(Published(each.decided.step))
    return journal


async def had_back(path, key=OLD):
    journal = FileLedger(path, LIFE, key.fingerprint)
    try:
        return await journal.restore()
    finally:
        await journal.close()


def counters_of(restored):
    state = restored.state
    return dict(zip(state.users.tolist(), state.charges.tolist(), strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / DATABASE


class TestRoundTrip:
    async def test_a_new_journal_has_no_past(self, path):
        assert await had_back(path) is None
        assert await had_back(path) is None

    async def test_a_look_at_a_new_journal_finds_how_time_is_cut_and_no_past(self, path):
        assert await had_back(path) is None
        assert peek(path) == (LIFE, None)

    async def test_a_decision_is_had_back_as_it_was(self, path):
        hitters = tuple(Hitter(item, -(2**62)) for item in sorted(HOSTILE))
        decided = Decided(7, 5, PERIOD, hitters, users(0, 1, 2**64 - 1))
        offsets = dict.fromkeys(HOSTILE, 2**63 - 1)
        journal = await begin(path, Entry(decided, offsets))
        await journal.close()
        restored = await had_back(path)
        last = restored.last.decided
        assert (last.step, last.first, last.hitters, last.period) == (7, 5, hitters, PERIOD)
        assert dict(restored.last.offsets) == offsets
        assert restored.state.closed == 7
        assert restored.state.period == PERIOD
        assert restored.key == OLD.fingerprint
        assert counters_of(restored) == {0: 1, 1: 1, 2**64 - 1: 1}

    async def test_what_is_published_is_noted_with_the_outputs(self, path):
        journal = FileLedger(path, LIFE, OLD.fingerprint)
        await journal.note_published(Published(4, {"/out/hitters": 0}))
        await journal.append(entry(5))
        await journal.close()
        restored = await had_back(path)
        assert restored.published == Published(4, {"/out/hitters": 0})
        journal = FileLedger(path, LIFE, OLD.fingerprint)
        noted = Published(5, {f"/out/{name}": 2**40 for name in HOSTILE})
        await journal.note_published(noted)
        await journal.close()
        assert (await had_back(path)).published == noted

    async def test_a_journal_in_memory_is_one_too(self):
        journal = await begin(None, entry(1, [5], ["a"]), entry(2, [5, 6]))
        restored = await journal.restore()
        assert counters_of(restored) == {5: 2, 6: 1}
        await journal.snapshot(restored.state.users, restored.state.charges)
        assert counters_of(await journal.restore()) == {5: 2, 6: 1}
        assert [decided.step for decided in await journal.history(9)] == [1, 2]
        await journal.close()

    async def test_a_directory_may_have_any_name(self, tmp_path):
        directory = tmp_path / "a?mode=memory#100%25 'x'"
        directory.mkdir()
        await (await begin(directory / DATABASE, entry(3))).close()
        assert (directory / DATABASE).is_file()
        assert (await had_back(directory / DATABASE)).state.closed == 3
        assert peek(directory / DATABASE)[1].state.closed == 3


class TestDurability:
    """What no test without a power cut can see happen is at least asked for."""

    async def test_a_commit_waits_for_the_disk_and_is_in_the_one_file(self, path):
        journal = await begin(path, entry(1))
        pragma = {
            name: journal._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        }
        assert pragma == {"synchronous": 2, "journal_mode": "truncate"}
        await journal.close()

    def test_a_new_journal_has_its_name_on_the_disk(self, path, monkeypatch):
        there = []
        monkeypatch.setattr(sqlite, "sync_directory", lambda at: there.append(os.listdir(at)))
        FileLedger(path, LIFE, OLD.fingerprint)._database.close()
        FileLedger(path, LIFE, OLD.fingerprint)._database.close()
        assert there == [[DATABASE]]


class Model:
    """Counters as a dictionary."""

    def __init__(self):
        self.period, self.step, self.counters = PERIOD, -1, {}

    def charge(self, period, step, who):
        if period != self.period:
            self.period, self.counters = period, {}
        self.step = step
        for user in who:
            self.counters[user] = self.counters.get(user, 0) + 1

    def active(self, who):
        return {user for user in who if self.counters.get(user, 0) < TERMS.contributions}


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.sets(st.integers(0, 12), max_size=8)),
        st.tuples(st.just("new period"), st.sets(st.integers(0, 12), max_size=8)),
        st.tuples(st.just("snapshot"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=25,
)


class TestCounters:
    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(operations=OPERATIONS)
    def test_they_are_the_last_snapshot_and_all_charges_since(self, operations, monkeypatch):
        monkeypatch.setattr("streamer.ledger.file_tables.CHUNK_USERS", 3)
        asyncio.run(self.play(operations))

    async def play(self, operations):
        model = Model()
        with TemporaryDirectory() as name:
            path = Path(name) / DATABASE
            journal = await begin(path, entry(0))
            model.charge(PERIOD, 0, ())
            for operation, who in operations:
                if operation in ("step", "new period"):
                    step = model.step + 1 if operation == "step" else model.period.end
                    period = period_at(step)
                    charged = who if period != model.period else model.active(who)
                    await journal.append(entry(step, charged, period=period, first=model.step + 1))
                    model.charge(period, step, charged)
                elif operation == "snapshot":
                    kept = sorted(model.counters.items())
                    await journal.snapshot(
                        np.array([user for user, _ in kept], dtype=np.uint64),
                        np.array([times for _, times in kept], dtype=np.uint16),
                    )
                else:
                    await journal.close()
                    journal = FileLedger(path, LIFE, OLD.fingerprint)
                restored = await journal.restore()
                assert counters_of(restored) == model.counters
                assert (restored.state.closed, restored.state.period) == (model.step, model.period)
            await journal.close()

    async def test_a_new_period_forgets_those_of_the_last(self, path):
        late = period_at(100)
        journal = await begin(path, entry(1, [5]), entry(2, [5]))
        await journal.snapshot(users(5), np.array([2], dtype=np.uint16))
        await journal.append(entry(100, [9], period=late, first=3))
        await journal.close()
        assert counters_of(await had_back(path)) == {9: 1}

    @pytest.mark.parametrize("table", ["charges", "snapshot", "counters", "periods", "published"])
    async def test_a_row_that_is_missing_is_noticed(self, path, table):
        journal = await begin(path, entry(1, [5]), entry(2, [5]))
        await journal.snapshot(users(5), np.array([2], dtype=np.uint16))
        await journal.append(entry(3, [5]))
        await journal.close()
        alter(path, f"DELETE FROM {table}")
        with pytest.raises(UnusableJournalError):
            await had_back(path)

    @pytest.mark.parametrize("step", [2, 3, 4])
    async def test_a_decision_that_is_missing_is_noticed(self, path, step):
        journal = await begin(path, entry(1, [5]), entry(2), entry(3, [6]))
        await journal.append(entry(4, [5]))
        await journal.close()
        alter(path, f"DELETE FROM steps WHERE step = {step}")
        with pytest.raises(UnusableJournalError):
            await had_back(path)

    @pytest.mark.parametrize("step", [0, 1, 3])
    async def test_charges_that_are_missing_are_noticed_from_the_first_step_on(self, path, step):
        journal = await begin(path, *(entry(each, [each]) for each in range(4)))
        await journal.close()
        alter(path, f"DELETE FROM charges WHERE step = {step}")
        with pytest.raises(UnusableJournalError, match=f"charges of step {step} are missing"):
            await had_back(path)

    async def test_charges_of_the_period_before_are_not_missed(self, path):
        late = period_at(100)
        entries = entry(98, [5]), entry(99, [5]), entry(100, [9], period=late)
        await (await begin(path, *entries)).close()
        assert counters_of(await had_back(path)) == {9: 1}

    @pytest.mark.parametrize("chunk", [0, 1, 2])
    async def test_a_part_of_a_snapshot_that_is_missing_is_noticed(self, path, chunk, monkeypatch):
        monkeypatch.setattr("streamer.ledger.file_tables.CHUNK_USERS", 3)
        journal = await begin(path, entry(1, range(7)))
        await journal.snapshot(users(*range(7)), np.ones(7, dtype=np.uint16))
        await journal.close()
        alter(path, f"DELETE FROM counters WHERE chunk = {chunk}")
        with pytest.raises(UnusableJournalError, match="a part of the counters is missing"):
            await had_back(path)

    @pytest.mark.parametrize(
        ("table", "change"),
        [
            ("periods", "key = 'another'"),
            ("steps", "offsets = '{}'"),
            ("published", "outputs = '{\"/out\": 1}'"),
            ("charges", "users = x'0700000000000000'"),
            ("snapshot", "step = 1"),
            ("counters", "charges = x'0100'"),
        ],
    )
    async def test_a_row_that_is_another_is_noticed(self, path, table, change):
        journal = await begin(path, entry(1, [5]), entry(2, [5]))
        await journal.snapshot(users(5), np.array([2], dtype=np.uint16))
        await journal.append(entry(3, [5], offsets={"p": 4}))
        await journal.close()
        alter(path, f"UPDATE {table} SET {change}")
        with pytest.raises(UnusableJournalError, match=f"a checksum in {table} is wrong"):
            await had_back(path)

    def test_checksums_are_those_of_the_format(self):
        # Journals that are out there have them: another rule is another FORMAT.
        assert _crc([12, "a:é", b"\0"]) == zlib.crc32("int:2:12str:4:a:ébytes:1:\0".encode())

    # Nobody is charged, or all charges are in the snapshot: nothing else tells of the steps.
    @pytest.mark.parametrize("charged", [[], [5]])
    async def test_losing_all_decisions_does_not_make_it_new(self, path, charged):
        journal = await begin(path, entry(1, charged))
        await journal.snapshot(users(*charged), np.ones(len(charged), dtype=np.uint16))
        await journal.close()
        alter(path, "DELETE FROM steps")
        with pytest.raises(UnusableJournalError, match="all decisions are missing"):
            await had_back(path)

    async def test_losing_the_last_decision_that_is_published_is_noticed(self, path):
        await (await begin(path, entry(1), entry(2), entry(3))).close()
        alter(path, "DELETE FROM steps WHERE step = 3")
        with pytest.raises(UnusableJournalError, match="step 3 is missing"):
            await had_back(path)


def alter(path, statement):
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


class TestSnapshots:
    def test_one_is_due_when_charges_take_half_the_room_of_the_counters(self, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        rule = SnapshotRule()
        assert not rule.due
        rule.taken(1600)
        rule.charged(1000)
        assert not rule.due
        rule.charged(1)
        assert rule.due
        rule.taken(2600)
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

    def test_a_small_journal_takes_none(self):
        rule = SnapshotRule()
        rule.charged(SnapshotRule.LEAST_BYTES // 8)
        assert not rule.due
        rule.charged(1)
        assert rule.due

    async def test_what_is_due_is_known_again_after_a_restart(self, path, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        journal = await begin(path, entry(1, range(100)))
        assert journal.snapshot_due
        await journal.snapshot(users(*range(100)), np.ones(100, dtype=np.uint16))
        assert not journal.snapshot_due
        await journal.append(entry(2, range(63)))
        assert journal.snapshot_due
        await journal.close()
        journal = FileLedger(path, LIFE, OLD.fingerprint)
        await journal.restore()
        assert journal.snapshot_due
        await journal.append(entry(100, [1], period=period_at(100), first=3))
        assert journal.snapshot_due  # nothing was snapshot in this period
        await journal.close()

    async def test_the_room_of_what_it_replaces_is_given_back(self, path):
        journal = await begin(path, *(entry(step, range(20_000)) for step in range(3)))
        before = path.stat().st_size
        await journal.snapshot(users(*range(20_000)), np.full(20_000, 3, dtype=np.uint16))
        assert path.stat().st_size < before / 2 + 40_000
        await journal.close()


class TestHistory:
    async def test_it_is_the_last_decisions_from_the_oldest_on(self, path):
        journal = await begin(path, *(entry(step, [step], [f"i{step}"]) for step in range(5)))
        history = await journal.history(3)
        assert [decided.step for decided in history] == [2, 3, 4]
        assert [decided.hitters[0].item for decided in history] == ["i2", "i3", "i4"]
        assert all(len(decided.charged) == 0 for decided in history)
        await journal.close()

    @pytest.fixture
    def short(self, monkeypatch):
        for room in (sqlite, sqlite_restore):
            monkeypatch.setattr(room, "HISTORY", 5)
        monkeypatch.setattr(sqlite, "_PRUNE_EVERY", 2)

    async def test_old_decisions_and_their_periods_are_forgotten(self, path, short):
        journal = await begin(path, entry(0))
        for step in range(1, 350):
            await journal.append(entry(step, period=period_at(step)))
        assert len(await journal.history(1000)) <= 10
        await journal.close()
        database = sqlite3.connect(path)
        assert database.execute("SELECT number FROM periods").fetchall() == [(3,)]
        database.close()

    async def test_charges_since_the_snapshot_are_never_forgotten(self, path, short):
        journal = await begin(path, entry(0, [1]), entry(1, [2]))
        for step in range(2, 60):
            await journal.append(entry(step))
        await journal.append(entry(60, [1]))
        await journal.close()
        assert counters_of(await had_back(path)) == {1: 2, 2: 1}

    async def test_items_that_rest_are_never_forgotten(self, path, short):
        period = period_at(0, refresh_steps=40)
        journal = await begin(path, entry(0, period=period))
        for step in range(1, 36):
            item = [f"i{step}"] if step in (3, 20) else []
            await journal.append(entry(step, hitters=item, period=period))
        await journal.close()
        assert dict((await had_back(path)).state.resting) == {"i3": 43, "i20": 60}

    async def test_items_rest_as_long_as_the_terms_of_their_report_said(self, path, short):
        long, brisk = period_at(0, refresh_steps=30), period_at(100, refresh_steps=2)
        journal = await begin(path, entry(0, period=long))
        for step in range(1, 100):
            item = [f"i{step}"] if step in (60, 80) else []
            await journal.append(entry(step, hitters=item, period=long))
        for step in range(100, 105):
            await journal.append(entry(step, hitters=[f"i{step}"], period=brisk))
        await journal.close()
        # i104 is asked about again in 106: it still rests in 105.
        assert dict((await had_back(path)).state.resting) == {"i80": 110, "i104": 106}


class TestKey:
    async def test_another_one_is_refused_while_anybody_is_charged(self, path):
        await (await begin(path, entry(1, [5]))).close()
        restored = await had_back(path, NEW)
        check_key(restored, OLD)
        with pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, NEW)

    async def test_another_one_is_taken_up_while_nobody_is(self, path):
        await (await begin(path, entry(1))).close()
        check_key(await had_back(path, NEW), NEW)
        journal = await begin(path, entry(2, [5]), key=NEW)
        await journal.close()
        restored = await had_back(path, NEW)
        assert restored.key == NEW.fingerprint
        with pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, OLD)

    @pytest.mark.parametrize(("step", "taken"), [(98, False), (99, True)])
    async def test_another_one_is_taken_up_when_the_period_is_over(self, path, step, taken):
        await (await begin(path, entry(1, [5]), entry(step, first=2))).close()
        restored = await had_back(path, NEW)
        assert restored.state.period.end == 100
        with nullcontext() if taken else pytest.raises(UnusableJournalError, match="another key"):
            check_key(restored, NEW)

    async def test_another_one_is_taken_up_with_a_new_period(self, path):
        await (await begin(path, entry(1, [5]))).close()
        late = period_at(100)
        await (await begin(path, entry(100, period=late, first=2))).close()
        check_key(await had_back(path, NEW), NEW)


class TestRefusals:
    def refused(self, path, match, life=LIFE):
        before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        with pytest.raises(UnusableJournalError, match=match):
            FileLedger(path, life, OLD.fingerprint)
        assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before

    @pytest.mark.parametrize("mode", ["DELETE", "WAL"])
    def test_a_foreign_database_is_left_as_it_is(self, path, mode):
        database = sqlite3.connect(path)
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute("CREATE TABLE steps (mine TEXT)")
        database.commit()
        database.close()
        self.refused(path, "not one of streamer's")
        with pytest.raises(UnusableJournalError, match="not one of streamer's"):
            peek(path)
        assert os.listdir(path.parent) == [DATABASE]

    @pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"{}\n" * 99])
    def test_a_file_that_is_no_database_is_left_as_it_is(self, path, content):
        path.write_bytes(content)
        self.refused(path, str(path.parent))

    async def test_a_newer_format_is_left_as_it_is(self, path):
        await (await begin(path, entry(1))).close()
        alter(path, f"PRAGMA user_version = {FORMAT + 1}")
        self.refused(path, f"format {FORMAT + 1}")

    @pytest.mark.parametrize(
        ("life", "named"),
        [
            (Life(1000, 0), "step_seconds 60 s, not 1 s"),
            (Life(60_000, 7000), "epoch 0 s, not 7 s"),
            (Life(60_000, 1_767_225_600_001), "epoch 0 s, not 1767225600.001 s"),
        ],
    )
    async def test_time_is_cut_into_steps_once_and_for_all(self, path, life, named):
        await (await begin(path, entry(1))).close()
        self.refused(path, named, life)

    def test_a_directory_that_cannot_be_made_is_one_sentence(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(UnusableJournalError, match="cannot be opened: Not a directory"):
            JournalDirectory(tmp_path / "file" / "journal")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_directory_that_cannot_be_written_is_one_sentence(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(UnusableJournalError, match="Permission denied"):
            JournalDirectory(tmp_path)
        with pytest.raises(UnusableJournalError, match="cannot be made"):
            FileLedger(tmp_path / DATABASE, LIFE, OLD.fingerprint)
        tmp_path.chmod(0o700)

    async def test_a_write_that_fails_is_told_as_one(self, path):
        journal = await begin(path, entry(1))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("DROP TABLE published")
        other.close()
        with pytest.raises(JournalWriteError, match="step 1 is published"):
            await journal.note_published(Published(1))
        await journal.close()

    async def test_a_half_made_journal_is_made_anew(self, path):
        path.with_suffix(".new").write_bytes(b"half")
        await (await begin(path, entry(1))).close()
        assert (await had_back(path)).state.closed == 1


HOLDER = """
import sys, time
from pathlib import Path
from streamer.ledger.directory import JournalDirectory
directory = JournalDirectory(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


class TestDirectory:
    def test_it_is_held_by_one_process_until_that_ends(self, tmp_path):
        command = [sys.executable, "-c", HOLDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(UnusableJournalError, match="in use by another process"):
                JournalDirectory(tmp_path)
            holder.send_signal(signal.SIGKILL)
            holder.wait(timeout=30)
        JournalDirectory(tmp_path).close()

    def test_it_is_free_again_when_it_is_closed(self, tmp_path):
        JournalDirectory(tmp_path / "new" / "journal").close()
        JournalDirectory(tmp_path / "new" / "journal").close()

    def test_its_key_is_made_once_and_only_its_owner_reads_it(self, tmp_path):
        directory = JournalDirectory(tmp_path)
        key = directory.key()
        assert len(bytes.fromhex(key)) == 32
        assert directory.key() == key
        assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / LOCK).stat().st_mode & 0o777 == 0o600
        directory.close()

    def test_a_lost_key_is_not_made_anew(self, tmp_path):
        directory = JournalDirectory(tmp_path)
        FileLedger(directory.database, LIFE, OLD.fingerprint)._database.close()
        with pytest.raises(UnusableJournalError, match=r"lost its key.*privacy\.key_file"):
            directory.key()
        assert not (tmp_path / KEY).exists()
        directory.close()

    def test_a_key_that_is_no_text_is_one_sentence(self, tmp_path):
        (tmp_path / KEY).write_bytes(b"\xff\xfe")
        directory = JournalDirectory(tmp_path)
        with pytest.raises(UnusableJournalError, match="cannot be read or made"):
            directory.key()
        directory.close()
