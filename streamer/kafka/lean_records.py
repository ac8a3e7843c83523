"""Records without their wrapping, for the consumer that reads millions of them.

aiokafka takes records one at a time out of the batches in which they were written, and
makes an object with eleven fields of each, which takes longer than all else that it does
with them (benchmarks/end_to_end.py prints what it takes). Reading events needs three of
the fields, and the parsed record has them already. A consumer with `lean` as its
value_deserializer gets the parsed records themselves, whole batches at a time. Which
batches are skipped, and where reading goes on, stays aiokafka's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException


def lean(value: bytes | None) -> bytes | None:
    """Leaves a value as it is, and marks its consumer."""
    return value


class _Whole:
    """All records of a batch, in the place where aiokafka expects one."""

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.offset = records[-1].offset


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


class _WholeBatches:
    """What a broker's answer holds, batch by batch."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def has_next(self) -> bool:
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        batch = self._batches.next_batch()
        single = batch.next_offset - batch.base_offset == 1  # as producers send that do not wait
        return batch if single else _WholeBatch(batch)


class _PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(self, tp: Any, records: Any, *others: Any) -> None:
        super().__init__(tp, records, *others)
        self.is_lean = self._value_deserializer is lean
        self._batch: list[Any] = []
        self._place = 0
        """The batch that is being given out, and how far."""
        if self.is_lean:
            self._records = _WholeBatches(records)

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        if not self.is_lean:
            return super()._consumer_record(tp, record)
        if not isinstance(record, _Whole):
            return [record]
        records, start = record.records, self.next_fetch_offset
        if records[0].offset >= start:
            return records
        return [one for one in records if one.offset >= start]  # reading began within the batch

    def take(self, most: int) -> tuple[list[Any], bool]:
        """Up to so many records, and whether there may be more.

        Each record is touched once, however small or large the batches are.
        """
        given: list[Any] = []
        while len(given) < most:
            if self._place == len(self._batch):
                try:
                    self._batch, self._place = next(self), 0
                except StopIteration:
                    return given, False
                except CorruptRecordException:
                    if not given:
                        raise
                    return given, False  # these are good; the damage is found again behind them
            end = min(self._place + most - len(given), len(self._batch))
            given += self._batch[self._place : end]
            self._place = end
            left = end < len(self._batch)
            self.next_fetch_offset = self._batch[end].offset if left else given[-1].offset + 1
        return given, True


class _FetchResult(fetcher.FetchResult):  # type: ignore[misc]
    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        records = self._partition_records
        if max_records is None or not getattr(records, "is_lean", False):
            return list(super().getall(max_records))
        if not self.check_assignment(self._topic_partition):
            return []
        given: list[Any]
        given, more = records.take(max_records)
        self._update_position()
        if not more:
            self._partition_records = None
        return given


fetcher.PartitionRecords = _PartitionRecords
fetcher.FetchResult = _FetchResult
