"""The ledger in files: decisions in SQLite, results as lines of JSON."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from streamer.errors import JournalWriteError, MonitorError, UnusableJournalError
from streamer.ledger.contract import Entry, Life, Restored, SnapshotRule
from streamer.ledger.file_database import check_header, check_pages, name_of, open_database, refusal
from streamer.ledger.file_format_1 import converted, tables_of
from streamer.ledger.file_restore import Past, read_past
from streamer.ledger.file_tables import FORMAT, Tables
from streamer.ledger.output_files import OutputFiles
from streamer.ledger.past import HISTORY
from streamer.monitors.counters import Charges
from streamer.stream.publication import Publication

_PRUNE_EVERY = 256
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a ledger is: the last step that is closed, and the last that is published."""

    closed: int
    published: int


class FileLedger:
    """Implements `Ledger`. What a public method writes to SQLite is one transaction, durable
    when it returns. SQLite runs in a thread, so that it does not block the event loop.
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
        """`path` None: in memory, for a run without a journal. `key`: the fingerprint of the
        pseudonyms' key. `outputs` None: results are not written, only shown by this process.
        `start_anew`: start even if the outputs already hold results. `checkpoint`: called
        at each point of the protocol, with its name."""
        self._where = name_of(path)
        self._key = key
        self._outputs = outputs
        self._start_anew = start_anew
        self._checkpoint = checkpoint
        self._rule = SnapshotRule()
        self._appended = 0
        self._is_new: bool | None = None
        """None: not known before `restore`."""
        self._torn: Mapping[str, int] = {}
        """Outputs that a crash may have left half written, and the length to cut each to."""
        self._charges = Charges.none()
        """As they were restored, until the ledger is claimed."""
        self._database = open_database(path, life)
        self._tables = tables_of(self._database)

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
        self._charges = past.restored.state.charges
        return past.restored

    async def claim(self) -> None:
        if self._outputs:
            self._outputs.open(self._torn)
        outcome = "nothing was changed"
        if self._tables.format() != FORMAT:
            await asyncio.to_thread(self._writing, outcome, self._convert)
        self._charges = Charges.none()
        if not self._is_new:
            await asyncio.to_thread(self._writing, outcome, self._prune)

    async def append(self, entry: Entry) -> None:
        if self._is_new is None:
            raise MonitorError("a ledger must be restored before anything is appended")
        outcome = "nothing of this step was published"
        await asyncio.to_thread(self._writing, outcome, self._append, entry)
        self._is_new = False

    async def publish(self, publication: Publication) -> None:
        """Write, sync, then record that it is published."""
        if self._outputs:
            self._outputs.write(publication)
        self._checkpoint("published")
        outcome = f"step {publication.through} is published"
        sizes = self._sizes()
        await asyncio.to_thread(
            self._writing, outcome, self._tables.put_published, publication.through, sizes
        )

    def progress(self) -> Progress | None:
        """How far it is; None for a new ledger. Can be asked before it is restored."""
        return self._refusing(lambda: _progress(self._tables))

    async def end(self) -> None:
        """Nothing can be appended from now on, by any process. If this run dies before that, the
        next one finds everything published, and ends it."""
        outcome = "all that was decided is published"
        await asyncio.to_thread(self._writing, outcome, self._tables.put_end)
        self._checkpoint("ended")

    async def snapshot(self, charges: Charges) -> None:
        outcome = "all decisions are published"
        await asyncio.to_thread(self._writing, outcome, self._snapshot, charges)
        await asyncio.to_thread(self._give_back_pages, outcome)

    async def close(self) -> None:
        if self._outputs:
            self._outputs.close()
        await asyncio.to_thread(self._database.close)

    def _check_outputs(self, past: Past) -> None:
        """Refuse outputs that hold more than was decided; remember those that a crash may have
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
            # A new period is pinned as planned, and all budgets reset.
            self._tables.forget_budgets()
            self._rule.forget()
        if known is None or known[1] != self._key:
            # Another key is accepted only while nobody is charged.
            self._tables.put_period(decided.period, self._key)
        self._tables.put_step(entry)
        self._rule.charged(len(decided.charges))
        self._appended += 1
        if self._appended % _PRUNE_EVERY == 0:
            self._prune()

    def _sizes(self) -> Mapping[str, int]:
        return self._outputs.sizes() if self._outputs else {}

    def _snapshot(self, charges: Charges) -> None:
        self._tables.put_snapshot(charges)
        self._rule.taken(len(charges))

    def _convert(self) -> None:
        self._tables = converted(self._database, self._charges)
        self._rule.taken(len(self._charges))

    def _prune(self) -> None:
        """Keep the last decisions, and those that a restart still needs."""
        self._tables.forget_steps_before(self._tables.first_needed(HISTORY))

    def _writing(self, outcome: str, work: Callable[..., None], *arguments: Any) -> None:
        """Work in one transaction. JournalWriteError: nothing was written."""
        with self._write_errors(outcome), self._transaction():
            work(*arguments)

    def _give_back_pages(self, outcome: str) -> None:
        # As a script: the statement takes one step per page, and execute() does only one.
        with self._write_errors(outcome):
            self._database.executescript("PRAGMA incremental_vacuum")

    @contextmanager
    def _write_errors(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JournalWriteError(
                f"{self._where} could not be written ({error}): {outcome}; fix that and start "
                "again, and it continues where it stopped"
            ) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        yield
        self._database.execute("COMMIT")

    def _refusing(self, work: Callable[[], Result]) -> Result:
        with refusal(self._where):
            return work()


def _progress(tables: Tables) -> Progress | None:
    closed = tables.last_step()
    return None if closed is None else Progress(closed, tables.published()[0])


@dataclass(frozen=True, slots=True)
class Peeked:
    """What a look into a journal finds; `restored` None: nothing was decided yet."""

    life: Life
    restored: Restored | None
    ended: bool


def peek(path: Path) -> Peeked:
    """Look into a journal without touching it or its directory."""
    where = f"the journal {path.parent}"
    check_header(path)
    with (
        refusal(where),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database,
    ):
        try:
            check_pages(database)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            raise UnusableJournalError(
                f"{where} was interrupted during a write: the next run rolls that back"
            ) from None
        tables = tables_of(database)
        past = read_past(tables)
        return Peeked(Life(*tables.life()), past.restored if past else None, tables.ended())
