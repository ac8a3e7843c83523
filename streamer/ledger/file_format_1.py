"""Ledgers of version 0.1.0: read as they are, and converted when a run takes them over.

They store how often users were charged. Each of these charges is a full one. Whether a ledger
stores times or units is part of its format, and of the columns that are read and checksummed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from streamer.ledger.file_tables import BUDGETS, ENDED, FORMAT, Tables, units_of, users_of
from streamer.monitors.counters import Charges
from streamer.privacy.prices import FULL

_FORMAT, _ENDED = 1, 2
FORMATS = (_FORMAT, _ENDED, FORMAT, ENDED)
"""All that can be read."""


class TimesTables(Tables):
    """The same rows, but for those of budgets."""

    def ended(self) -> bool:
        return self.format() == _ENDED

    def charges(self) -> dict[int, Charges]:
        rows = self._rows("charges", "step, users", "ORDER BY step")
        return {int(step): Charges.full(users_of(users)) for step, users in rows}

    def _counters(self) -> Iterator[tuple[int, Charges]]:
        rows = self._rows("counters", "chunk, users, charges", "ORDER BY chunk")
        for chunk, users, times in rows:
            yield int(chunk), Charges(users_of(users), units_of(times) * FULL)


def tables_of(database: sqlite3.Connection) -> Tables:
    """The tables of a database, of whatever format it is."""
    tables = Tables(database)
    return TimesTables(database) if tables.format() in (_FORMAT, _ENDED) else tables


def converted(database: sqlite3.Connection, charges: Charges) -> Tables:
    """The tables with the budgets in units: all of them become a snapshot. From then on earlier
    versions refuse the ledger. The transaction is up to the caller."""
    tables = Tables(database)
    for table in ("charges", "snapshot", "counters"):
        database.execute(f"DROP TABLE {table}")
    for statement in BUDGETS:
        database.execute(statement)
    if tables.last_step() is not None:
        tables.put_snapshot(charges)
    return tables
