"""The ledger in files: what it promises beyond the contract."""

import os
import sqlite3
import zlib
from contextlib import closing

import pytest

from streamer.errors import JournalWriteError, UnusableJournalError
from streamer.ledger import file_database, file_ledger, past
from streamer.ledger.contract import Life
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import FileLedger, Peeked, Progress, peek
from streamer.ledger.file_tables import ENDED, FORMAT, Tables, _crc
from tests.ledger.making import (
    KEY,
    LIFE,
    counters_of,
    entry,
    keep,
    publication_of,
    times,
)
from tests.ledger.stores import FileStore


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


class TestRoundTrip:
    async def test_a_look_at_a_new_ledger_finds_how_time_is_cut_and_no_past(self, store):
        assert await store.restored() is None
        assert peek(store.path) == Peeked(LIFE, None, ended=False)

    async def test_a_ledger_in_memory_is_one_too(self):
        ledger = FileLedger(None, LIFE, KEY.fingerprint)
        assert await ledger.restore() is None
        await ledger.claim()
        await keep(ledger, entry(1, [5], ["a"]), entry(2, [5, 6]))
        restored = await ledger.restore()
        assert counters_of(restored) == {5: 2, 6: 1}
        await ledger.snapshot(restored.state.charges)
        restored = await ledger.restore()
        assert counters_of(restored) == {5: 2, 6: 1}
        assert [decided.step for decided in restored.history] == [1, 2]
        assert restored.published == 2
        await ledger.close()

    @pytest.mark.parametrize("name", ["a?mode=memory#100%25 'x'", 'a"b\\', "\u2028\x85\n🦜"])
    async def test_a_directory_may_have_any_name(self, tmp_path, name):
        store = FileStore(tmp_path / name)
        await store.make()
        async with store.resumed() as ledger:
            await keep(ledger, entry(3, items=["a"]))
        assert store.path.is_file()
        assert (await store.restored()).state.closed == 3
        assert peek(store.path).restored.state.closed == 3


class TestDurability:
    """What no test without a power cut can see happen is at least asked for."""

    async def test_a_commit_waits_for_the_disk_and_is_in_the_one_file(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
            pragma = {
                name: ledger._database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("synchronous", "journal_mode")
            }
        assert pragma == {"synchronous": 2, "journal_mode": "truncate"}

    def test_a_new_ledger_has_its_name_on_the_disk(self, store, monkeypatch):
        there = []
        monkeypatch.setattr(
            file_database, "sync_directory", lambda at: there.append(os.listdir(at))
        )
        FileLedger(store.path, LIFE, KEY.fingerprint)._database.close()
        FileLedger(store.path, LIFE, KEY.fingerprint)._database.close()
        assert there == [[DATABASE]]


class TestOutputs:
    def sizes(self, store):
        return {str(path): path.stat().st_size for path in (store.hitters, store.steps)}

    def noted(self, store):
        with closing(sqlite3.connect(store.path)) as database:
            return Tables(database).published()

    async def test_how_long_they_are_is_noted_with_what_is_published(self, store):
        store.hitters.write_text("mine\n")
        async with store.resumed(start_anew=True) as ledger:
            await ledger.append(entry(5, [7], ["a"]))
            assert self.noted(store) == (4, {str(store.hitters): 5, str(store.steps): 0})
            await ledger.publish(publication_of(entry(5, [7], ["a"]).decided))
            assert self.noted(store) == (5, self.sizes(store))

    async def test_what_a_crash_left_is_cut_off_when_the_ledger_is_claimed(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [7], ["a"]))
        whole = await store.published()
        lost = entry(2, [7], ["b", "c"])
        async with store.resumed(checkpoint=crash) as ledger:
            await ledger.append(lost)
            with pytest.raises(CrashError):
                await ledger.publish(publication_of(lost.decided))
        torn = await store.published()
        assert torn != whole
        async with store.opened() as ledger:
            assert (await ledger.restore()).published == 1
            assert await store.published() == torn
            await ledger.claim()
            assert await store.published() == whole
            await ledger.publish(publication_of(lost.decided))
        assert await store.published() == torn

    async def test_results_that_the_ledger_knows_nothing_of_are_refused(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [7], ["a"]))
        older = store.path.read_bytes()
        async with store.resumed() as ledger:
            await keep(ledger, entry(2, [7], ["b"]))
        store.path.write_bytes(older)
        before = await store.contents()
        with pytest.raises(UnusableJournalError, match=r"hitters\.jsonl.*journal is older"):
            await store.restored()
        assert await store.contents() == before

    async def test_nothing_of_them_is_made_by_a_ledger_that_is_not_claimed(self, store):
        assert await store.restored() is None
        assert not store.hitters.exists()
        assert not store.steps.exists()


class CrashError(Exception):
    pass


def crash(point):
    if point == "published":
        raise CrashError


class TestRows:
    @pytest.mark.parametrize(
        ("table", "change"),
        [
            ("periods", "key = 'another'"),
            ("steps", "offsets = '{}'"),
            ("published", "outputs = '{\"/out\": 1}'"),
            ("charges", "users = x'0700000000000000'"),
            ("snapshot", "step = 1"),
            ("charges", "units = x'0a00'"),
            ("counters", "units = x'0100'"),
        ],
    )
    async def test_one_that_is_another_is_noticed(self, store, table, change):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5]), entry(2, [5]))
            await ledger.snapshot(times({5: 2}))
            await ledger.append(entry(3, [5], offsets={"p": 4}))
        store.alter(f"UPDATE {table} SET {change}")
        with pytest.raises(UnusableJournalError, match=f"a checksum in {table} is wrong"):
            await store.restored()

    def test_checksums_are_those_of_the_format(self):
        # Journals that are out there have them: another rule is another FORMAT.
        assert _crc([12, "a:é", b"\0"]) == zlib.crc32("int:2:12str:4:a:ébytes:1:\0".encode())


