"""The ledger of the Kafka service: a compacted topic, written in transactions.

Restore it only after older instances are fenced (`Transactions.start`): then no other
process can write to the topic, and what is read is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np
from aiokafka import TopicPartition
from numpy.typing import NDArray

from streamer.errors import MonitorError, UnusableJournalError
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
from streamer.kafka.ledger_restore import decided_of
from streamer.kafka.state_topic import interpret, read_state
from streamer.kafka.topics import partitions_of
from streamer.kafka.transactions import Message, Transactions, ends_of
from streamer.ledger.contract import Entry, Life, Restored, SnapshotRule
from streamer.ledger.past import HISTORY, asked_again
from streamer.monitors.seam import Users
from streamer.stream.publication import Publication


@dataclass(frozen=True, slots=True)
class LedgerTopics:
    """The topics of a ledger: where it is stored, where it publishes, and which events its
    decisions are about."""

    state: str
    hitters: str
    steps: str
    events: str


class KafkaLedger:
    """Implements `Ledger`; `key` is the fingerprint of the pseudonyms' key."""

    def __init__(
        self,
        connection: Connection,
        transactions: Transactions,
        topics: LedgerTopics,
        life: Life,
        key: str,
        start_anew: bool = False,
    ) -> None:
        """`start_anew`: start even if the steps topic already holds steps."""
        self._connection = connection
        self._transactions = transactions
        self._topics = topics
        self._life = life
        self._key = key
        self._start_anew = start_anew
        self.follows_lost_state = False
        """Whether the state that earlier steps were published from is lost."""
        self._rule = SnapshotRule()
        self._is_new: bool | None = None
        """None: not known before `restore`."""
        self._spent = 0
        self._steps: dict[int, StepEntry] = {}
        """In ascending order."""
        self._periods: dict[int, PeriodRecord] = {}
        self._budget_keys: set[str] = set()
        """Keys in the topic that hold charges, counters or the snapshot."""

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def restore(self) -> Restored | None:
        records = await read_state(self._connection, self._topics.state)
        self._transactions.resume(records.marker, records.tail)
        past = await asyncio.to_thread(
            interpret, records.state, self._topics.state, self._topics.events, self._life
        )
        self._is_new = past is None
        if past is None:
            await self._check_nothing_is_lost()
            return None
        self._steps, self._periods, self._spent = past.steps, past.periods, past.spent
        self._budget_keys = {
            key
            for key in map(bytes.decode, records.state)
            if key.partition("/")[0] in {"charges", "counters", "snapshot"}
        }
        self._rule.taken(past.budgets.snapshot_users)
        self._rule.charged(past.budgets.charges_since)
        return past.restored

    async def claim(self) -> None:
        await self._transactions.announce()

    async def append(self, entry: Entry) -> None:
        if self._is_new is None:
            raise MonitorError("a ledger must be restored before anything is appended")
        decided = entry.decided
        number = decided.period.number
        # A new period is pinned as planned, and all budgets reset.
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
            life = LifeRecord(
                FORMAT, self._life.length_ms, self._life.epoch_ms, self._topics.events
            )
            messages.append(self._message("life", encode(life)))
            messages.append(self._note(decided.first - 1))
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

    async def publish(self, publication: Publication) -> None:
        """Results, step records and the `published` record, in one transaction."""
        await self._transactions.commit(
            [
                *(
                    Message(self._topics.hitters, record.item.encode(), encode(record))
                    for record in publication.results
                ),
                *(
                    Message(self._topics.steps, str(record.step).encode(), encode(record))
                    for record in publication.steps
                ),
                self._note(publication.through),
            ]
        )

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

    async def _check_nothing_is_lost(self) -> None:
        """Published steps without a state: the budgets that they were charged to are lost."""
        numbers = await partitions_of(self._connection, self._topics.steps)
        steps = [TopicPartition(self._topics.steps, number) for number in numbers]
        self.follows_lost_state = any((await ends_of(self._connection, steps)).values())
        if self.follows_lost_state and not self._start_anew:
            raise UnusableJournalError(
                f"the state topic {self._topics.state} is empty, but {self._topics.steps} holds "
                "steps: restore the state topic, or set kafka.start_anew to true once, which "
                "spends the users' budgets again"
            )

    def _outdated_steps(self, closed: int) -> list[int]:
        """Steps older than the kept history, if their items no longer rest."""
        surplus = max(0, len(self._steps) + 1 - HISTORY)
        oldest = islice(self._steps.values(), surplus)
        old = takewhile(
            lambda entry: asked_again(decided_of(entry, self._periods)) <= closed + 1, oldest
        )
        return [entry.step for entry in old]

    def _note(self, step: int) -> Message:
        return self._message("published", encode(PublishedRecord(step)))

    def _parts(self, prefix: str, chunks: Iterable[bytes]) -> dict[str, bytes]:
        return {f"{prefix}/{number}": chunk for number, chunk in enumerate(chunks)}

    def _message(self, key: str, value: bytes | None) -> Message:
        return Message(self._topics.state, key.encode(), value)
