"""Restores the past from the records of a state topic, completely or not at all.

A tool may have deleted a key, or a wrong retention may have truncated the log, and a topic
does not show that. So decisions must be contiguous, and the last one records the units that
were charged in its period: all of them must be found, in the last snapshot or after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeVar

import msgspec
import numpy as np

from streamer.kafka import ledger_format_1
from streamer.kafka.ledger_records import (
    PeriodRecord,
    PublishedRecord,
    SnapshotRecord,
    StepEntry,
    charges_of,
    decode_hitters,
)
from streamer.ledger.contract import Entry, Restored
from streamer.ledger.past import added_up, check_continuity, past_of
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.privacy.prices import FULL
from streamer.stream.decided import Decided

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Budgets:
    """What the users were charged, and how much of that was read from where."""

    charges: Charges
    snapshot_users: int
    charges_since: int


@dataclass(frozen=True, slots=True)
class Past:
    """What is restored, and what the ledger needs to continue writing."""

    restored: Restored
    steps: dict[int, StepEntry]
    """In ascending order."""
    periods: dict[int, PeriodRecord]
    budgets: Budgets


def read_past(state: Mapping[str, bytes], is_format_1: bool = False) -> Past:
    """Restore from the last value of each key. ValueError: something is missing."""
    steps = sorted(_all(state, "step", StepEntry), key=lambda entry: entry.step)
    periods = {record.period.number: record for record in _all(state, "period", PeriodRecord)}
    published = msgspec.json.decode(needed(state, "published"), type=PublishedRecord).step
    _check_steps(steps, periods)
    entries = [
        Entry(decided_of(entry, periods, _hitters(entry, state)), entry.offsets, entry.read)
        for entry in steps
    ]
    check_continuity(entries, published)
    last = steps[-1]
    budgets = _read_budgets(state, is_format_1)
    _check_spent(last, budgets.charges.total, FULL if is_format_1 else 1)
    restored = past_of(entries, published, periods[last.period].key, budgets.charges)
    return Past(restored, {entry.step: entry for entry in steps}, periods, budgets)


def needed(state: Mapping[str, bytes], key: str) -> bytes:
    if key not in state:
        raise ValueError(f"{key} is missing")
    return state[key]


def decided_of(
    entry: StepEntry, periods: Mapping[int, PeriodRecord], hitters: tuple[Hitter[str], ...]
) -> Decided:
    """Without whom it charged."""
    return Decided(entry.step, entry.first, periods[entry.period].period, hitters)


def _hitters(entry: StepEntry, state: Mapping[str, bytes]) -> tuple[Hitter[str], ...]:
    """Those of a decision, wherever they are kept."""
    if entry.hitters is not None:
        return entry.hitters
    parts = [decode_hitters(needed(state, key)) for key in entry.part_keys]
    return tuple(chain.from_iterable(parts))


def _all(state: Mapping[str, bytes], kind: str, record: type[Record]) -> Iterator[Record]:
    decoder = msgspec.json.Decoder(record)
    return (decoder.decode(value) for key, value in state.items() if key.startswith(f"{kind}/"))


def _check_steps(steps: Sequence[StepEntry], periods: Mapping[int, PeriodRecord]) -> None:
    """The oldest step that the last one names must be there, and the period of each step."""
    if not steps:
        raise ValueError("all decisions are missing")
    if steps[-1].oldest < steps[0].step:
        raise ValueError(f"step {steps[-1].oldest} is missing")
    for entry in steps:
        if entry.period not in periods:
            raise ValueError(f"period {entry.period} is missing")


def _check_spent(last: StepEntry, found: int, units: int) -> None:
    spent = last.spent * units
    if found < spent:
        raise ValueError(
            f"{spent - found} of the {spent} units of charges of period {last.period} are missing"
        )
    if found > spent:
        raise ValueError(
            f"{found} units of charges found, but step {last.step}, the last one, records {spent}"
        )


def _read_budgets(state: Mapping[str, bytes], is_format_1: bool) -> Budgets:
    """The last snapshot plus all charges since. Its chunks are updated in parallel, on all
    cores."""
    read_charges, read_counters = charges_of, charges_of
    if is_format_1:
        read_charges, read_counters = ledger_format_1.charges_of, ledger_format_1.counters_of
    kept = [value for key, value in state.items() if key.startswith("charges/")]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = list(threads.map(read_counters, _snapshot(state))) or [Charges.none()]
        since = list(threads.map(read_charges, kept))
        snapshot_users = sum(map(len, parts))
        charges_since = sum(map(len, since))
        users = np.empty(snapshot_users + charges_since, dtype=np.uint64)
        units = np.empty(len(users), dtype=np.uint16)
        end = 0
        for part in threads.map(added_up, parts, _divided(since, parts)):
            start, end = end, end + len(part)
            users[start:end], units[start:end] = part.users, part.units
    return Budgets(Charges(users[:end], units[:end]), snapshot_users, charges_since)


def _snapshot(state: Mapping[str, bytes]) -> list[bytes]:
    """The chunks of the last snapshot, in ascending order of their users."""
    if "snapshot" not in state:
        return []
    snapshot = msgspec.json.decode(state["snapshot"], type=SnapshotRecord)
    keys = [f"counters/{snapshot.step}/{part}" for part in range(snapshot.chunks)]
    return [needed(state, key) for key in keys]


def _divided(since: Sequence[Charges], parts: Sequence[Charges]) -> list[list[Charges]]:
    """Charges by the chunk of the snapshot that they belong to."""
    begins = np.array([part.users[0] for part in parts[1:]], dtype=np.uint64)
    divided: list[list[Charges]] = [[] for _ in parts]
    for charges in since:
        users = charges.users
        first, last = np.searchsorted(begins, users[[0, -1]], side="right").tolist()
        cuts = np.searchsorted(users, begins[first:last]).tolist()
        for part, (start, end) in enumerate(pairwise([0, *cuts, len(users)]), first):
            divided[part].append(Charges(users[start:end], charges.units[start:end]))
    return divided
