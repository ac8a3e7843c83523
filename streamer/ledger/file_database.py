"""The SQLite file of a ledger: created atomically, and refused if it is damaged or foreign.

In SQLite's rollback journal mode everything that is committed is in one file. With a second
file, such as a write-ahead log, its loss or truncation would silently roll the ledger back,
and the budgets with it.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from streamer.errors import StreamerError, UnusableJournalError
from streamer.ledger.contract import Life
from streamer.ledger.directory import sync_directory
from streamer.ledger.file_format_1 import FORMATS, tables_of
from streamer.ledger.file_tables import APPLICATION, SCHEMA, Tables

_HEADER = struct.Struct(">16s 44x i 4x i")
"""Of an SQLite file: its magic, and at 60 and 68 the user version and application id."""


def open_database(path: Path | None, life: Life) -> sqlite3.Connection:
    """Open the database, or create it; `path` None: in memory."""
    where = name_of(path)
    if path is not None and not path.exists():
        _create(path, life)
    if path is not None:
        check_header(path)
    with refusal(where):
        database = _connect(path)
    try:
        with refusal(where):
            if path is None:
                _fill(database, life)
            check_pages(database)
            tables = tables_of(database)
            _check_life(where, Life(*tables.life()), life)
            _check_not_ended(where, tables)
    except BaseException:
        database.close()
        raise
    return database


def name_of(path: Path | None) -> str:
    """Its name in messages."""
    return "the journal in memory" if path is None else f"the journal {path.parent}"


def check_header(path: Path) -> None:
    """Refuse a file that streamer did not create by its first bytes: opening a foreign
    database could already change it, or files next to it."""
    where = f"the journal {path.parent}"
    with refusal(where):
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise ValueError("it is truncated")
        magic, version, application = _HEADER.unpack(header)
        if magic != b"SQLite format 3\0" or application != APPLICATION:
            raise UnusableJournalError(
                f"{where} was not created by streamer: name another directory"
            )
        if version not in FORMATS:
            raise UnusableJournalError(
                f"{where} has format {version}, but this version supports formats {min(FORMATS)} "
                f"to {max(FORMATS)}: use the version of streamer that created it, or a newer one"
            )


@contextmanager
def refusal(where: str) -> Iterator[None]:
    """Anything that cannot be read is damage, and damage is never repaired by starting over."""
    try:
        yield
    except UnusableJournalError:
        raise
    except (
        sqlite3.Error,
        OSError,
        msgspec.MsgspecError,
        StreamerError,
        TypeError,
        ValueError,
    ) as error:
        raise UnusableJournalError(
            f"{where} cannot be read ({error}): restore it from a backup; it is left unchanged, "
            "because starting over would spend the users' budgets twice"
        ) from None


def check_pages(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise ValueError("its pages are inconsistent")


def _check_life(where: str, kept: Life, life: Life) -> None:
    wanted = {"step_seconds": life.length_ms, "epoch": life.epoch_ms}
    for setting, milliseconds in (("step_seconds", kept.length_ms), ("epoch", kept.epoch_ms)):
        if milliseconds != wanted[setting]:
            raise UnusableJournalError(
                f"{where} was created with {setting} {milliseconds / 1000:.15g} s, not "
                f"{wanted[setting] / 1000:.15g} s: this is fixed for the life of a journal; use "
                "the old value, or another directory"
            )


def _check_not_ended(where: str, tables: Tables) -> None:
    if tables.ended():
        raise UnusableJournalError(
            f"{where} is ended, by a run without --until: it can be looked at with streamer state, "
            "not continued; use another directory, and --until for runs in pieces"
        )


def _connect(path: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    database = sqlite3.connect(
        name, uri=path is not None, isolation_level=None, check_same_thread=False
    )
    database.execute("PRAGMA journal_mode = TRUNCATE")
    database.execute("PRAGMA synchronous = FULL")
    return database


def _create(path: Path, life: Life) -> None:
    """Completed under another name first, so that a journal is never half created."""
    scratch = path.with_suffix(".new")
    scratch.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(scratch, isolation_level=None)) as database:
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            database.execute("PRAGMA synchronous = FULL")
            _fill(database, life)
        os.rename(scratch, path)
        sync_directory(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise UnusableJournalError(f"the journal {path} cannot be created: {error}") from None


def _fill(database: sqlite3.Connection, life: Life) -> None:
    database.executescript(";\n".join(SCHEMA))
    Tables(database).put_life(life.length_ms, life.epoch_ms)
