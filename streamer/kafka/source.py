"""Events from a Kafka topic: all of its partitions, from offsets that the ledger knows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
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
WATCHDOG_SECONDS = 30.0
"""Without a record, although there are some: then the consumer is replaced."""
_log = logging.getLogger(__name__)


class KafkaSource:
    """Implements `Source`: one consumer of all partitions, assigned by hand: there is one owner.

    The group's committed offsets are for tools that show lag; nothing depends on them. When
    the broker does not answer, the consumer is thrown away, and the next call makes another.
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
        """When offsets were committed."""
        self._stuck_since: float | None = None
        """When there was first something to read, and nothing came since."""
        self.lost = 0
        """Records that were deleted before they were read."""

    async def start(self, offsets: Mapping[str, int]) -> None:
        """Read on at these offsets; a partition without one from its beginning."""
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
                await self._reopen()  # which says what is lost
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
                )
            )
        return batches

    async def drained(self) -> set[str]:
        """Read up to where they end now, as far as their transactions are decided."""
        async with self._working() as consumer:
            ends = await consumer.end_offsets(self._assigned())
            # Positions also move over marks that are no records.
            drained = {p for p, end in ends.items() if await consumer.position(p) >= end}
            await self._watch_for_silence(nothing_left=len(drained) == len(ends))
        return {str(partition.partition) for partition in drained}

    def lag(self) -> dict[str, int]:
        """Records of each partition that are not read yet, as of the last answer from it."""
        consumer = self._consumer
        if consumer is None:
            return {}
        lags = {}
        for partition in consumer.assignment():  # of none while it connects
            end = consumer.last_stable_offset(partition)
            if end is not None and end >= 0:
                lags[str(partition.partition)] = max(0, end - self._positions[partition.partition])
        return lags

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[BatchConsumer]:
        """A consumer, made anew if there is none; after an error it is thrown away."""
        try:
            with broker_errors(), self._refusals():
                yield self._consumer or await self._open()
        except UnreachableError:
            await self.stop()
            raise

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What only other settings, or other rights, can change."""
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
        """Now and then. A refusal is of no consequence; no answer is (TimeoutError)."""
        if self._clock() - self._committed <= COMMIT_SECONDS:
            return
        self._committed = self._clock()
        with contextlib.suppress(KafkaError):
            async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                await consumer.commit({p: await consumer.position(p) for p in self._assigned()})

    async def _watch_for_silence(self, nothing_left: bool) -> None:
        """Consumers have been seen to stop silently: nothing comes although there is more."""
        now = self._clock()
        if nothing_left:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since > WATCHDOG_SECONDS:
            _log.warning(
                "nothing was read for %g s although there is more: reconnecting", WATCHDOG_SECONDS
            )
            self._stuck_since = None
            await self._reopen()

    async def _reopen(self) -> None:
        """A new consumer where this one is."""
        await self.stop()
        await self._open()

    async def _open(self) -> BatchConsumer:
        consumer = BatchConsumer(
            **self._connection.options(),
            group_id=self._group,
            isolation_level="read_committed",
            auto_offset_reset="none",  # we seek, and want to know of what is lost
            enable_auto_commit=False,
            max_poll_records=self._most_records,
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=1 << 20,
        )
        self._consumer = consumer  # also if it does not start: then it is ended all the same
        await consumer.start()
        numbers = sorted(await self._admin.partitions(self._topic))
        partitions = [TopicPartition(self._topic, number) for number in numbers]
        begins = await consumer.beginning_offsets(partitions)
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for partition in partitions:
            offset = self._place(partition.partition, begins[partition], ends[partition])
            self._positions[partition.partition] = offset
            consumer.seek(partition, offset)
        return consumer

    def _place(self, number: int, begin: int, end: int) -> int:
        """Where to read on in a partition: at its beginning if that cannot be elsewhere."""
        wanted = self._positions.get(number)
        if wanted is None:
            return begin
        if wanted < begin:
            self.lost += begin - wanted
            _log.warning(
                "partition %d was to be read on at offset %d, but begins at %d: the topic's "
                "retention is too short, events are lost",
                *(number, wanted, begin),
            )
        elif wanted > end:
            _log.warning(
                "partition %d was to be read on at offset %d, but ends at %d: it was made anew or "
                "has lost events; it is read from its beginning",
                *(number, wanted, end),
            )
        return wanted if begin <= wanted <= end else begin

    def _assigned(self) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number) for number in sorted(self._positions)]


def _offsets(records: Sequence[Any]) -> NDArray[np.int64]:
    """Offsets only rise: usually there is no gap, and the ends say it all."""
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return np.arange(first, last + 1)
    return np.array([record.offset for record in records])
