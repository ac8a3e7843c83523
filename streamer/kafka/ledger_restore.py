"""Restores the past from the records of a state topic, completely or not at all.

A tool may have deleted a key, or a wrong retention may have truncated the log, and a topic
does not show that. So decisions must be contiguous, and the last one records the number of
charges in its period: all of them must be found, in the last snapshot or after it.
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
from numpy.typing import NDArray

from streamer.kafka.ledger_records import (
    PeriodRecord,
    PublishedRecord,
    SnapshotRecord,
    StepEntry,
    counters_of,
    decode_hitters,
    users_of,
)
from streamer.ledger.contract import Entry, Restored
from streamer.ledger.past import check_continuity, past_of
from streamer.monitors.seam import Hitter, Users
from streamer.stream.decided import Decided

Charges = NDArray[np.uint16]
Part = tuple[Users, Charges]
_NOBODY: Part = (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint16))
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Budgets:
    """The charged users, in ascending order, and how often each was charged."""

    users: Users
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
    spent: int
    budgets: Budgets


def read_past(state: Mapping[str, bytes]) -> Past:
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
    budgets = _read_budgets(state)
    _check_spent(last, int(budgets.charges.sum(dtype=np.int64)))
    key = periods[last.period].key
    restored = past_of(entries, published, key, budgets.users, budgets.charges)
    return Past(restored, {entry.step: entry for entry in steps}, periods, last.spent, budgets)


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


def _check_spent(last: StepEntry, found: int) -> None:
    if found < last.spent:
        raise ValueError(
            f"{last.spent - found} of the {last.spent} charges of period {last.period} are missing"
        )
    if found > last.spent:
        raise ValueError(
            f"{found} charges found, but step {last.step}, the last one, records {last.spent}"
        )


def _read_budgets(state: Mapping[str, bytes]) -> Budgets:
    """The last snapshot plus all charges since. Its chunks are updated in parallel, on all
    cores."""
    kept = [value for key, value in state.items() if key.startswith("charges/")]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = list(threads.map(counters_of, _snapshot(state))) or [_NOBODY]
        since = list(threads.map(users_of, kept))
        snapshot_users = sum(len(users) for users, _ in parts)
        charges_since = sum(map(len, since))
        users = np.empty(snapshot_users + charges_since, dtype=np.uint64)
        charges = np.empty(len(users), dtype=np.uint16)
        end = 0
        for merged in threads.map(_merged, parts, _divided(since, parts)):
            start, end = end, end + len(merged[0])
            users[start:end], charges[start:end] = merged
    return Budgets(users[:end], charges[:end], snapshot_users, charges_since)


def _snapshot(state: Mapping[str, bytes]) -> list[bytes]:
    """The chunks of the last snapshot, in ascending order of their users."""
    if "snapshot" not in state:
        return []
    snapshot = msgspec.json.decode(state["snapshot"], type=SnapshotRecord)
    keys = [f"counters/{snapshot.step}/{part}" for part in range(snapshot.chunks)]
    return [needed(state, key) for key in keys]


def _divided(since: Sequence[Users], parts: Sequence[Part]) -> list[list[Users]]:
    """Charges, each in ascending order, by the chunk of the snapshot that they belong to."""
    begins = np.array([users[0] for users, _ in parts[1:]], dtype=np.uint64)
    divided: list[list[Users]] = [[] for _ in parts]
    for users in since:
        first, last = np.searchsorted(begins, users[[0, -1]], side="right").tolist()
        cuts = np.searchsorted(users, begins[first:last]).tolist()
        for part, (start, end) in enumerate(pairwise([0, *cuts, len(users)]), first):
            divided[part].append(users[start:end])
    return divided


def _merged(part: Part, since: Sequence[Users]) -> Part:
    """Counters, with each user's charges since added."""
    if not since:
        return part
    known, charges = part
    users = np.concatenate([known, np.sort(np.concatenate(since))])
    # A stable sort merges two ascending runs: faster than looking up each user.
    order = users.argsort(kind="stable")
    users = users.take(order)
    begins = np.flatnonzero(np.concatenate(([True], users[1:] != users[:-1])))
    times = np.diff(begins, append=len(users))
    # Each entry is one charge, but a user's entry from the snapshot, the first, may be more.
    more = np.zeros(len(users), dtype=np.int64)
    more[: len(known)] = charges - 1
    times += more.take(order.take(begins))
    return users.take(begins), times.astype(np.uint16)
