"""Events from all partitions of a Kafka topic, starting at the offsets in the ledger."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from numpy.typing import NDArray

from streamer.errors import SettingError, UnreachableError
from streamer.kafka.clients import BatchConsumer
from streamer.kafka.connection import Connection
from streamer.kafka.ending import end_client
from streamer.kafka.reasons import broker_errors
from streamer.kafka.topics import TopicAdmin
from streamer.stream.intake import Batch

COMMIT_SECONDS = 5.0
"""Between two commits of the group's offsets."""
HELD_SECONDS = 5.0
"""After this time without a record, although the partition's leader has more, it is logged."""
WATCHDOG_SECONDS = 30.0
"""After this time without a record, although there are some, the consumer is replaced."""
_log = logging.getLogger(__name__)


class KafkaSource:
    """Implements `Source`: one consumer with all partitions, assigned manually, not by a group.

    The group's committed offsets are for tools that show lag; nothing depends on them. When
    the broker does not answer, the consumer is closed, and the next call creates another.
    """

    ended = False

    def __init__(
        self,
        connection: Connection,
        admin: TopicAdmin,
        topic: str,
        group: str,
        most_records: int = 5_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._topic = topic
        self._group = group
        self._most_records = most_records
        self._clock = clock
        self._consumer: BatchConsumer | None = None
        self._positions: dict[int, int] = {}
        self._committed = clock()
        """When offsets were last committed."""
        self._stuck_since: float | None = None
        """Since when there is something to read, but nothing arrives."""
        self._log_ends: dict[int, int] = {}
        """Where the leaders' logs ended when they were last asked."""
        self._held: dict[int, _Held] = {}
        self.lost = 0
        """Records that were deleted before they were read."""

    async def start(self, offsets: Mapping[str, int]) -> None:
        """Continue at these offsets; a partition without one is read from its beginning."""
        self._positions = {int(name): offset for name, offset in offsets.items()}
        async with self._working():
            pass

    async def stop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await end_client(consumer)

    async def partitions(self) -> list[str]:
        async with self._working():
            if await self._admin.partitions(self._topic) - set(self._positions):
                await self._reopen()
        return [str(number) for number in sorted(self._positions)]

    async def poll(self, timeout_ms: int, skip: Collection[str] = ()) -> list[Batch]:
        async with self._working() as consumer:
            self._pause(consumer, skip)
            await self._commit(consumer)
            try:
                found = await consumer.getmany(
                    timeout_ms=timeout_ms, max_records=self._most_records
                )
            except OffsetOutOfRangeError:
                await self._reopen()  # this logs what is lost
                return []
        batches = []
        for partition, records in found.items():
            self._stuck_since = None
            self._positions[partition.partition] = records[-1].offset + 1
            batches.append(
                Batch(
                    str(partition.partition),
                    _offsets(records),
                    [record.value for record in records],
                    np.array([record.timestamp for record in records]),
                    KafkaEnvelopes(records),
                )
            )
        return batches

    async def drained(self) -> set[str]:
        """Read up to the end of their leaders' logs.

        Not up to the high watermark or the last stable offset, where consumers must stop: while
        replication stalls or a transaction is open, the leader has records behind them that have
        arrived and count for steps that are about to close. So these steps close late, and with
        their events. The wait ends when followers catch up or are dropped from the in-sync
        replicas, and when the transaction ends or times out.

        There is no fallback: a partition whose leader does not answer, or names an end that
        reading is already past, is not drained.
        """
        async with self._working() as consumer:
            ends = await consumer.log_ends(self._assigned())
            # Positions also move over marks that are no records.
            places = {p: await consumer.position(p) for p in ends}
            unread = {p for p, end in ends.items() if places[p] != end}
            self._log_ends = {p.partition: end for p, end in ends.items()}
            wanted = [p for p in unread - consumer.paused() if places[p] < ends[p]]
            self._say_what_is_held({p.partition: places[p] for p in wanted})
            await self._watch_for_silence(consumer, unread)
        return {str(p.partition) for p in ends.keys() - unread}

    def lag(self) -> dict[str, int]:
        """Records of each partition that are not read yet, as of the last answer from it: also
        those that its leader has and that cannot be read yet."""
        consumer = self._consumer
        if consumer is None:
            return {}
        lags = {}
        for partition in consumer.assignment():  # of none while it connects
            number = partition.partition
            end = max(consumer.last_stable_offset(partition) or -1, self._log_ends.get(number, -1))
            if end >= 0:
                lags[str(number)] = max(0, end - self._positions[number])
        return lags

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[BatchConsumer]:
        """A consumer, created if there is none; after an error it is closed."""
        try:
            with broker_errors(), self._refusals():
                yield self._consumer or await self._open()
        except UnreachableError:
            await self.stop()
            raise

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors that only different settings or permissions can fix."""
        try:
            yield
        except TopicAuthorizationFailedError:
            raise SettingError(
                "kafka.events_topic", self._topic, "this user may not read it"
            ) from None
        except GroupAuthorizationFailedError:
            raise SettingError("kafka.group_id", self._group, "this user may not use it") from None

    def _pause(self, consumer: BatchConsumer, skip: Collection[str]) -> None:
        chosen = {TopicPartition(self._topic, int(name)) for name in skip}
        if consumer.paused() != chosen:
            consumer.resume(*(consumer.paused() - chosen))
            consumer.pause(*chosen)

    async def _commit(self, consumer: BatchConsumer) -> None:
        """Every few seconds. A refusal does not matter; a timeout does: it is raised."""
        if self._clock() - self._committed <= COMMIT_SECONDS:
            return
        self._committed = self._clock()
        with contextlib.suppress(KafkaError):
            async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                await consumer.commit({p: await consumer.position(p) for p in self._assigned()})

    def _say_what_is_held(self, unread: Mapping[int, int]) -> None:
        """Log once per partition that steps wait for records that cannot be read yet. `unread`: the
        positions in partitions that are not read up to their ends."""
        now = self._clock()
        for number, held in list(self._held.items()):
            if unread.get(number) != held.position:
                del self._held[number]
                if held.logged:
                    _log.info("partition %d: reading continues at offset %d", number, held.position)
        for number, position in unread.items():
            held = self._held.setdefault(number, _Held(position, now))
            if not held.logged and now - held.since > HELD_SECONDS:
                held.logged = True
                _log.warning(
                    "partition %d: steps wait for %d records that its leader has, but that could "
                    "not be read for %g s (not replicated, or in an open transaction); read up "
                    "to offset %d",
                    *(number, self._log_ends[number] - position, now - held.since, position),
                )

    async def _watch_for_silence(
        self, consumer: BatchConsumer, unread: Collection[TopicPartition]
    ) -> None:
        """Consumers have been seen to stop silently: nothing comes although there is more."""
        now = self._clock()
        if not unread:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since > WATCHDOG_SECONDS:
            self._stuck_since = None
            readable = await consumer.end_offsets(list(unread))
            if all([await consumer.position(p) >= end for p, end in readable.items()]):
                return
            _log.warning(
                "nothing was read for %g s although there is more: reconnecting", WATCHDOG_SECONDS
            )
            await self._reopen()

    async def _reopen(self) -> None:
        """Replace the consumer by a new one at the same position."""
        await self.stop()
        await self._open()

    async def _open(self) -> BatchConsumer:
        consumer = BatchConsumer(
            **self._connection.options(),
            group_id=self._group,
            isolation_level="read_committed",
            auto_offset_reset="none",  # we seek, and must notice lost records
            enable_auto_commit=False,
            max_poll_records=self._most_records,
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=1 << 20,
        )
        self._consumer = consumer  # before it is started: if that fails, it is closed as well
        await consumer.start()
        numbers = sorted(await self._admin.partitions(self._topic))
        partitions = [TopicPartition(self._topic, number) for number in numbers]
        begins = await consumer.beginning_offsets(partitions)
        # Right after a leader changed, the high watermark may be behind what was read.
        ends = await consumer.log_ends(partitions)
        consumer.assign(partitions)
        for partition in partitions:
            offset = self._place(partition.partition, begins[partition], ends[partition])
            self._positions[partition.partition] = offset
            consumer.seek(partition, offset)
        return consumer

    def _place(self, number: int, begin: int, end: int) -> int:
        """Where reading continues: at the wanted offset, or at the beginning if that is gone."""
        wanted = self._positions.get(number)
        if wanted is None:
            return begin
        if wanted < begin:
            self.lost += begin - wanted
            _log.warning(
                "partition %d: reading should continue at offset %d, but the partition starts at "
                "%d: the topic's retention is too short, events are lost",
                *(number, wanted, begin),
            )
        elif wanted > end:
            _log.warning(
                "partition %d: reading should continue at offset %d, but the partition ends at %d: "
                "it was recreated or has lost events; it is read from its beginning",
                *(number, wanted, end),
            )
        return wanted if begin <= wanted <= end else begin

    def _assigned(self) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number) for number in sorted(self._positions)]


@dataclass(frozen=True, slots=True)
class KafkaEnvelopes:
    """Implements `Envelopes` for parsed records: most mappings never ask for them."""

    records: Sequence[Any]

    def keys(self) -> list[bytes | None]:
        return [record.key for record in self.records]

    def headers(self) -> list[Sequence[tuple[str, bytes | None]]]:
        return [record.headers for record in self.records]


@dataclass(slots=True)
class _Held:
    """A partition whose leader has more than can be read at this position."""

    position: int
    since: float
    logged: bool = False


def _offsets(records: Sequence[Any]) -> NDArray[np.int64]:
    """Offsets increase: usually without a gap, so the first and the last are enough."""
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return np.arange(first, last + 1)
    return np.array([record.offset for record in records])
