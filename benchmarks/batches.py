"""Taking records out of the batches in which they were written, beside aiokafka's own way.

    python -m benchmarks.batches [--records 20000 --rounds 5]

Producers that wait a little send thousands in a batch; those that do not, one. Without a
broker: the same bytes are parsed in both ways, in turns.
"""

import statistics

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, command_line
from streamer.kafka.clients import BatchRecords

SIZES = (1, 10, 1_000)
VALUE = b'{"user": "u-123456", "item": "crash:NPE:Foo.java:42", "time": 1767225612000}'
PLACE, AT_A_TIME = TopicPartition("events", 0), 5_000


def measure(records: int = 100_000, rounds: int = 9) -> list[Row]:
    return [_row(size, records, rounds) for size in SIZES]


def _row(size: int, records: int, rounds: int) -> Row:
    packed = b"".join(_batch(first, size) for first in range(0, records, size))
    watch = Stopwatch()
    for _ in range(rounds):
        with watch.measure("usual"):
            usual = _read_usual(packed)
        with watch.measure("ours"):
            taken = _read_ours(packed)
        if not usual == taken == records:
            raise RuntimeError("not every record was read: this is not the work to be measured")
    pairs = zip(watch.seconds["ours"], watch.seconds["usual"], strict=True)
    ratio = statistics.median(ours / usual for ours, usual in pairs)
    each = {kind: 1e6 * watch.median(kind) / records for kind in ("ours", "usual")}
    return Row(
        f"taking records out of batches of {size:,}, of aiokafka's own way",
        ratio,
        "times",
        None,
        f"{each['ours']:.2f} and {each['usual']:.2f} µs a record; {rounds} rounds in turns",
    )


def _batch(first: int, size: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for place in range(size):
        builder.append(place, 1_767_225_612_000, None, VALUE, [])
    packed = builder.build()
    packed[0:8] = first.to_bytes(8, "big")
    return bytes(packed)


def _records(packed: bytes) -> PartitionRecords:
    return PartitionRecords(PLACE, MemoryRecords(packed), [], 0, None, None, True, READ_COMMITTED)


def _read_usual(packed: bytes) -> int:
    read, portion = 0, []
    for record in _records(packed):
        portion.append(record)
        if len(portion) == AT_A_TIME:
            read, portion = read + len(portion), []
    return read + len(portion)


def _read_ours(packed: bytes) -> int:
    records, read, more = BatchRecords(_records(packed)), 0, True
    while more:
        portion, more = records.take(AT_A_TIME)
        read += len(portion)
    return read


if __name__ == "__main__":
    command_line(measure)
