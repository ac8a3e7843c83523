"""The past, read from the tables of an embedded journal, complete or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer.journal.base import Restored
from streamer.journal.sqlite_tables import Tables
from streamer.monitors.counters import Counters
from streamer.stream.engine import EngineState
from streamer.stream.records import Entry

HISTORY = 20_000
"""How many decisions are kept to be looked at."""
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Past:
    """What is restored, and how large the snapshot and the charges since are."""

    restored: Restored
    snapshot_users: int
    charges_since: int


def read_past(tables: Tables) -> Past | None:
    """None: nothing was decided yet. ValueError: something is missing."""
    newest = tables.entries(after=-1, most=1)
    if not newest:
        return None
    last = newest[0][0]
    step, period = last.decided.step, last.decided.period
    found = tables.period(period.number)
    counters, snapshot_users, since = _counters(tables, last)
    users, charges = counters.snapshot()
    state = EngineState(step, period, users, charges, _resting(tables, step))
    restored = Restored(state, last, tables.published(), found[1] if found else "")
    return Past(restored, snapshot_users, since)


def _resting(tables: Tables, closed: int) -> dict[str, int]:
    """Items that rest, and the step in which each is asked about again."""
    resting: dict[str, int] = {}
    for entry, _ in reversed(tables.entries(after=-1, most=_ALL)):
        wakes = entry.decided.step + entry.decided.period.terms.refresh_steps
        if wakes > closed + 1:
            resting.update({hitter.item: wakes for hitter in entry.decided.hitters})
    return resting


def _counters(tables: Tables, last: Entry) -> tuple[Counters, int, int]:
    """The last snapshot and all charges since."""
    period = last.decided.period
    counters = Counters(period.terms.contributions)
    taken = tables.snapshot(counters)
    snapshot_users = counters.charged
    since = tables.charges()
    begin = period.first - 1 if taken is None else taken
    for entry, charged in tables.entries(after=begin, most=_ALL):
        here = since.get(entry.decided.step)
        if (0 if here is None else len(here)) != charged:
            raise ValueError(f"charges of step {entry.decided.step} are missing")
    if since:
        users, times = np.unique(np.concatenate(list(since.values())), return_counts=True)
        counters.charge(users, times.astype(np.uint16))
    return counters, snapshot_users, sum(map(len, since.values()))
