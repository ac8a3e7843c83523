"""The embedded journal: one SQLite file in a directory, kept by one process."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.errors import JournalWriteError, UnusableJournalError
from streamer.journal.base import Life, Restored, SnapshotRule
from streamer.monitors.counters import Counters, Users
from streamer.stream.engine import EngineState
from streamer.stream.periods import Period
from streamer.stream.records import Decided, Entry, Hitter

FORMAT = 1
APPLICATION = 0x5354524D  # "STRM": tells our database from a foreign one
FILE, LOCK = "journal.sqlite", "lock"
HISTORY = 20_000
"""How many decisions are kept to be looked at."""
_PRUNE_EVERY = 256
_CHUNK = 1 << 20

_SCHEMA = """
CREATE TABLE life (length_ms INTEGER NOT NULL, epoch_ms INTEGER NOT NULL);
CREATE TABLE periods (
    number INTEGER PRIMARY KEY, period TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE steps (
    step INTEGER PRIMARY KEY, first INTEGER NOT NULL, period INTEGER NOT NULL,
    hitters TEXT NOT NULL, offsets TEXT NOT NULL, outputs TEXT NOT NULL,
    published INTEGER NOT NULL);
CREATE TABLE charges (step INTEGER PRIMARY KEY, users BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE counters (
    chunk INTEGER PRIMARY KEY, users BLOB NOT NULL, charges BLOB NOT NULL, crc INTEGER NOT NULL);
"""
Result = TypeVar("Result")


class SqliteJournal:
    """Decisions in `steps`, who was charged by each in `charges`, snapshots in `counters`.

    Every public method is one transaction, durable when it returns (synchronous=FULL).
    SQLite works in a thread, so that the event loop goes on.
    """

    def __init__(self, directory: Path | None, life: Life, key: str) -> None:
        """`directory` None: a journal in memory, for a run that keeps nothing."""
        self._where = "the journal in memory" if directory is None else f"the journal {directory}"
        self._life = life
        self._key = key
        self._rule = SnapshotRule()
        self._appended = 0
        self._lock: int | None = None
        if directory is not None:
            self._lock = _lock(directory)
        try:
            with self._refusal():
                self._database = _connect(directory)
                new = self._check()
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                if new:
                    self._create()
        except BaseException:
            self._release()
            raise

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def restore(self) -> Restored | None:
        return await asyncio.to_thread(self._refusing, self._restore)

    async def append(self, entry: Entry) -> None:
        await asyncio.to_thread(self._writing, self._append, entry)

    async def note_published(self, step: int) -> None:
        await asyncio.to_thread(self._writing, self._note_published, step)

    async def snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        await asyncio.to_thread(self._writing, self._snapshot, users, charges)

    async def history(self, steps: int) -> Sequence[Decided]:
        return await asyncio.to_thread(self._refusing, self._history, steps)

    async def close(self) -> None:
        await asyncio.to_thread(self._release)

    def _append(self, entry: Entry) -> None:
        decided = entry.decided
        period = decided.period
        execute = self._database.execute
        known = execute("SELECT key FROM periods WHERE number = ?", (period.number,)).fetchone()
        if known is None:
            # A new period: it is pinned as it was planned, and all budgets start again.
            row = (period.number, _json(period), self._key)
            execute("INSERT INTO periods VALUES (?, ?, ?)", row)
            execute("DELETE FROM charges")
            execute("DELETE FROM counters")
            self._rule.forget()
        elif known[0] != self._key:
            # Another key is let in only while nobody is charged.
            execute("UPDATE periods SET key = ? WHERE number = ?", (self._key, period.number))
        execute(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, 0)",
            (
                *(decided.step, decided.first, period.number, _json(decided.hitters)),
                *(_json(dict(entry.offsets)), _json(dict(entry.outputs))),
            ),
        )
        if len(decided.charged):
            users = decided.charged.astype("<u8").tobytes()
            execute("INSERT INTO charges VALUES (?, ?, ?)", (decided.step, users, _crc(users)))
            self._rule.charged(len(decided.charged))
        self._appended += 1
        if self._appended % _PRUNE_EVERY == 0:
            self._prune()

    def _note_published(self, step: int) -> None:
        self._database.execute("UPDATE steps SET published = 1 WHERE step = ?", (step,))

    def _snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        execute = self._database.execute
        execute("DELETE FROM counters")
        for chunk, start in enumerate(range(0, len(users), _CHUNK)):
            who = users[start : start + _CHUNK].astype("<u8").tobytes()
            often = charges[start : start + _CHUNK].astype("<u2").tobytes()
            row = (chunk, who, often, _crc(who, often))
            execute("INSERT INTO counters VALUES (?, ?, ?, ?)", row)
        execute("DELETE FROM charges")
        self._rule.taken(len(users))

    def _prune(self) -> None:
        """Keep the last decisions, and the periods that they belong to."""
        execute = self._database.execute
        execute(
            "DELETE FROM steps WHERE step <= "
            "(SELECT step FROM steps ORDER BY step DESC LIMIT 1 OFFSET ?)",
            (HISTORY,),
        )
        execute("DELETE FROM periods WHERE number < (SELECT min(period) FROM steps)")

    def _restore(self) -> Restored | None:
        execute = self._database.execute
        last = execute(
            "SELECT step, first, period, hitters, offsets, outputs, published FROM steps "
            "ORDER BY step DESC LIMIT 1"
        ).fetchone()
        if last is None:
            return None
        step, first, number, hitters, offsets, outputs, published = last
        period, key = self._period(number)
        counters = self._counters(period)
        users, charges = counters.snapshot()
        reach = (step - period.terms.refresh_steps,)
        reported = {
            hitter.item: reported_step
            for reported_step, told in execute(
                "SELECT step, hitters FROM steps WHERE step > ? ORDER BY step", reach
            )
            for hitter in _hitters(told)
        }
        state = EngineState(step, period, users, charges, reported)
        decided = Decided(step, first, period, _hitters(hitters))
        entry = Entry(decided, _offsets(offsets), _offsets(outputs))
        return Restored(state, entry.offsets, None if published else entry, key)

    def _counters(self, period: Period) -> Counters:
        """The last snapshot and all charges since."""
        execute = self._database.execute
        counters = Counters(period.terms.contributions)
        who, often = [], []
        for users, charges, crc in execute(
            "SELECT users, charges, crc FROM counters ORDER BY chunk"
        ):
            self._verify(crc, users, charges)
            who.append(np.frombuffer(users, dtype="<u8"))
            often.append(np.frombuffer(charges, dtype="<u2"))
        if who:
            counters.restore(
                np.concatenate(who).astype(np.uint64), np.concatenate(often).astype(np.uint16)
            )
        self._rule.taken(counters.charged)
        since = []
        for users, crc in execute("SELECT users, crc FROM charges ORDER BY step"):
            self._verify(crc, users)
            since.append(np.frombuffer(users, dtype="<u8"))
        if since:
            users, times = np.unique(np.concatenate(since), return_counts=True)
            counters.charge(users.astype(np.uint64), times.astype(np.uint16))
            self._rule.charged(int(times.sum()))
        return counters

    def _period(self, number: int) -> tuple[Period, str]:
        period, key = self._database.execute(
            "SELECT period, key FROM periods WHERE number = ?", (number,)
        ).fetchone()
        return msgspec.json.decode(period, type=Period), key

    def _history(self, steps: int) -> list[Decided]:
        rows = self._database.execute(
            "SELECT step, first, period, hitters FROM steps ORDER BY step DESC LIMIT ?", (steps,)
        ).fetchall()
        periods = {number: self._period(number)[0] for number in {row[2] for row in rows}}
        return [
            Decided(step, first, periods[number], _hitters(hitters))
            for step, first, number, hitters in reversed(rows)
        ]

    def _check(self) -> bool:
        """Whether the database is new. One that cannot be used is refused unchanged."""
        execute = self._database.execute
        version = execute("PRAGMA user_version").fetchone()[0]
        application = execute("PRAGMA application_id").fetchone()[0]
        empty = execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if empty and version == 0:
            return True
        if application != APPLICATION:
            raise UnusableJournalError(
                f"{self._where} is not one of streamer's: name another directory"
            )
        if version != FORMAT:
            raise UnusableJournalError(
                f"{self._where} has format {version}, this program knows {FORMAT}: "
                "use the version of streamer that it was made with, or a newer one"
            )
        if execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("quick_check failed")
        length_ms, epoch_ms = execute("SELECT length_ms, epoch_ms FROM life").fetchone()
        for setting, kept, wanted in (
            ("step_seconds", length_ms, self._life.length_ms),
            ("epoch", epoch_ms, self._life.epoch_ms),
        ):
            if kept != wanted:
                raise UnusableJournalError(
                    f"{self._where} was made with {setting} {kept / 1000:g} s, not "
                    f"{wanted / 1000:g} s: it is fixed for a journal's life; use that, or "
                    "another directory"
                )
        return False

    def _create(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            self._database.execute(statement)
        life = (self._life.length_ms, self._life.epoch_ms)
        self._database.execute("INSERT INTO life VALUES (?, ?)", life)
        self._database.execute(f"PRAGMA application_id = {APPLICATION}")
        self._database.execute(f"PRAGMA user_version = {FORMAT}")
        self._database.execute("COMMIT")

    def _writing(self, work: Callable[..., None], *arguments: Any) -> None:
        """One transaction, or JournalWriteError and nothing."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            work(*arguments)
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise JournalWriteError(
                f"{self._where} could not be written ({error}): nothing of this step was "
                "published; mend that and start again, it goes on where it was"
            ) from None

    def _refusing(self, work: Callable[..., Result], *arguments: Any) -> Result:
        with self._refusal():
            return work(*arguments)

    @contextmanager
    def _refusal(self) -> Iterator[None]:
        """Whatever cannot be read is damage, and damage is never repaired by forgetting."""
        try:
            yield
        except (sqlite3.Error, msgspec.MsgspecError, TypeError, ValueError) as error:
            raise UnusableJournalError(
                f"{self._where} cannot be read ({error}): restore it from a backup; it is left "
                "as it is, because starting anew would spend the users' budgets twice"
            ) from None

    def _verify(self, crc: int, *blobs: bytes) -> None:
        if _crc(*blobs) != crc:
            raise ValueError("a checksum is wrong")

    def _release(self) -> None:
        database = getattr(self, "_database", None)
        if database is not None:
            database.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _connect(directory: Path | None) -> sqlite3.Connection:
    name = ":memory:" if directory is None else str(directory / FILE)
    return sqlite3.connect(name, isolation_level=None, check_same_thread=False)


def _lock(directory: Path) -> int:
    """Held until the process ends, however it ends."""
    try:
        handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnusableJournalError(
            f"the journal {directory} cannot be opened: {error.strerror}"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise UnusableJournalError(
            f"the journal {directory} is in use by another process: end that one first"
        ) from None
    return handle


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _hitters(text: str) -> tuple[Hitter, ...]:
    return msgspec.json.decode(text, type=tuple[Hitter, ...])


def _offsets(text: str) -> dict[str, int]:
    return msgspec.json.decode(text, type=dict[str, int])


def _crc(*blobs: bytes) -> int:
    total = 0
    for blob in blobs:
        total = zlib.crc32(blob, total)
    return total
