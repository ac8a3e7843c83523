"""The past, read from the tables of an embedded journal, complete or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamer.ledger.base import Restored
from streamer.ledger.sqlite_tables import Tables
from streamer.monitors.counters import Counters, Users
from streamer.stream.engine import EngineState
from streamer.stream.records import Entry

HISTORY = 20_000
"""How many decisions are kept to be looked at."""
_ALL = 1 << 62
Entries = Sequence[tuple[Entry, int]]
"""Decisions, the newest first, each with how many users it charged."""


@dataclass(frozen=True, slots=True)
class Past:
    """What is restored, and how large the snapshot and the charges since are."""

    restored: Restored
    snapshot_users: int
    charges_since: int


def read_past(tables: Tables) -> Past | None:
    """None: nothing was decided yet. ValueError: something is missing."""
    entries = tables.entries(after=-1, most=_ALL)
    since = tables.charges()
    _check_complete(tables, [entry for entry, _ in entries], since)
    if not entries:
        return None
    last = entries[0][0]
    step, period = last.decided.step, last.decided.period
    found = tables.period(period.number)
    counters, snapshot_users = _counters(tables, entries, since)
    users, charges = counters.snapshot()
    state = EngineState(step, period, users, charges, _resting(entries))
    restored = Restored(state, last, tables.published(), found[1] if found else "")
    return Past(restored, snapshot_users, sum(map(len, since.values())))


def _check_complete(tables: Tables, entries: Sequence[Entry], since: Mapping[int, Users]) -> None:
    """Each decision begins where the one before it ended, up to the last one that is known of
    from elsewhere."""
    for entry, before in pairwise(entries):
        if entry.decided.first != before.decided.step + 1:
            raise ValueError(f"step {entry.decided.first - 1} is missing")
    if not entries and tables.has_periods():
        raise ValueError("all decisions are missing")
    if entries and tables.published().step > entries[0].decided.step:
        raise ValueError(f"step {tables.published().step} is missing")
    without = since.keys() - {entry.decided.step for entry in entries}
    if without:
        raise ValueError(f"step {min(without)} is missing")


def _resting(entries: Entries) -> dict[str, int]:
    """Items that rest, and the step in which each is asked about again."""
    closed = entries[0][0].decided.step
    resting: dict[str, int] = {}
    for entry, _ in reversed(entries):
        wakes = entry.decided.step + entry.decided.period.terms.refresh_steps
        if wakes > closed + 1:
            resting.update({hitter.item: wakes for hitter in entry.decided.hitters})
    return resting


def _counters(tables: Tables, entries: Entries, since: Mapping[int, Users]) -> tuple[Counters, int]:
    """The last snapshot and all charges since; how many users the snapshot has."""
    period = entries[0][0].decided.period
    counters = Counters(period.terms.contributions)
    taken = tables.snapshot(counters)
    snapshot_users = counters.charged
    begin = period.first - 1 if taken is None else taken
    for entry, charged in entries:
        here = since.get(entry.decided.step, ())
        if entry.decided.step > begin and len(here) != charged:
            raise ValueError(f"charges of step {entry.decided.step} are missing")
    if since:
        users, times = np.unique(np.concatenate(list(since.values())), return_counts=True)
        counters.charge(users, times.astype(np.uint16))
    return counters, snapshot_users