class TestRoom:
    async def test_a_snapshot_gives_back_that_of_what_it_replaces(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, *(entry(step, range(20_000)) for step in range(3)))
            before = store.path.stat().st_size
            await ledger.snapshot(times(dict.fromkeys(range(20_000), 3)))
            assert store.path.stat().st_size < before / 2 + 40_000

    @pytest.fixture
    def short(self, monkeypatch):
        for room in (past, file_ledger):
            monkeypatch.setattr(room, "HISTORY", 5)
        monkeypatch.setattr(file_ledger, "_PRUNE_EVERY", 2)

    async def test_old_decisions_and_their_periods_are_forgotten(self, store, short):
        async with store.resumed() as ledger:
            for step in range(350):
                await ledger.append(entry(step))
            assert len(self.column(store, "steps", "step")) <= 10
        assert self.column(store, "periods", "number") == [3]

    async def test_also_when_a_ledger_is_claimed(self, store, monkeypatch):
        async with store.resumed() as ledger:
            for step in range(20):
                await ledger.append(entry(step))
        monkeypatch.setattr(file_ledger, "HISTORY", 5)
        assert (await store.restored()).state.closed == 19
        assert self.column(store, "steps", "step") == [*range(20)]
        async with store.resumed():
            assert self.column(store, "steps", "step") == [*range(15, 20)]

    def column(self, store, table, column):
        with closing(sqlite3.connect(store.path)) as database:
            rows = database.execute(f"SELECT {column} FROM {table} ORDER BY 1").fetchall()
        return [value for (value,) in rows]


class TestTheEnd:
    async def test_an_ended_ledger_can_be_looked_at(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5], ["a"]))
            assert not peek(store.path).ended
            await ledger.end()
        found = peek(store.path)
        assert (found.ended, found.restored.state.closed) == (True, 1)
        assert counters_of(found.restored) == {5: 1}

    async def test_it_cannot_be_continued_and_is_left_as_it_is(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1, [5], ["a"]))
            await ledger.end()
        before = await store.contents()
        with pytest.raises(UnusableJournalError, match=r"is ended.*use another directory.*--until"):
            await store.restored()
        assert await store.contents() == before

    async def test_a_ledger_without_decisions_can_be_ended_too(self, store):
        async with store.resumed() as ledger:
            await ledger.end()
        assert peek(store.path) == Peeked(LIFE, None, ended=True)
        with pytest.raises(UnusableJournalError, match="is ended"):
            await store.restored()

    async def test_it_has_a_format_of_its_own(self, store):
        async with store.resumed() as ledger:
            assert store.format == FORMAT
            await ledger.end()
        assert store.format == ENDED

    async def test_how_far_a_ledger_is_can_be_asked_before_it_is_restored(self, store):
        async with store.resumed() as ledger:
            assert ledger.progress() is None
            await keep(ledger, entry(1, [5], ["a"]))
            await ledger.append(entry(2))
        async with store.opened() as ledger:
            assert ledger.progress() == Progress(closed=2, published=1)


class TestRefusals:
    def refused(self, store, match, life=LIFE):
        before = {each.name: each.read_bytes() for each in store.directory.iterdir()}
        with pytest.raises(UnusableJournalError, match=match):
            FileLedger(store.path, life, KEY.fingerprint)
        assert {each.name: each.read_bytes() for each in store.directory.iterdir()} == before

    @pytest.mark.parametrize("mode", ["DELETE", "WAL"])
    def test_a_foreign_database_is_left_as_it_is(self, store, mode):
        with closing(sqlite3.connect(store.path)) as database:
            database.execute(f"PRAGMA journal_mode = {mode}")
            database.execute("CREATE TABLE steps (mine TEXT)")
            database.commit()
        self.refused(store, "not created by streamer")
        with pytest.raises(UnusableJournalError, match="not created by streamer"):
            peek(store.path)
        assert os.listdir(store.directory) == [DATABASE]

    @pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"{}\n" * 99])
    def test_a_file_that_is_no_database_is_left_as_it_is(self, store, content):
        store.path.write_bytes(content)
        self.refused(store, str(store.directory))

    async def test_a_newer_format_is_left_as_it_is(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
        store.alter(f"PRAGMA user_version = {ENDED + 1}")
        self.refused(store, f"format {ENDED + 1}, but this version supports formats 1 to {ENDED}")

    @pytest.mark.parametrize(
        ("life", "named"),
        [
            (Life(1000, 0), "step_seconds 60 s, not 1 s"),
            (Life(60_000, 7000), "epoch 0 s, not 7 s"),
            (Life(60_000, 1_767_225_600_001), "epoch 0 s, not 1767225600.001 s"),
        ],
    )
    async def test_another_life_is_named_in_seconds(self, store, life, named):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
        self.refused(store, named, life)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_directory_that_cannot_be_written_is_one_sentence(self, store):
        store.directory.chmod(0o500)
        with pytest.raises(UnusableJournalError, match="cannot be created"):
            FileLedger(store.path, LIFE, KEY.fingerprint)
        store.directory.chmod(0o700)

    async def test_a_write_that_fails_is_reported_as_one(self, store):
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
            store.alter("DROP TABLE published")
            with pytest.raises(JournalWriteError, match="step 1 is published"):
                await ledger.publish(publication_of(entry(1).decided))

    async def test_a_half_made_ledger_is_made_anew(self, store):
        store.path.with_suffix(".new").write_bytes(b"half")
        async with store.resumed() as ledger:
            await keep(ledger, entry(1))
        assert (await store.restored()).state.closed == 1
