"""The journal of the Kafka service: a compacted topic, written in transactions.

It must be restored only after older instances were fenced (`Transactions.start`): then
nobody but us can write to the topic, and what is read is all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile

import msgspec
import numpy as np
from aiokafka import TopicPartition
from numpy.typing import NDArray

from streamer.errors import UnusableJournalError
from streamer.kafka.connection import Connection
from streamer.kafka.ledger_records import (
    FORMAT,
    LifeRecord,
    PeriodRecord,
    PublishedRecord,
    SnapshotRecord,
    StepEntry,
    chunks_of,
    counter_chunks,
    encode,
)
from streamer.kafka.ledger_restore import decided_of, needed, read_past, wakes
from streamer.kafka.transactions import MARKER, Message, Transactions, read_committed
from streamer.ledger.base import Life, Restored, SnapshotRule
from streamer.monitors.counters import Users
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
        self._spent = 0
        self._steps: dict[int, StepEntry] = {}
        """In rising order."""
        self._periods: dict[int, PeriodRecord] = {}
        self._budget_keys: set[str] = set()
        """Keys of charges, counters and the snapshot's that are in the topic."""

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def append(self, entry: Entry) -> None:
        decided = entry.decided
        number = decided.period.number
        # A new period: it is pinned as it was planned, and all budgets start again.
        is_new_period = number not in self._periods
        forgotten = sorted(self._budget_keys) if is_new_period else []
        old_steps = self._outdated_steps(decided.step)
        step = StepEntry(
            decided.step,
            decided.first,
            number,
            decided.hitters,
            dict(entry.offsets),
            oldest=next(islice(self._steps, len(old_steps), None), decided.step),
            spent=len(decided.charged) + (0 if is_new_period else self._spent),
        )
        first_period = self._steps.get(step.oldest, step).period
        old_periods = [each for each in self._periods if each < first_period]
        period = PeriodRecord(decided.period, self._key)
        charges = self._parts(f"charges/{decided.step}", chunks_of(decided.charged))
        messages = [self._message(f"step/{decided.step}", encode(step))]
        if self._is_new:
            messages.append(self._message("life", encode(self._life)))
            messages.append(self.note_of(self._first_note))
        if self._periods.get(number) != period:
            messages.append(self._message(f"period/{number}", encode(period)))
        messages += [self._message(key, chunk) for key, chunk in charges.items()]
        deleted = [*(f"step/{each}" for each in old_steps), *(f"period/{n}" for n in old_periods)]
        messages += [self._message(key, None) for key in (*forgotten, *deleted)]
        await self._transactions.commit(messages)
        self._is_new = False
        if is_new_period:
            self._rule.forget()
        self._budget_keys = (self._budget_keys - set(forgotten)) | set(charges)
        self._spent = step.spent
        self._periods[number] = period
        self._steps[decided.step] = step
        for each in old_steps:
            del self._steps[each]
        for each in old_periods:
            del self._periods[each]
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
        step = next(reversed(self._steps))
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
        last = list(self._steps.values())[-steps:]
        return [decided_of(entry, self._periods) for entry in last]

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
            return await asyncio.to_thread(self._interpret, state)
        except (msgspec.MsgspecError, ValueError) as error:
            raise UnusableJournalError(
                f"the state topic {self._partition.topic} cannot be used ({error}): restore it "
                "from a copy, or name a new one in kafka.state_topic and set kafka.start_anew to "
                "true once, which spends the users' budgets again"
            ) from None

    async def close(self) -> None:
        """The transactions are not ours to end."""

    def _interpret(self, found: dict[bytes, bytes]) -> Restored | None:
        if not found:
            return None
        state = {key.decode(): value for key, value in found.items()}
        self._check_life(msgspec.json.decode(needed(state, "life"), type=dict[str, object]))
        past = read_past(state)
        self._is_new = False
        self._steps, self._periods, self._spent = past.steps, past.periods, past.spent
        self._budget_keys = {
            key for key in state if key.partition("/")[0] in {"charges", "counters", "snapshot"}
        }
        self._rule.taken(past.budgets.snapshot_users)
        self._rule.charged(past.budgets.charges_since)
        return past.restored

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

    def _outdated_steps(self, closed: int) -> list[int]:
        """Steps beyond what is kept, if their items no longer rest."""
        surplus = max(0, len(self._steps) + 1 - HISTORY)
        oldest = islice(self._steps.values(), surplus)
        old = takewhile(lambda entry: wakes(entry, self._periods) <= closed + 1, oldest)
        return [entry.step for entry in old]

    def _parts(self, prefix: str, chunks: Iterable[bytes]) -> dict[str, bytes]:
        return {f"{prefix}/{number}": chunk for number, chunk in enumerate(chunks)}

    def _message(self, key: str, value: bytes | None) -> Message:
        return Message(self._partition.topic, key.encode(), value)
