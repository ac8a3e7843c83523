"""Reads what a state topic holds now, even while another process writes to it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from aiokafka import TopicPartition

from streamer.errors import UnusableJournalError
from streamer.kafka import ledger_format_1
from streamer.kafka.connection import Connection
from streamer.kafka.ledger_records import FORMAT, LifeRecord
from streamer.kafka.ledger_restore import Past, needed, read_past
from streamer.kafka.transactions import MARKER, read_committed


@dataclass(frozen=True, slots=True)
class StateRecords:
    """The last value of each key, the marker of the last transaction, and the offset at which
    reading ended."""

    state: dict[bytes, bytes]
    marker: bytes | None
    tail: int

    @property
    def size(self) -> int:
        """In bytes, without what compaction will remove."""
        return sum(map(len, self.state.values()))


async def read_state(connection: Connection, topic: str) -> StateRecords:
    """Everything that is committed to a state topic now."""
    state: dict[bytes, bytes] = {}
    marker, tail = None, 0
    async for record in read_committed(connection, TopicPartition(topic, 0), 0):
        tail = record.offset + 1
        if record.key == MARKER:
            marker = record.value
        elif record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return StateRecords(state, marker, tail)


def interpret(found: dict[bytes, bytes], topic: str, wanted: LifeRecord) -> Past | None:
    """The past that the records of a state topic describe; None if there are none. What is None
    in `wanted` may be anything."""
    if not found:
        return None
    try:
        state = {key.decode(): value for key, value in found.items()}
        kept = msgspec.json.decode(needed(state, "life"), type=dict[str, object])
        _check_life(topic, kept, wanted)
        return read_past(state, kept["format"] == ledger_format_1.FORMAT)
    except (msgspec.MsgspecError, ValueError) as error:
        raise UnusableJournalError(
            f"the state topic {topic} cannot be used ({error}): restore it from a copy, or name a "
            "new one in kafka.state_topic and set kafka.start_anew to true once, which spends the "
            "users' budgets again"
        ) from None


_IDS = {"cluster_id", "transactional_id"}
_FIXED = {
    "length_ms": "stream.step_seconds",
    "epoch_ms": "stream.epoch",
    "events_topic": "kafka.events_topic",
    "cluster_id": "kafka.bootstrap_servers",
    "transactional_id": "kafka.transactional_id",
}
"""What a life says, and the setting that it comes from."""


def _check_life(topic: str, kept: dict[str, object], wanted: LifeRecord) -> None:
    if kept.get("format") not in (ledger_format_1.FORMAT, FORMAT):
        raise UnusableJournalError(
            f"the state topic {topic} has format {kept.get('format')}, but this version supports "
            f"formats {ledger_format_1.FORMAT} and {FORMAT}: use the version that created it, or a "
            "newer one"
        )
    for name, setting in _FIXED.items():
        value = getattr(wanted, name)
        # Version 0.1.0 wrote no ids: the next append adds them.
        is_open = value is None or (name in _IDS and kept.get(name) is None)
        if kept.get(name) != value and not is_open:
            raise UnusableJournalError(
                f"the state topic {topic} was created with another {setting} ({name} "
                f"{kept.get(name)}, not {value}): this is fixed for the life of a state topic; "
                "use the old value, or another state topic"
            )
