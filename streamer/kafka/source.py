"""Events from a Kafka topic: all of its partitions, from offsets that the journal knows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from numpy.typing import NDArray

from streamer.kafka.connection import Connection
from streamer.kafka.ending import end_client
from streamer.kafka.lean_records import lean
from streamer.kafka.topics import TopicAdmin
from streamer.stream.intake import Batch

_log = logging.getLogger(__name__)


class KafkaSource:
    """One consumer of all partitions, assigned by hand: there is one owner.

    The group's committed offsets are for tools that show lag; nothing depends on them.
    """

    def __init__(
        self,
        connection: Connection,
        admin: TopicAdmin,
        topic: str,
        group: str,
        most_records: int = 5_000,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._topic = topic
        self._group = group
        self._most_records = most_records
        self._consumer: AIOKafkaConsumer | None = None
        self._positions: dict[int, int] = {}
        self.lost = 0
        """Records that were deleted before they were read."""

    @property
    def partitions(self) -> list[str]:
        return [str(number) for number in sorted(self._positions)]

    async def start(self, offsets: Mapping[str, int]) -> None:
        """Read on at these offsets; a partition without one from its beginning."""
        self._positions = {int(name): offset for name, offset in offsets.items()}
        await self._open()

    async def stop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await end_client(consumer)

    async def restart(self) -> None:
        """A new consumer where this one is: consumers have been seen to stop silently."""
        await self.stop()
        await self._open()

    async def poll(self, timeout_ms: int) -> list[Batch]:
        """What has arrived; waits up to the timeout for something."""
        try:
            found = await self._running().getmany(
                timeout_ms=timeout_ms, max_records=self._most_records
            )
        except OffsetOutOfRangeError:
            await self.restart()  # which says what is lost
            return []
        batches = []
        for partition, records in found.items():
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

    async def ends(self) -> dict[str, int]:
        """Where each partition ends now, as far as its transactions are decided."""
        offsets = await self._running().end_offsets(self._assigned())
        return {str(partition.partition): end for partition, end in offsets.items()}

    async def positions(self) -> dict[str, int]:
        """How far each partition is read: also over marks that are no records."""
        consumer = self._running()
        return {str(p.partition): await consumer.position(p) for p in self._assigned()}

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

    async def find_new_partitions(self) -> list[str]:
        """Take up partitions that were added to the topic."""
        new = sorted(await self._admin.partitions(self._topic) - set(self._positions))
        if new:
            await self.restart()
        return [str(number) for number in new]

    def pause(self, partitions: list[str]) -> None:
        """Leave these alone for now, and go on with all others."""
        consumer = self._running()
        chosen = {TopicPartition(self._topic, int(name)) for name in partitions}
        if consumer.paused() != chosen:
            consumer.resume(*(consumer.paused() - chosen))
            consumer.pause(*chosen)

    async def commit(self) -> None:
        """For lag tools only: a refusal is of no consequence. No answer is (TimeoutError)."""
        consumer = self._running()
        with contextlib.suppress(KafkaError):
            async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                await consumer.commit({p: await consumer.position(p) for p in self._assigned()})

    async def _open(self) -> None:
        consumer = AIOKafkaConsumer(
            **self._connection.options(),
            group_id=self._group,
            isolation_level="read_committed",
            auto_offset_reset="none",  # we seek, and want to know of what is lost
            enable_auto_commit=False,
            max_poll_records=self._most_records,
            value_deserializer=lean,
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

    def _running(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise KafkaError("the consumer is stopped")
        return self._consumer


def _offsets(records: Sequence[Any]) -> NDArray[np.int64]:
    """Offsets only rise: usually there is no gap, and the ends say it all."""
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return np.arange(first, last + 1)
    return np.array([record.offset for record in records])
