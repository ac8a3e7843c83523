"""The records of a ledger in a compacted topic: keys and values.

| key | value |
|---|---|
| `life` | step length, epoch and what the ledger belongs to; never changes |
| `period/N` | the plan of period N, and the fingerprint of its key |
| `step/N` | the decision of step N and the offsets to continue from; only recent ones are kept |
| `hitters/N/I` | chunk I of the hitters of step N, if one record cannot hold them |
| `published` | the last published step |
| `charges/N/I` | chunk I of the users charged in step N, with the units of each |
| `snapshot` | the step of the current snapshot, and its number of chunks |
| `counters/N/I` | chunk I of the counters after step N |
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgspec
import numpy as np

from streamer.ledger.contract import Life
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter, Units, Users
from streamer.stream.periods import Period

FORMAT = 2
CHUNK_BYTES = 500_000
"""Half a megabyte a record, which also holds the offsets of 15,000 partitions: below what
brokers take by default."""
CHUNK_USERS = 50_000
"""With their units, this many users are a record of that size."""
LARGEST_STATE = CHUNK_BYTES + 1_024
"""Of a record in the state topic, in bytes, with its key."""
LARGEST_STEP = 1_024
"""Of a record in the steps topic."""


class LifeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is fixed for a ledger's life. Version 0.1.0 wrote no ids."""

    format: int
    length_ms: int
    epoch_ms: int
    events_topic: str
    cluster_id: str | None = None
    transactional_id: str | None = None

    @classmethod
    def of(
        cls,
        life: Life,
        events_topic: str,
        cluster_id: str | None = None,
        transactional_id: str | None = None,
    ) -> LifeRecord:
        return cls(
            FORMAT, life.length_ms, life.epoch_ms, events_topic, cluster_id, transactional_id
        )


class PeriodRecord(msgspec.Struct, frozen=True):
    period: Period
    key: str


class StepEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    step: int
    first: int
    period: int
    hitters: tuple[Hitter[str], ...] | None
    """None if they are in records of their own: version 0.1.0, which does not know these,
    then refuses the state topic in place of losing hitters."""
    offsets: dict[str, int]
    oldest: int
    """The oldest step that is still kept once this one is written."""
    spent: int
    """Units charged in its period up to and including this step, over all users. Only that of the
    last step is used."""
    read: dict[str, int] = {}
    """How far each partition was read; empty in journals of earlier versions."""
    parts: int = 0
    """How many records of their own the hitters take."""

    @property
    def part_keys(self) -> list[str]:
        return [f"hitters/{self.step}/{part}" for part in range(self.parts)]


class PublishedRecord(msgspec.Struct, frozen=True):
    step: int


class SnapshotRecord(msgspec.Struct, frozen=True):
    step: int
    chunks: int


encode = msgspec.json.Encoder().encode
decode_hitters = msgspec.json.Decoder(tuple[Hitter[str], ...]).decode


def step_records(entry: StepEntry) -> tuple[StepEntry, dict[str, bytes]]:
    """The entry as it is kept, and all of its records by key: none is larger than a broker
    takes, however many hitters there are."""
    value, parts = encode(entry), []
    if entry.hitters and len(value) > CHUNK_BYTES:
        parts = list(_hitter_parts(entry.hitters))
        entry = msgspec.structs.replace(entry, hitters=None, parts=len(parts))
        value = encode(entry)
    records = dict(zip(entry.part_keys, parts, strict=True))
    return entry, {f"step/{entry.step}": value, **records}


def largest_result(max_item_bytes: int) -> int:
    """Of a record in the hitters topic, in bytes: its key is the item, which in JSON takes six
    times the room if all of it must be escaped."""
    return 7 * max_item_bytes + 1_024


def _hitter_parts(hitters: tuple[Hitter[str], ...]) -> Iterator[bytes]:
    """JSON arrays that together hold all hitters in their order."""
    part: list[bytes] = []
    size = 2
    for hitter in map(encode, hitters):
        if part and size + len(hitter) > CHUNK_BYTES:
            yield b"[" + b",".join(part) + b"]"
            part, size = [], 2
        part.append(hitter)
        size += len(hitter) + 1
    yield b"[" + b",".join(part) + b"]"


_MARK = b"unit"
"""Begins a chunk of charges in units. Version 0.1.0, whose chunks begin with their checksums,
refuses it."""


def chunks_of(charges: Charges) -> list[bytes]:
    """Charges, in chunks: a mark, a checksum, the users, then the units of each."""
    parts = [slice(start, start + CHUNK_USERS) for start in range(0, len(charges), CHUNK_USERS)]
    return [
        _sealed(
            charges.users[part].astype("<u8").tobytes()
            + charges.units[part].astype("<u2").tobytes()
        )
        for part in parts
    ]


def charges_of(chunk: bytes) -> Charges:
    if chunk[:4] != _MARK:
        raise ValueError("charges are damaged, or of another format")
    return Charges(*columns_of(opened(memoryview(chunk)[4:])))


def columns_of(content: memoryview) -> tuple[Users, Units]:
    number = len(content) // 10
    users = np.frombuffer(content, dtype="<u8", count=number)
    units = np.frombuffer(content, dtype="<u2", offset=8 * number)
    return users.astype(np.uint64, copy=False), units.astype(np.uint16, copy=False)


def _sealed(content: bytes) -> bytes:
    return _MARK + zlib.crc32(content).to_bytes(4, "little") + content


def opened(chunk: memoryview) -> memoryview:
    """What follows a checksum."""
    content = chunk[4:]
    if len(chunk) <= 4 or zlib.crc32(content) != int.from_bytes(chunk[:4], "little"):
        raise ValueError("a checksum is wrong")
    return content
