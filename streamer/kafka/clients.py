"""Clients of aiokafka with parts of our own: the one module that touches its private parts.

`BatchConsumer` hands out parsed records, whole batches at a time. aiokafka takes records one
at a time out of the batches in which they were written, and builds an object with eleven
fields for each, which takes longer than everything else it does with them
(benchmarks/batches.py measures it). Reading events needs three of the fields, and the parsed
record already has them. Which batches are skipped, and where reading continues, is still
decided by aiokafka's code. It also asks leaders where their logs end, which aiokafka has no
request for.

`TransactionProducer` starts a transaction right after another without aiokafka's long wait.

Only the parts of these clients are changed: other clients in the process work as shipped.
When a new version of aiokafka changes these parts, tests/kafka/test_aiokafka.py says what
to do.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any
from weakref import proxy

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    UnknownError,
    for_code,
)
from aiokafka.producer.sender import BACKOFF_OVERRIDE, AddPartitionsToTxnHandler, Sender
from aiokafka.protocol.offset import OffsetRequest, OffsetResetStrategy

# How long to wait when the broker has not finished the transaction before. With aiokafka's
# 20 ms a small transaction right after another takes 25 ms, with this 6.
_WAIT_SECONDS = 0.002
_ASK_AGAIN_SECONDS = 0.1


class BatchConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """Returns parsed records in place of ConsumerRecords: offset, timestamp, key, value, headers.

    Keys and values are bytes as they were written: deserializers are not applied.
    """

    async def start(self) -> None:
        await super().start()
        self._fetcher._records = _Fetched(self._fetcher._records)

    async def log_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record in each partition leader's log, readable or not.

        `end_offsets` returns how far consumers may read: without records that are not replicated
        yet or belong to open transactions. Brokers take that limit from ListOffsets requests of
        consumers (replica id -1) only. With the id of a broker, the leader and nobody else
        answers with the end of its log. All of these requests need the same right: Describe.

        While a leader is unknown or moves it is asked again, up to the request timeout: then
        KafkaTimeoutError.
        """
        client = self._client
        reason: object = "no answer"
        try:
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                while True:
                    try:
                        return await _ask_leaders(client, partitions)
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        if error.invalid_metadata:
                            client.force_metadata_update()
                        reason = error
                    await asyncio.sleep(_ASK_AGAIN_SECONDS)
        except TimeoutError:
            raise KafkaTimeoutError(f"where the leaders' logs end: {reason}") from None


class TransactionProducer(AIOKafkaProducer):  # type: ignore[misc]
    """Waits 2 ms instead of 20 when the broker has not finished the transaction before."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiokafka has no option for it. A sender that is not started has no task yet.
        self._sender.__class__ = _Sender


def client_of(consumer: AIOKafkaConsumer) -> AIOKafkaClient:
    """The connections of any consumer; a producer's are public."""
    return consumer._client


