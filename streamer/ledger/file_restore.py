"""Restores the past from the tables of a file ledger, completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.ledger.contract import Entry, Restored
from streamer.ledger.file_tables import Tables
from streamer.ledger.past import check_continuity, past_of
from streamer.monitors.counters import Counters
from streamer.monitors.seam import Users


@dataclass(frozen=True, slots=True)
class Past:
    """What is restored, and the sizes of the snapshot, the charges since and the outputs."""

    restored: Restored
    snapshot_users: int
    charges_since: int
    outputs: Mapping[str, int]
    """The length of each output file after the last recorded publication."""


def read_past(tables: Tables) -> Past | None:
    """None: nothing was decided yet. ValueError: something is missing."""
    found = tables.entries()
    entries, charged = [entry for entry, _ in found], [number for _, number in found]
    since = tables.charges()
    if not entries:
        if tables.has_periods() or since:
            raise ValueError("all decisions are missing")
        return None
    published, outputs = tables.published()
    check_continuity(entries, published)
    counters, snapshot_users = _counters(tables, entries, charged, since)
    period = tables.period(entries[-1].decided.period.number)
    key = period[1] if period else ""
    restored = past_of(entries, published, key, *counters.snapshot())
    return Past(restored, snapshot_users, sum(map(len, since.values())), outputs)


def _counters(
    tables: Tables, entries: Sequence[Entry], charged: Sequence[int], since: Mapping[int, Users]
) -> tuple[Counters, int]:
    """The last snapshot plus all charges since, and the number of users in the snapshot."""
    without = since.keys() - {entry.decided.step for entry in entries}
    if without:
        raise ValueError(f"step {min(without)} is missing")
    period = entries[-1].decided.period
    counters = Counters(period.terms.contributions)
    taken = tables.snapshot(counters)
    snapshot_users = counters.charged
    begin = period.first - 1 if taken is None else taken
    for entry, number in zip(entries, charged, strict=True):
        here = since.get(entry.decided.step, ())
        if entry.decided.step > begin and len(here) != number:
            raise ValueError(f"charges of step {entry.decided.step} are missing")
    if since:
        users, times = np.unique(np.concatenate(list(since.values())), return_counts=True)
        counters.charge(users, times.astype(np.uint16))
    return counters, snapshot_users
