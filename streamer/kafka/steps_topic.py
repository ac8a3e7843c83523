"""The last step that was published to a steps topic."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import msgspec
from aiokafka import TopicPartition

from streamer.kafka.connection import Connection
from streamer.kafka.transactions import read_committed
from streamer.ledger.contract import Life
from streamer.stream.records import StepRecord
from streamer.stream.timing import StepTiming, parse_rfc3339

_LOOK_BACK = 250
"""One publication is up to 101 records in the steps topic, and a transaction marker."""


async def last_published(
    connection: Connection, ends: Mapping[TopicPartition, int], life: Life
) -> int | None:
    """The last step in the partitions of a steps topic, which end at `ends`; None if there is none.

    Steps with another length or epoch, from before the stream was started anew, do not count:
    their numbers cannot be compared.
    """
    timing = StepTiming(life.length_ms, life.epoch_ms)
    found = [await _last_record(connection, partition, end) for partition, end in ends.items()]
    steps = [record.step for record in found if record is not None and _is_of(record, timing)]
    return max(steps, default=None)


async def _last_record(
    connection: Connection, partition: TopicPartition, end: int
) -> StepRecord | None:
    """Searches backwards from the end: the last step may be followed by any number of
    transaction markers and aborted records."""
    start, reach, last = end, _LOOK_BACK, None
    while start > 0 and last is None:
        start, reach = max(0, end - reach), 8 * reach
        async for record in read_committed(
            connection, partition, start, setting="kafka.steps_topic"
        ):
            # Somebody else may have written to the topic: what is not a step is skipped.
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                last = msgspec.json.decode(record.value or b"", type=StepRecord)
    return last


def _is_of(record: StepRecord, timing: StepTiming) -> bool:
    try:
        return parse_rfc3339(record.end) == timing.end(record.step)
    except ValueError:
        return False
