"""Reads what a service has published to its topics: committed records, assembled into steps
with their results."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from streamer.backoff import Backoff
from streamer.errors import SettingError
from streamer.kafka.connection import Connection
from streamer.kafka.ending import end_client
from streamer.kafka.topics import DOES_NOT_EXIST, TopicAdmin
from streamer.stream.publication import Publication
from streamer.stream.records import ResultRecord, StepRecord

PATIENCE_SECONDS = 5.0
"""How long to wait for the rest of a step, or for the step before it."""
_SILENCE_SECONDS = 5.0
"""After this long without a record, check whether a broker still answers."""
_BACKOFF = Backoff(0.5, 10.0)
_POLL_MS = 250
_SLACK_MS = 60_000
"""Results of a step are written shortly before its record."""


@dataclass(slots=True)
class Assembly:
    """Assembles steps and results, in whatever order the partitions deliver them.

    A step is released after the one before it, and with all of its results. A step that
    still lacks some after a while is skipped: they were written before reading began.
    """

    through: int | None = None
    """The last step that was released or skipped."""
    _steps: dict[int, tuple[StepRecord, float]] = field(default_factory=dict)
    _results: defaultdict[int, dict[str, ResultRecord]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add_step(self, record: StepRecord, now: float) -> None:
        if self.through is None or record.step > self.through:
            self._steps[record.step] = (record, now)

    def add_result(self, record: ResultRecord) -> None:
        if self.through is None or record.step > self.through:
            self._results[record.step][record.item] = record

    def ready(self, now: float) -> Publication | None:
        """What can be released at this time (seconds of any clock)."""
        steps, results = [], []
        for number in sorted(self._steps):
            record, since = self._steps[number]
            mine = self._results[number]
            first = number if record.first is None else record.first
            is_next = self.through is None or first == self.through + 1
            is_whole = len(mine) >= record.hitters
            if not (is_next and is_whole) and now - since < PATIENCE_SECONDS:
                break
            if is_whole:
                steps.append(record)
                results += sorted(mine.values(), key=lambda result: result.item)
            self.through = number
            del self._steps[number]
        if self.through is not None:
            for number in [number for number in self._results if number <= self.through]:
                del self._results[number]
        return Publication(steps[-1].step, tuple(results), tuple(steps)) if steps else None


@dataclass(slots=True)
class KafkaResults:
    """Reads the two topics without a consumer group, so reading changes nothing."""

    connection: Connection
    topics: Mapping[str, str]
    """Topic names by setting: first the hitters topic, then the steps topic."""
    past: int
    """Reading starts about this many records of closed steps ago."""
    tell: Callable[[str], None]
    """Called with a description of what is being waited for; "" when the wait is over."""
    _assembly: Assembly = field(default_factory=Assembly)
    _positions: dict[TopicPartition, int] = field(default_factory=dict)

    async def publications(self) -> AsyncIterator[Publication]:
        """From the recent past on, without end; waits while brokers are away."""
        waits = _BACKOFF.waits()
        while True:
            consumer = AIOKafkaConsumer(
                **self.connection.options(),
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                fetch_max_wait_ms=100,
            )
            try:
                await consumer.start()
                await self._place(consumer)
                self.tell("")
                async for publication in self._read(consumer):
                    waits = _BACKOFF.waits()
                    yield publication
            except TopicAuthorizationFailedError as error:
                raise self._forbidden(error) from None
            except (KafkaError, OSError):
                self.tell("no broker answers")
            finally:
                await end_client(consumer)
            await asyncio.sleep(next(waits))

    async def _place(self, consumer: AIOKafkaConsumer) -> None:
        """Seek to where reading stopped; at first, to where the recent past ends."""
        if not self._positions:
            self._positions = await self._recent(consumer)
        consumer.assign(list(self._positions))
        for partition, position in self._positions.items():
            consumer.seek(partition, position)

    async def _recent(self, consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
        """Read the last steps, then their results, which begin at the time of the first step."""
        hitters, steps = await self._partitions()
        begins = await consumer.beginning_offsets(steps)
        ends = await consumer.end_offsets(steps)
        consumer.assign(steps)
        for partition in steps:
            # Each step is a transaction, and its end marker takes up an offset too.
            consumer.seek(partition, max(begins[partition], ends[partition] - 2 * self.past))
        earliest = await self._read_up_to(consumer, ends)
        if earliest is None:
            return {**ends, **await consumer.end_offsets(hitters)}
        found = await consumer.offsets_for_times(dict.fromkeys(hitters, earliest - _SLACK_MS))
        results = await consumer.end_offsets(hitters)
        starts = {p: results[p] if at is None else at.offset for p, at in found.items()}
        consumer.assign(hitters)
        for partition in hitters:
            consumer.seek(partition, starts[partition])
        await self._read_up_to(consumer, results)
        return {**ends, **results}

    async def _read_up_to(
        self, consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]
    ) -> int | None:
        """Returns the timestamp of the earliest record."""
        earliest: int | None = None
        silent_since = time.monotonic()
        while any([await consumer.position(p) < end for p, end in ends.items()]):
            for record in await _poll(consumer):
                self._take(record)
                earliest = min(record.timestamp, earliest or record.timestamp)
                silent_since = time.monotonic()
            await self._check(silent_since)
        return earliest

    async def _read(self, consumer: AIOKafkaConsumer) -> AsyncIterator[Publication]:
        silent_since = time.monotonic()
        while True:
            publication = self._assembly.ready(time.monotonic())
            if publication is not None:
                yield publication
            for record in await _poll(consumer):
                self._take(record)
                position = TopicPartition(record.topic, record.partition)
                self._positions[position] = record.offset + 1
                silent_since = time.monotonic()
            silent_since = await self._check(silent_since)

    async def _check(self, silent_since: float) -> float:
        """A consumer does not report that its brokers are away, so ask them."""
        now = time.monotonic()
        if now - silent_since < _SILENCE_SECONDS:
            return silent_since
        if not await self.connection.check():
            raise OSError("no broker answers")
        return now

    async def _partitions(self) -> list[list[TopicPartition]]:
        """The partitions of each topic."""
        admin = TopicAdmin(self.connection)
        await admin.start()
        try:
            found = []
            for setting, topic in self.topics.items():
                numbers = await admin.partitions(topic)
                if not numbers:
                    raise SettingError(setting, topic, DOES_NOT_EXIST)
                found.append([TopicPartition(topic, number) for number in sorted(numbers)])
            return found
        finally:
            await admin.stop()

    def _take(self, record: ConsumerRecord) -> None:
        is_step = record.topic == list(self.topics.values())[1]
        try:
            if is_step:
                step = msgspec.json.decode(record.value or b"", type=StepRecord)
                self._assembly.add_step(step, time.monotonic())
            else:
                self._assembly.add_result(
                    msgspec.json.decode(record.value or b"", type=ResultRecord)
                )
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # not written by streamer: skip it

    def _forbidden(self, error: TopicAuthorizationFailedError) -> SettingError:
        named = " ".join(map(str, error.args))
        found = [pair for pair in self.topics.items() if pair[1] in named]
        setting, topic = [*found, *self.topics.items()][0]
        return SettingError(setting, topic, "this user may not read it: grant Describe and Read")


async def _poll(consumer: AIOKafkaConsumer) -> Iterable[ConsumerRecord]:
    found = await consumer.getmany(timeout_ms=_POLL_MS)
    return [record for records in found.values() for record in records]