async def _ask_leaders(
    client: AIOKafkaClient, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Ask each leader once about all of its partitions."""
    led: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for partition in partitions:
        leader = client.cluster.leader_for_partition(partition)
        if leader is None or leader < 0:
            client.add_topic(partition.topic)
            raise LeaderNotAvailableError(partition)
        place = (partition.partition, OffsetResetStrategy.LATEST)
        led[leader][partition.topic].append(place)
    answers = await asyncio.gather(
        *(
            client.send(leader, OffsetRequest(leader, 0, list(topics.items())))
            for leader, topics in led.items()
        )
    )
    ends = {}
    for answer in answers:
        for topic, places in answer.topics:
            for number, code, _timestamp, end in places:
                if code:
                    raise for_code(code)(TopicPartition(topic, number))
                ends[TopicPartition(topic, number)] = end
    if ends.keys() != set(partitions):
        raise UnknownError("a leader did not say where its log ends")
    return ends


class _Fetched(OrderedDict[TopicPartition, FetchResult | FetchError]):
    """What a fetcher has received and not handed out yet; results hand out batches."""

    def __setitem__(self, partition: TopicPartition, fetched: FetchResult | FetchError) -> None:
        if isinstance(fetched, FetchResult):
            fetched._partition_records = BatchRecords(fetched._partition_records)
            # The fetcher takes an instance of a subclass for an error, so this one gets a method of
            # its own; by a proxy, because a cycle would keep it until garbage is collected.
            fetched.getall = partial(_getall, proxy(fetched))
        super().__setitem__(partition, fetched)


def _getall(fetched: FetchResult, max_records: int | None = None) -> list[Any]:
    """FetchResult.getall, with BatchRecords."""
    if not fetched.check_assignment(fetched._topic_partition):
        return []
    records: list[Any]
    records, more = fetched._partition_records.take(max_records or sys.maxsize)
    fetched._update_position()
    if not more:
        fetched._partition_records = None
    return records


class BatchRecords(PartitionRecords):  # type: ignore[misc]
    """The records of a partition in a broker's answer, taken a batch at a time.

    aiokafka goes through the batches and decides what is skipped. It sees each batch as one
    record, whose offset is that of the last record in it.
    """

    def __init__(self, shipped: PartitionRecords) -> None:
        super().__init__(
            shipped._tp,
            _WholeBatches(shipped._records),
            shipped._aborted_transactions,
            shipped.next_fetch_offset,
            None,
            None,
            shipped._check_crcs,
            shipped._isolation_level,
        )
        shipped._records_iterator.close()  # in a cycle, it would keep the broker's answer
        self._batch: list[Any] = []
        self._place = 0
        """The batch that is being handed out, and how far."""

    def take(self, most: int) -> tuple[list[Any], bool]:
        """Up to `most` records, and whether there may be more.

        Each record is touched once, however small or large the batches are.
        """
        taken: list[Any] = []
        while len(taken) < most:
            if self._place == len(self._batch):
                try:
                    self._batch, self._place = next(self._records_iterator), 0
                except StopIteration:
                    return taken, False
                except CorruptRecordException:
                    if not taken:
                        raise
                    return taken, False  # these are good; the damage is found again behind them
            end = min(self._place + most - len(taken), len(self._batch))
            taken += self._batch[self._place : end]
            self._place = end
            left = end < len(self._batch)
            self.next_fetch_offset = self._batch[end].offset if left else taken[-1].offset + 1
        return taken, True

    def __next__(self) -> Any:
        """One record, for `getone`."""
        taken, _ = self.take(1)
        if not taken:
            raise StopIteration
        return taken[0]

    def _consumer_record(self, tp: TopicPartition, record: Any) -> list[Any]:
        """Called for what stands for a batch; returns the records of it that are wanted."""
        if not isinstance(record, _Whole):
            return [record]
        records, start = record.records, self.next_fetch_offset
        if records[0].offset >= start:
            return records
        return [one for one in records if one.offset >= start]  # reading began within the batch


class _WholeBatches:
    """The batches in a broker's answer."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        batch = self._batches.next_batch()
        single = batch.next_offset - batch.base_offset == 1  # as producers send that do not wait
        return batch if single else _WholeBatch(batch)


class _WholeBatch:
    """A batch that yields its records at once; with what aiokafka asks of every batch."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.validate_crc = batch.validate_crc
        self.producer_id = batch.producer_id
        self.base_offset = batch.base_offset
        self.next_offset = batch.next_offset
        self.is_control_batch = batch.is_control_batch
        self.is_transactional = batch.is_transactional

    def __next__(self) -> Any:
        """The one record of a batch that only ends a transaction."""
        return next(self._batch)

    def __iter__(self) -> Iterator[_Whole]:
        records = list(self._batch)
        if records:
            yield _Whole(records)


class _Whole:
    """All records of a batch, in the place where aiokafka expects one."""

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.offset = records[-1].offset


class _Sender(Sender):  # type: ignore[misc]
    async def _do_add_partitions_to_txn(self, tps: Collection[TopicPartition]) -> bool:
        node_id = await self._find_coordinator(
            CoordinationType.TRANSACTION, self._txn_manager.transactional_id
        )
        return bool(await _AddPartitions(self, tps).do(node_id))


class _AddPartitions(AddPartitionsToTxnHandler):  # type: ignore[misc]
    """The first request of a transaction: refused while the one before is being finished."""

    def handle_response(self, resp: Any) -> float | None:
        wait: float | None = super().handle_response(resp)
        return _WAIT_SECONDS if wait == BACKOFF_OVERRIDE else wait
