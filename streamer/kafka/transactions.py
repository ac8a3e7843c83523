"""Transactions under one transactional id, and recovery when the outcome of one is unknown.

Starting fences every older holder of the id and aborts its open transaction. Each
transaction writes its own marker to a compacted topic. If a commit fails with an unknown
outcome, because the broker went away, the producer is discarded, a new one is started, and
the marker shows whether the transaction was committed. If not, the same records are sent
again. A marker of another process means that this one was replaced: FencedError.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    InvalidProducerEpoch,
    InvalidTransactionTimeout,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from aiokafka.structs import RecordMetadata

from streamer.backoff import Backoff
from streamer.errors import FencedError, PublishError, SettingError
from streamer.kafka.clients import TransactionProducer
from streamer.kafka.connection import Connection
from streamer.kafka.ending import end_client
from streamer.kafka.reasons import reason_of

MARKER = b"transaction"
_log = logging.getLogger(__name__)
_BACKOFF = Backoff(0.2, 10.0)
_POLL_MS, _IDLE_POLLS = 500, 40
_SLOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Message:
    """A record to write; a value of None deletes the key from a compacted topic."""

    topic: str
    key: bytes | None
    value: bytes | None


Tell = Callable[[str, BaseException | None], None]
"""Called with a description of what is being waited for, and the
error behind it, if any; "" when the wait is over."""


class Transactions:
    """The only writer of its topics."""

    def __init__(
        self,
        connection: Connection,
        identity: str,
        marker_topic: str,
        timeout_seconds: float = 60.0,
        tell: Tell = lambda *_: None,
    ) -> None:
        self._connection = connection
        self.identity = identity
        self._markers = TopicPartition(marker_topic, 0)
        self._timeout = timeout_seconds
        self._tell = tell
        self._producer: TransactionProducer | None = None
        self._last: bytes | None = None
        self._tail = 0

    async def start(self) -> None:
        """Fence older holders of the identity. Waits while the broker is away."""
        await self._renew()

    def resume(self, marker: bytes | None, tail: int) -> None:
        """Set the last known marker, and the offset up to which its topic was read."""
        self._last, self._tail = marker, tail

    async def announce(self) -> None:
        """Write a marker, so that an older holder of the identity detects that it was replaced."""
        await self.commit([])

    async def stop(self) -> None:
        await self._discard()

    async def commit(self, messages: Sequence[Message]) -> None:
        """Write all messages, or none. Returns when they are committed."""
        marker = secrets.token_bytes(16)
        messages = [*messages, Message(self._markers.topic, MARKER, marker)]
        while True:
            slow = asyncio.get_running_loop().call_later(
                _SLOW_SECONDS, self._tell, "waiting for the broker to commit a transaction", None
            )
            try:
                async with asyncio.timeout(self._timeout):
                    self._tail = await self._attempt(messages)
            except (ProducerFenced, InvalidProducerEpoch):
                raise FencedError(self.identity) from None
            except MessageSizeTooLargeError:
                raise PublishError(
                    "a record is larger than the broker accepts: raise max.message.bytes of "
                    f"{_topics(messages)}"
                ) from None
            except TopicAuthorizationFailedError:
                raise SettingError(
                    "kafka.sasl_username",
                    self._connection.username,
                    f"it may not write to all of {_topics(messages)}: grant Describe and Write",
                ) from None
            except (KafkaError, TimeoutError, OSError) as error:
                self._tell(
                    f"waiting for the outcome of a transaction ({reason_of(error)})",
                    error,
                )
                # Check first: if we were replaced, a new producer would fence our successor.
                await self._was_committed(marker)
                await self._renew()
                if not await self._was_committed(marker):
                    continue
            finally:
                slow.cancel()
            self._last = marker
            self._tell("", None)
            return

    async def _attempt(self, messages: Sequence[Message]) -> int:
        """Returns the offset of the last message."""
        producer = self._producer
        if producer is None:
            raise KafkaError("no producer")
        await producer.begin_transaction()
        sent: list[asyncio.Future[RecordMetadata]] = []
        try:
            for message in messages:
                sent.append(await producer.send(message.topic, message.value, message.key))
        except IllegalOperation:
            # The transaction has failed meanwhile: a message before this one knows why.
            await asyncio.gather(*sent)
            raise KafkaError("the transaction failed while it was written") from None
        written = await asyncio.gather(*sent)
        await producer.commit_transaction()
        return int(written[-1].offset)

    async def _renew(self) -> None:
        """Start a new producer under the same identity. Waits while the broker is away."""
        await self._discard()
        waits = _BACKOFF.waits()
        while True:
            producer = TransactionProducer(
                **self._connection.options(),
                transactional_id=self.identity,
                transaction_timeout_ms=round(self._timeout * 1000),
                max_request_size=16 << 20,
                linger_ms=0,
            )
            try:
                async with asyncio.timeout(self._timeout):
                    await producer.start()
            except TransactionalIdAuthorizationFailed:
                await end_client(producer)
                raise SettingError(
                    "kafka.transactional_id",
                    self.identity,
                    "this user may not use it: grant Describe and Write",
                ) from None
            except InvalidTransactionTimeout:
                await end_client(producer)
                raise SettingError(
                    "kafka.transaction_timeout_seconds",
                    self._timeout,
                    "it exceeds the broker's transaction.max.timeout.ms",
                ) from None
            except (KafkaError, TimeoutError, OSError) as error:
                await end_client(producer)
                self._tell(f"waiting for the broker ({reason_of(error)})", error)
                await asyncio.sleep(next(waits))
                continue
            self._producer = producer
            self._tell("", None)
            return

    async def _was_committed(self, marker: bytes) -> bool:
        """Look for a marker after the last one that is known to be committed."""
        last = self._last
        tail = read_committed(self._connection, self._markers, self._tail, self._tell)
        async for record in tail:
            if record.key == MARKER:
                last = record.value
        if last not in {self._last, marker}:
            raise FencedError(self.identity)
        return last == marker

    async def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await end_client(producer)


async def read_committed(
    connection: Connection,
    partition: TopicPartition,
    start: int,
    tell: Tell = lambda *_: None,
    setting: str = "kafka.state_topic",
) -> AsyncIterator[ConsumerRecord]:
    """The committed records of a partition, from an offset up to its current end.

    If the broker goes away, reading continues where it stopped. `setting`: names the topic.
    """
    position, end, waits = start, None, _BACKOFF.waits()
    while end is None or position < end:
        consumer = committed_consumer(connection)
        try:
            await consumer.start()
            consumer.assign([partition])
            if end is None:
                first = (await consumer.beginning_offsets([partition]))[partition]
                end = (await consumer.end_offsets([partition]))[partition]
                position = max(position, first)
            consumer.seek(partition, position)
            idle = 0
            while position < end and idle < _IDLE_POLLS:
                found = await consumer.getmany(timeout_ms=_POLL_MS)
                for record in found.get(partition, []):
                    yield record
                # The last offset may be a transaction's end marker, which is not a record.
                moved = await consumer.position(partition)
                idle = 0 if moved > position else idle + 1
                position = moved
        except TopicAuthorizationFailedError:
            raise SettingError(
                setting, partition.topic, "this user may not read it: grant Describe and Read"
            ) from None
        except (KafkaError, OSError) as error:
            _log.warning("reading %s was interrupted (%s)", partition.topic, reason_of(error))
            tell(f"waiting for the broker ({reason_of(error)})", error)
            await asyncio.sleep(next(waits))
        finally:
            await end_client(consumer)


def committed_consumer(connection: Connection) -> AIOKafkaConsumer:
    """A consumer that reads a long partition fast, and only committed records."""
    return AIOKafkaConsumer(
        **connection.options(),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=8 << 20,
        fetch_max_bytes=32 << 20,
    )


async def ends_of(
    connection: Connection, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The current ends of partitions, without open transactions."""
    consumer = AIOKafkaConsumer(**connection.options(), isolation_level="read_committed")
    await consumer.start()
    try:
        return dict(await consumer.end_offsets(list(partitions)))
    finally:
        await end_client(consumer)


def _topics(messages: Sequence[Message]) -> str:
    return ", ".join(sorted({message.topic for message in messages}))
