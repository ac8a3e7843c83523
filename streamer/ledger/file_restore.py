"""Restores the past from the tables of a file ledger, completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.ledger.contract import Entry, Restored
from streamer.ledger.file_tables import Snapshot, Tables
from streamer.ledger.past import added_up, check_continuity, past_of
from streamer.monitors.counters import Charges


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
    snapshot = tables.snapshot()
    _check_charges(entries, charged, since, snapshot)
    counters = snapshot.charges if snapshot else Charges.none()
    period = tables.period(entries[-1].decided.period.number)
    key = period[1] if period else ""
    restored = past_of(entries, published, key, added_up(counters, list(since.values())))
    return Past(restored, len(counters), sum(map(len, since.values())), outputs)


def _check_charges(
    entries: Sequence[Entry],
    charged: Sequence[int],
    since: Mapping[int, Charges],
    snapshot: Snapshot | None,
) -> None:
    """All charges of this period must be there, in the snapshot or after it."""
    without = since.keys() - {entry.decided.step for entry in entries}
    if without:
        raise ValueError(f"step {min(without)} is missing")
    begin = snapshot.step if snapshot else entries[-1].decided.period.first - 1
    for entry, number in zip(entries, charged, strict=True):
        here = since.get(entry.decided.step, ())
        if entry.decided.step > begin and len(here) != number:
            raise ValueError(f"charges of step {entry.decided.step} are missing")
