"""The tables of a file ledger: how decisions and budgets are stored as rows.

Every row has a checksum over all of its columns, and rows that belong together record their
number, so that damage and loss are detected.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from streamer.ledger.contract import Entry
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter, Units, Users
from streamer.stream.decided import Decided
from streamer.stream.periods import Period

FORMAT = 3
ENDED = 4
"""The format of a ledger that is ended: nothing can be appended to it."""
APPLICATION = 0x5354524D  # "STRM": marks a database as ours
CHUNK_USERS = 1 << 20

BUDGETS = (
    """CREATE TABLE charges (
    step INTEGER PRIMARY KEY, users BLOB NOT NULL, units BLOB NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE snapshot (
    step INTEGER NOT NULL, chunks INTEGER NOT NULL, users INTEGER NOT NULL,
    crc INTEGER NOT NULL)""",
    """CREATE TABLE counters (
    chunk INTEGER PRIMARY KEY, users BLOB NOT NULL, units BLOB NOT NULL, crc INTEGER NOT NULL)""",
    f"PRAGMA user_version = {FORMAT}",
)
"""Who was charged how much, and the format, which says how that is stored."""
SCHEMA = (
    """CREATE TABLE life (
    length_ms INTEGER NOT NULL, epoch_ms INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE periods (
    number INTEGER PRIMARY KEY, period TEXT NOT NULL, key TEXT NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE steps (
    step INTEGER PRIMARY KEY, first INTEGER NOT NULL, period INTEGER NOT NULL,
    hitters TEXT NOT NULL, offsets TEXT NOT NULL, charged INTEGER NOT NULL,
    crc INTEGER NOT NULL)""",
    "CREATE TABLE published (step INTEGER NOT NULL, outputs TEXT NOT NULL, crc INTEGER NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    *BUDGETS,
)
Value = int | str | bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All counters of a period, after a step."""

    step: int
    charges: Charges


class Tables:
    """Rows of an open database. Transactions are up to the caller."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._execute = database.execute

    def put_life(self, length_ms: int, epoch_ms: int) -> None:
        self._insert("life", length_ms, epoch_ms)

    def life(self) -> tuple[int, int]:
        length_ms, epoch_ms = self._one("life", "length_ms, epoch_ms")
        return int(length_ms), int(epoch_ms)

    def put_end(self) -> None:
        """Nothing is decided after this."""
        self._execute(f"PRAGMA user_version = {ENDED}")

    def ended(self) -> bool:
        return self.format() == ENDED

    def format(self) -> int:
        # Asked of SQLite, not of the header: a crash may have left the mark of a format that
        # SQLite takes back.
        return int(self._execute("PRAGMA user_version").fetchone()[0])

    def put_period(self, period: Period, key: str) -> None:
        """A period is pinned as planned; a known one may only change its key."""
        self._execute("DELETE FROM periods WHERE number = ?", (period.number,))
        self._insert("periods", period.number, _json(period), key)

    def period(self, number: int) -> tuple[Period, str] | None:
        rows = self._rows("periods", "number, period, key", "WHERE number = ?", (number,))
        for _, period, key in rows:
            return msgspec.json.decode(period, type=Period), str(key)
        return None

    def has_periods(self) -> bool:
        return any(True for _ in self._rows("periods", "number, period, key"))

    def put_step(self, entry: Entry) -> None:
        decided = entry.decided
        self._insert(
            "steps",
            *(decided.step, decided.first, decided.period.number, _json(decided.hitters)),
            *(_json(dict(entry.offsets)), len(decided.charges)),
        )
        if len(decided.charges):
            self._insert("charges", decided.step, *_columns(decided.charges))

    def entries(self) -> list[tuple[Entry, int]]:
        """All stored decisions, in ascending order, each with the number of users it charged."""
        found = []
        known: dict[int, Period] = {}
        for step, first, number, hitters, offsets, charged in self._rows(
            "steps",
            "step, first, period, hitters, offsets, charged",
            "ORDER BY step",
        ):
            if number not in known:
                known[number] = self._known_period(number)
            reported = msgspec.json.decode(hitters, type=tuple[Hitter[str], ...])
            entry = Entry(
                Decided(int(step), int(first), known[number], reported),
                msgspec.json.decode(offsets, type=dict[str, int]),
            )
            found.append((entry, int(charged)))
        return found

    def first_needed(self, history: int) -> int:
        """The first of the last `history` steps, of those whose charges are in no snapshot, and
        of those whose items may still rest."""
        periods = [
            msgspec.json.decode(period, type=Period)
            for _, period, _ in self._rows("periods", "number, period, key")
        ]
        reach = max((period.terms.refresh_steps for period in periods), default=0)
        last = "SELECT step FROM steps ORDER BY step DESC LIMIT 1 OFFSET ?"
        newest, kept = self._step(last, 0), self._step(last, history - 1)
        if newest is None or kept is None:
            return 0  # there are fewer
        charged = self._step("SELECT min(step) FROM charges")
        return min(kept, newest - reach, kept if charged is None else charged)

    def last_step(self) -> int | None:
        """The last decided step; None: nothing was decided yet."""
        return self._step("SELECT max(step) FROM steps")

    def forget_steps_before(self, step: int) -> None:
        """Also deletes the periods that only these steps belonged to."""
        self._execute("DELETE FROM steps WHERE step < ?", (step,))
        self._execute("DELETE FROM periods WHERE number < (SELECT min(period) FROM steps)")

    def put_published(self, step: int, outputs: Mapping[str, int]) -> None:
        """All steps up to this one are published; `outputs`: the file lengths after that."""
        self._execute("DELETE FROM published")
        self._insert("published", step, _json(dict(outputs)))

    def published(self) -> tuple[int, dict[str, int]]:
        step, outputs = self._one("published", "step, outputs")
        return int(step), msgspec.json.decode(outputs, type=dict[str, int])

    def forget_budgets(self) -> None:
        for table in ("charges", "snapshot", "counters"):
            self._execute(f"DELETE FROM {table}")  # noqa: S608

    def put_snapshot(self, charges: Charges) -> None:
        """Store all counters after the last step, in place of the charges that led to them."""
        step = self.last_step()
        if step is None:
            raise ValueError("nothing was decided yet")
        self.forget_budgets()
        starts = range(0, len(charges), CHUNK_USERS)
        for chunk, start in enumerate(starts):
            part = slice(start, start + CHUNK_USERS)
            columns = _columns(Charges(charges.users[part], charges.units[part]))
            self._insert("counters", chunk, *columns)
        self._insert("snapshot", step, len(starts), len(charges))

    def snapshot(self) -> Snapshot | None:
        """The last snapshot; None: none was taken in this period."""
        parts: list[Charges] = []
        for chunk, charges in self._counters():
            if chunk != len(parts):
                raise ValueError("a part of the counters is missing")
            parts.append(charges)
        rows = list(self._rows("snapshot", "step, chunks, users"))
        if not rows:
            return None
        step, chunks, number = map(int, rows[0])
        if len(parts) != chunks or sum(map(len, parts)) != number:
            raise ValueError("a part of the counters is missing")
        if not parts:
            return Snapshot(step, Charges.none())
        users = np.concatenate([part.users for part in parts])
        return Snapshot(step, Charges(users, np.concatenate([part.units for part in parts])))

    def charges(self) -> dict[int, Charges]:
        """The charges by step, since the last snapshot."""
        rows = self._rows("charges", "step, users, units", "ORDER BY step")
        return {int(step): Charges(users_of(users), units_of(units)) for step, users, units in rows}

    def _counters(self) -> Iterator[tuple[int, Charges]]:
        """The parts of the last snapshot with their numbers."""
        for chunk, users, units in self._rows("counters", "chunk, users, units", "ORDER BY chunk"):
            yield int(chunk), Charges(users_of(users), units_of(units))

    def _known_period(self, number: int) -> Period:
        found = self.period(number)
        if found is None:
            raise ValueError(f"period {number} is missing")
        return found[0]

    def _step(self, query: str, *values: int) -> int | None:
        row = self._execute(query, values).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def _insert(self, table: str, *values: Value) -> None:
        row = (*values, _crc(values))
        places = ", ".join("?" * len(row))
        self._execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608

    def _one(self, table: str, columns: str) -> tuple[Any, ...]:
        rows = list(self._rows(table, columns))
        if len(rows) != 1:
            raise ValueError(f"{table} has {len(rows)} rows")
        return rows[0]

    def _rows(
        self, table: str, columns: str, clause: str = "", values: tuple[Value, ...] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Rows without their checksums, which are verified."""
        query = f"SELECT {columns}, crc FROM {table} {clause}"  # noqa: S608
        for *row, crc in self._execute(query, values):
            if _crc(row) != crc:
                raise ValueError(f"a checksum in {table} is wrong")
            yield tuple(row)


def users_of(content: bytes) -> Users:
    return np.frombuffer(content, dtype="<u8").astype(np.uint64, copy=False)


def units_of(content: bytes) -> Units:
    return np.frombuffer(content, dtype="<u2").astype(np.uint16, copy=False)


def _columns(charges: Charges) -> tuple[bytes, bytes]:
    return charges.users.astype("<u8").tobytes(), charges.units.astype("<u2").tobytes()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _crc(values: Iterable[Value]) -> int:
    """Over all columns with their types and lengths, so that content cannot move between them."""
    crc = 0
    for value in values:
        content = value if isinstance(value, bytes) else str(value).encode()
        head = f"{type(value).__name__}:{len(content)}:".encode()
        crc = zlib.crc32(content, zlib.crc32(head, crc))
    return crc
