"""The ledger that is kept in files: decisions in SQLite, results in files of lines.

SQLite's rollback journal mode keeps everything that is committed in the one file. A lost or
cut file beside it (as a write-ahead log would be) could roll the ledger back without a
trace, and budgets with it.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.errors import JournalWriteError, MonitorError, StreamerError, UnusableJournalError
from streamer.ledger.contract import Entry, Life, Restored, SnapshotRule
from streamer.ledger.directory import sync_directory
from streamer.ledger.file_restore import Past, read_past
from streamer.ledger.file_tables import APPLICATION, FORMAT, SCHEMA, Tables
from streamer.ledger.output_files import OutputFiles
from streamer.ledger.past import HISTORY
from streamer.monitors.seam import Users
from streamer.stream.publication import Publication

_PRUNE_EVERY = 256
_HEADER = struct.Struct(">16s 44x i 4x i")
"""Of the file format: its name, and at 60 and 68 the version and the application."""
Result = TypeVar("Result")


class FileLedger:
    """Implements `Ledger`. What a public method writes to SQLite is one transaction, durable
    when it returns. SQLite works in a thread, so that the event loop goes on.
    """

    def __init__(
        self,
        path: Path | None,
        life: Life,
        key: str,
        outputs: OutputFiles | None = None,
        start_anew: bool = False,
        checkpoint: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`path` None: in memory, for a run that keeps nothing. `key`: the fingerprint of the
        pseudonyms' key. `outputs` None: nothing is written out, because what is published
        is shown by this process alone. `start_anew`: begin although the outputs hold
        results. `checkpoint`: called with each point of the protocol as it is passed."""
        self._where = "the journal in memory" if path is None else f"the journal {path.parent}"
        self._key = key
        self._outputs = outputs
        self._start_anew = start_anew
        self._checkpoint = checkpoint
        self._rule = SnapshotRule()
        self._appended = 0
        self._is_new: bool | None = None
        """None: it is not known yet, because nothing was restored."""
        self._torn: Mapping[str, int] = {}
        """Outputs that a crash may have left half written, and how long each is to be."""
        if path is not None and not path.exists():
            _create(path, life)
        if path is not None:
            check_header(path)
        with refusal(self._where):
            self._database = _connect(path)
        try:
            with refusal(self._where):
                if path is None:
                    _fill(self._database, life)
                _check_pages(self._database)
                _check_life(self._where, Life(*Tables(self._database).life()), life)
        except BaseException:
            self._database.close()
            raise
        self._tables = Tables(self._database)

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def restore(self) -> Restored | None:
        past = await asyncio.to_thread(self._refusing, lambda: read_past(self._tables))
        self._is_new = past is None
        if past is None:
            if self._outputs and not self._start_anew:
                self._outputs.check_empty()
            return None
        self._rule.taken(past.snapshot_users)
        self._rule.charged(past.charges_since)
        self._check_outputs(past)
        return past.restored

    async def claim(self) -> None:
        if self._outputs:
            self._outputs.open(self._torn)
        if not self._is_new:
            await asyncio.to_thread(self._writing, "nothing was changed", self._prune)

    async def append(self, entry: Entry) -> None:
        if self._is_new is None:
            raise MonitorError("a ledger must be restored before anything is appended")
        outcome = "nothing of this step was published"
        await asyncio.to_thread(self._writing, outcome, self._append, entry)
        self._is_new = False

    async def publish(self, publication: Publication) -> None:
        """Write, sync, note."""
        if self._outputs:
            self._outputs.write(publication)
        self._checkpoint("published")
        outcome = f"step {publication.through} is published"
        sizes = self._sizes()
        await asyncio.to_thread(
            self._writing, outcome, self._tables.put_published, publication.through, sizes
        )

    async def snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        outcome = "all that was decided is published"
        await asyncio.to_thread(self._writing, outcome, self._snapshot, users, charges)
        await asyncio.to_thread(self._give_back_pages, outcome)

    async def close(self) -> None:
        if self._outputs:
            self._outputs.close()
        await asyncio.to_thread(self._database.close)

    def _check_outputs(self, past: Past) -> None:
        """Refuse outputs that hold more than is decided; remember those that a crash may have
        left half written."""
        restored = past.restored
        due = restored.published < restored.last.decided.step
        self._torn = past.outputs if due else {}
        if self._outputs and not due:
            self._outputs.check_not_longer(past.outputs)

    def _append(self, entry: Entry) -> None:
        decided = entry.decided
        if self._is_new:
            self._tables.put_published(decided.first - 1, self._sizes())
        known = self._tables.period(decided.period.number)
        if known is None:
            # A new period: it is pinned as it was planned, and all budgets start again.
            self._tables.forget_budgets()
            self._rule.forget()
        if known is None or known[1] != self._key:
            # Another key is let in only while nobody is charged.
            self._tables.put_period(decided.period, self._key)
        self._tables.put_step(entry)
        self._rule.charged(len(decided.charged))
        self._appended += 1
        if self._appended % _PRUNE_EVERY == 0:
            self._prune()

    def _sizes(self) -> Mapping[str, int]:
        return self._outputs.sizes() if self._outputs else {}

    def _snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        self._tables.put_snapshot(self._tables.last_step(), users, charges)
        self._rule.taken(len(users))

    def _prune(self) -> None:
        """Keep the last decisions, and those that a restart still needs."""
        self._tables.forget_steps_before(self._tables.first_needed(HISTORY))

    def _writing(self, outcome: str, work: Callable[..., None], *arguments: Any) -> None:
        """One transaction, or JournalWriteError and nothing."""
        with self._write_errors(outcome), self._transaction():
            work(*arguments)

    def _give_back_pages(self, outcome: str) -> None:
        # As a script: it is a step of the statement for each page, and execute() does one.
        with self._write_errors(outcome):
            self._database.executescript("PRAGMA incremental_vacuum")

    @contextmanager
    def _write_errors(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JournalWriteError(
                f"{self._where} could not be written ({error}): {outcome}; fix that and start "
                "again, it goes on where it was"
            ) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        yield
        self._database.execute("COMMIT")

    def _refusing(self, work: Callable[[], Result]) -> Result:
        with refusal(self._where):
            return work()


def check_header(path: Path) -> None:
    """Refuse a file that is no journal of ours by its first bytes: opening a foreign database
    could already change it, or the files beside it."""
    where = f"the journal {path.parent}"
    with refusal(where):
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise ValueError("it is cut off")
        magic, version, application = _HEADER.unpack(header)
        if magic != b"SQLite format 3\0" or application != APPLICATION:
            raise UnusableJournalError(f"{where} is not one of streamer's: name another directory")
        if version != FORMAT:
            raise UnusableJournalError(
                f"{where} has format {version}, this program knows {FORMAT}: use the version of "
                "streamer that it was made with, or a newer one"
            )


def peek(path: Path) -> tuple[Life, Restored | None]:
    """Look into a journal without touching it or its directory."""
    where = f"the journal {path.parent}"
    check_header(path)
    with (
        refusal(where),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database,
    ):
        try:
            _check_pages(database)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            raise UnusableJournalError(
                f"{where} was left in the middle of a write: the next run takes that back"
            ) from None
        tables = Tables(database)
        past = read_past(tables)
        return Life(*tables.life()), past.restored if past else None


@contextmanager
def refusal(where: str) -> Iterator[None]:
    """Whatever cannot be read is damage, and damage is never repaired by forgetting."""
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
            f"{where} cannot be read ({error}): restore it from a backup; it is left as it is, "
            "because starting anew would spend the users' budgets twice"
        ) from None


def _check_pages(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise ValueError("its pages do not fit together")


def _check_life(where: str, kept: Life, life: Life) -> None:
    wanted = {"step_seconds": life.length_ms, "epoch": life.epoch_ms}
    for setting, milliseconds in (("step_seconds", kept.length_ms), ("epoch", kept.epoch_ms)):
        if milliseconds != wanted[setting]:
            raise UnusableJournalError(
                f"{where} was made with {setting} {milliseconds / 1000:.15g} s, not "
                f"{wanted[setting] / 1000:.15g} s: it is fixed for a journal's life; use that, or "
                "another directory"
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
    """Complete under another name first: a journal that is there is never half made."""
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
        raise UnusableJournalError(f"the journal {path} cannot be made: {error}") from None


def _fill(database: sqlite3.Connection, life: Life) -> None:
    database.executescript(SCHEMA)
    Tables(database).put_life(life.length_ms, life.epoch_ms)
