"""The ledger of the Kafka service: a compacted topic, written in transactions.

Restore it only after older instances are fenced (`Transactions.start`): then no other
process can write to the topic, and what is read is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

import msgspec
from aiokafka import TopicPartition

from streamer.errors import MonitorError, UnusableJournalError
from streamer.kafka.connection import Connection
from streamer.kafka.ledger_records import (
    LifeRecord,
    PeriodRecord,
    PublishedRecord,
    SnapshotRecord,
    StepEntry,
    chunks_of,
    encode,
    step_records,
)
from streamer.kafka.ledger_restore import decided_of
from streamer.kafka.state_topic import interpret, read_state
from streamer.kafka.steps_topic import last_published
from streamer.kafka.topics import TopicAdmin
from streamer.kafka.transactions import Message, Transactions, ends_of
from streamer.ledger.contract import Entry, Life, Restored, SnapshotRule
from streamer.ledger.past import HISTORY, asked_again
from streamer.monitors.counters import Charges
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
        self._life_record = LifeRecord.of(life, topics.events)
        self._life_kept: LifeRecord | None = None
        """As it is in the topic: None for a new ledger, without ids if 0.1.0 wrote it."""
        self._outdated: Charges | None = None
        """The charges that were restored from an older format, until the ledger is claimed."""

    @property
    def snapshot_due(self) -> bool:
        return self._rule.due

    async def restore(self) -> Restored | None:
        ends = await self._look_around()
        # Before the state is read: a step that is published meanwhile is in the state, too.
        shown = await last_published(self._connection, ends, self._life)
        records = await read_state(self._connection, self._topics.state)
        self._transactions.resume(records.marker, records.tail)
        past = await asyncio.to_thread(
            interpret, records.state, self._topics.state, self._life_record
        )
        self._is_new = past is None
        if past is None:
            self._check_nothing_is_lost(ends)
            return None
        self._check_not_behind(past.restored.published, shown)
        self._life_kept = msgspec.json.decode(records.state[b"life"], type=LifeRecord)
        self._steps, self._periods = past.steps, past.periods
        self._spent = past.budgets.charges.total
        if self._life_kept.format != self._life_record.format:
            self._outdated = past.budgets.charges
        self._budget_keys = {
            key
            for key in map(bytes.decode, records.state)
            if key.partition("/")[0] in {"charges", "counters", "snapshot"}
        }
        self._rule.taken(past.budgets.snapshot_users)
        self._rule.charged(past.budgets.charges_since)
        return past.restored

    async def claim(self) -> None:
        if self._outdated is None:
            await self._transactions.announce()
        else:
            await self._convert(self._outdated)
            self._outdated = None

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
            spent=decided.charges.total + (0 if is_new_period else self._spent),
            read=dict(entry.read),
        )
        first_period = self._steps.get(step.oldest, step).period
        old_periods = [each for each in self._periods if each < first_period]
        period = PeriodRecord(decided.period, self._key)
        charges = self._parts(f"charges/{decided.step}", chunks_of(decided.charges))
        step, records = step_records(step)
        messages = [self._message(key, value) for key, value in records.items()]
        if self._life_kept != self._life_record:
            messages.append(self._message("life", encode(self._life_record)))
        if self._is_new:
            messages.append(self._note(decided.first - 1))
        if self._periods.get(number) != period:
            messages.append(self._message(f"period/{number}", encode(period)))
        messages += [self._message(key, chunk) for key, chunk in charges.items()]
        deleted = [
            *(f"step/{each}" for each in old_steps),
            *(key for each in old_steps for key in self._steps[each].part_keys),
            *(f"period/{n}" for n in old_periods),
        ]
        messages += [self._message(key, None) for key in (*forgotten, *deleted)]
        await self._transactions.commit(messages)
        self._is_new, self._life_kept = False, self._life_record
        if is_new_period:
            self._rule.forget()
        self._budget_keys = (self._budget_keys - set(forgotten)) | set(charges)
        self._spent = step.spent
        self._periods[number] = period
        # Its hitters are not needed any more: there may be many, in each of thousands of steps.
        self._steps[decided.step] = msgspec.structs.replace(step, hitters=())
        for each in old_steps:
            del self._steps[each]
        for each in old_periods:
            del self._periods[each]
        self._rule.charged(len(decided.charges))

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

    async def snapshot(self, charges: Charges) -> None:
        await self._replace_budgets(charges, [])

    async def _convert(self, charges: Charges) -> None:
        """Store the charges of an older format as a snapshot in units. From then on earlier
        versions refuse the topic."""
        number, last = next(reversed(self._steps.items()))
        last = msgspec.structs.replace(last, spent=self._spent)
        await self._replace_budgets(
            charges,
            [
                self._message("life", encode(self._life_record)),
                self._message(f"step/{number}", encode(last)),
            ],
        )
        self._steps[number], self._life_kept = last, self._life_record

    async def _replace_budgets(self, charges: Charges, more: Sequence[Message]) -> None:
        """Store all counters in place of the charges that led to them, and more with them."""
        step = next(reversed(self._steps))
        parts = self._parts(f"counters/{step}", chunks_of(charges))
        pointer = encode(SnapshotRecord(step, len(parts)))
        kept = {*parts, "snapshot"}
        await self._transactions.commit(
            [
                *more,
                *(self._message(key, chunk) for key, chunk in parts.items()),
                self._message("snapshot", pointer),
                *(self._message(key, None) for key in sorted(self._budget_keys - kept)),
            ]
        )
        self._budget_keys = kept
        self._rule.taken(len(charges))

    async def _look_around(self) -> dict[TopicPartition, int]:
        """Which cluster this is, and where the partitions of its steps topic end."""
        admin = TopicAdmin(self._connection)
        await admin.start()
        try:
            cluster = await admin.cluster_id()
            numbers = await admin.partitions(self._topics.steps)
        finally:
            await admin.stop()
        self._life_record = LifeRecord.of(
            self._life, self._topics.events, cluster, self._transactions.identity
        )
        steps = [TopicPartition(self._topics.steps, number) for number in numbers]
        return await ends_of(self._connection, steps)

    def _check_not_behind(self, published: int, shown: int | None) -> None:
        """Steps were published that the state does not know? It would decide them again."""
        if shown is not None and shown > published:
            raise UnusableJournalError(
                f"the state topic {self._topics.state} is behind what was published: it ends with "
                f"step {published}, but {self._topics.steps} holds step {shown}, so it is an older "
                "copy, or has lost its end: restore the newest copy, or name a new, empty topic in "
                "kafka.state_topic and set kafka.start_anew to true once, which spends the users' "
                "budgets again"
            )

    def _check_nothing_is_lost(self, ends: Mapping[TopicPartition, int]) -> None:
        """No state, but steps were published? The budgets they were paid from are lost."""
        self.follows_lost_state = any(ends.values())
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
            lambda entry: asked_again(decided_of(entry, self._periods, ())) <= closed + 1, oldest
        )
        return [entry.step for entry in old]

    def _note(self, step: int) -> Message:
        return self._message("published", encode(PublishedRecord(step)))

    def _parts(self, prefix: str, chunks: Iterable[bytes]) -> dict[str, bytes]:
        return {f"{prefix}/{number}": chunk for number, chunk in enumerate(chunks)}

    def _message(self, key: str, value: bytes | None) -> Message:
        return Message(self._topics.state, key.encode(), value)
