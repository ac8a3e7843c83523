"""The journal of the Kafka service: a compacted topic, written in transactions.

It must be restored only after older instances were fenced (`Transactions.start`): then
nobody but us can write to the topic, and what is read is all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from aiokafka import TopicPartition
from numpy.typing import NDArray

from streamer.broker.connection import Connection
from streamer.broker.transactions import MARKER, Message, Transactions, read_committed
from streamer.errors import UnusableJournalError
from streamer.journal.base import Life, Restored, SnapshotRule
from streamer.journal.kafka_records import (
    FORMAT,
    LifeRecord,
    PeriodRecord,
    PublishedRecord,
    SnapshotRecord,
    StepEntry,
    chunks_of,
    counter_chunks,
    counters_of,
    encode,
    users_of,
)
from streamer.monitors.counters import Counters, Users
from streamer.stream.engine import EngineState
from streamer.stream.periods import Period
from streamer.stream.publication import Published
from streamer.stream.records import Decided, Entry

HISTORY = 20_000
"""How many decisions are kept to be looked at."""


class KafkaJournal:
    """Implements `Journal`; `key` is the fingerprint of the pseudonyms' key."""

    def __init__(
        self,
        connection: Connection,
        transactions: Transactions,
        topic: str,
        life: Life,
        events_topic: str,
        key: str,
    ) -> None:
        self._connection = connection
        self._transactions = transactions
        self._partition = TopicPartition(topic, 0)
        self._life = LifeRecord(FORMAT, life.length_ms, life.epoch_ms, events_topic)
        self._key = key
        self._rule = SnapshotRule()
        self.size = 0
        """Bytes that the journal had when it was restored."""
        self._is_new = True
        self._first_note = -1
        self._steps: dict[int, StepEntry] = {}
        self._periods: dict[int, PeriodRecord] = {}
        self._budget_keys: set[str] = set()
        """Keys of charges, counters and the snapshot's that are in the topic."""

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def append(self, entry: Entry) -> None:
        decided = entry.decided
        step = StepEntry(
            decided.step,
            decided.first,
            decided.period.number,
            decided.hitters,
            dict(entry.offsets),
        )
        period = PeriodRecord(decided.period, self._key)
        messages = [self._message(f"step/{decided.step}", encode(step))]
        if self._is_new:
            messages.append(self._message("life", encode(self._life)))
            messages.append(self.note_of(self._first_note))
        forgotten: set[str] = set()
        if decided.period.number not in self._periods:
            # A new period: it is pinned as it was planned, and all budgets start again.
            forgotten = set(self._budget_keys)
        if self._periods.get(decided.period.number) != period:
            messages.append(self._message(f"period/{decided.period.number}", encode(period)))
        charges = self._parts(f"charges/{decided.step}", chunks_of(decided.charged))
        messages += [self._message(key, chunk) for key, chunk in charges.items()]
        old_steps, old_periods = self._outdated(decided)
        deleted = [*(f"step/{n}" for n in old_steps), *(f"period/{n}" for n in old_periods)]
        messages += [self._message(key, None) for key in (*sorted(forgotten), *deleted)]
        await self._transactions.commit(messages)
        self._is_new = False
        if forgotten or decided.period.number not in self._periods:
            self._rule.forget()
        self._budget_keys = (self._budget_keys - forgotten) | set(charges)
        self._periods[decided.period.number] = period
        self._steps[decided.step] = step
        for number in old_steps:
            del self._steps[number]
        for number in old_periods:
            del self._periods[number]
        self._rule.charged(len(decided.charged))

    def note_of(self, step: int) -> Message:
        """The note that a step is published: part of the transaction that publishes it."""
        return self._message("published", encode(PublishedRecord(step)))

    async def note_published(self, published: Published) -> None:
        """Nothing to do: the note is written with what it is about.

        Only the one before the first append is kept, to be written with that.
        """
        if self._is_new:
            self._first_note = published.step

    async def snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        step = max(self._steps)
        parts = self._parts(f"counters/{step}", counter_chunks(users, charges))
        pointer = encode(SnapshotRecord(step, len(parts)))
        kept = {*parts, "snapshot"}
        await self._transactions.commit(
            [
                *(self._message(key, chunk) for key, chunk in parts.items()),
                self._message("snapshot", pointer),
                *(self._message(key, None) for key in sorted(self._budget_keys - kept)),
            ]
        )
        self._budget_keys = kept
        self._rule.taken(len(users))

    async def history(self, steps: int) -> Sequence[Decided]:
        last = sorted(self._steps)[-steps:]
        return [self._decided(self._steps[number]) for number in last]

    async def restore(self) -> Restored | None:
        state: dict[bytes, bytes] = {}
        marker, tail = None, 0
        async for record in read_committed(self._connection, self._partition, 0):
            tail = record.offset + 1
            if record.key == MARKER:
                marker = record.value
            elif record.value is None:
                state.pop(record.key, None)
            else:
                state[record.key] = record.value
        self._transactions.resume(marker, tail)
        self.size = sum(map(len, state.values()))
        try:
            return self._interpret({key.decode(): value for key, value in state.items()})
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise UnusableJournalError(
                f"the state topic {self._partition.topic} cannot be read ({error}): restore it; "
                "it is left as it is, because starting anew would spend the users' budgets twice"
            ) from None

    async def close(self) -> None:
        """The transactions are not ours to end."""

    def _interpret(self, state: dict[str, bytes]) -> Restored | None:
        if not state:
            return None
        self._check_life(msgspec.json.decode(state["life"], type=dict[str, object]))
        self._is_new = False
        for key, value in state.items():
            kind = key.partition("/")[0]
            if kind == "step":
                step = msgspec.json.decode(value, type=StepEntry)
                self._steps[step.step] = step
            elif kind == "period":
                period = msgspec.json.decode(value, type=PeriodRecord)
                self._periods[period.period.number] = period
            elif kind in {"charges", "counters", "snapshot"}:
                self._budget_keys.add(key)
        last = self._steps[max(self._steps)]
        current = self._periods[last.period]
        counters = self._counters(current.period, state)
        users, charges = counters.snapshot()
        published = msgspec.json.decode(state["published"], type=PublishedRecord).step
        return Restored(
            EngineState(last.step, current.period, users, charges, self._resting(last.step)),
            Entry(self._decided(last), last.offsets),
            Published(published),
            current.key,
        )

    def _resting(self, closed: int) -> dict[str, int]:
        """Items that rest, and the step in which each is asked about again."""
        resting: dict[str, int] = {}
        for step, entry in sorted(self._steps.items()):
            wakes = step + self._periods[entry.period].period.terms.refresh_steps
            if wakes > closed + 1:
                resting.update({hitter.item: wakes for hitter in entry.hitters})
        return resting

    def _counters(self, period: Period, state: dict[str, bytes]) -> Counters:
        """The last snapshot and all charges since."""
        counters = Counters(period.terms.contributions)
        if "snapshot" in state:
            snapshot = msgspec.json.decode(state["snapshot"], type=SnapshotRecord)
            keys = [f"counters/{snapshot.step}/{part}" for part in range(snapshot.chunks)]
            parts = [counters_of(state[key]) for key in keys]
            if parts:
                counters.restore(
                    np.concatenate([users for users, _ in parts]),
                    np.concatenate([charges for _, charges in parts]),
                )
        self._rule.taken(counters.charged)
        charged = [users_of(state[key]) for key in self._budget_keys if key.startswith("charges/")]
        if charged:
            users, times = np.unique(np.concatenate(charged), return_counts=True)
            counters.charge(users, times.astype(np.uint16))
            self._rule.charged(int(times.sum()))
        return counters

    def _check_life(self, kept: dict[str, object]) -> None:
        if kept.get("format") != FORMAT:
            raise UnusableJournalError(
                f"the state topic {self._partition.topic} has format {kept.get('format')}, this "
                f"program knows {FORMAT}: use the version that it was made with, or a newer one"
            )
        for setting, name in (
            ("stream.step_seconds", "length_ms"),
            ("stream.epoch", "epoch_ms"),
            ("kafka.events_topic", "events_topic"),
        ):
            if kept.get(name) != getattr(self._life, name):
                raise UnusableJournalError(
                    f"the state topic {self._partition.topic} was made with another {setting} "
                    f"({name} {kept.get(name)}, not {getattr(self._life, name)}): it is fixed for "
                    "a journal's life; use that, or another state topic"
                )

    def _outdated(self, decided: Decided) -> tuple[list[int], list[int]]:
        """Steps beyond what is kept, and the periods that only they belonged to."""
        surplus = len(self._steps) + 1 - HISTORY
        steps = sorted(self._steps)[:surplus] if surplus > 0 else []
        kept = {entry.period for step, entry in self._steps.items() if step not in set(steps)}
        kept.add(decided.period.number)
        return steps, [number for number in self._periods if number not in kept]

    def _decided(self, entry: StepEntry) -> Decided:
        period = self._periods[entry.period].period
        return Decided(entry.step, entry.first, period, entry.hitters)

    def _parts(self, prefix: str, chunks: Iterable[bytes]) -> dict[str, bytes]:
        return {f"{prefix}/{number}": chunk for number, chunk in enumerate(chunks)}

    def _message(self, key: str, value: bytes | None) -> Message:
        return Message(self._partition.topic, key.encode(), value)
