"""The records of a ledger in a compacted topic: keys and values.

| key | value |
|---|---|
| `life` | step length, epoch and events topic; never changes |
| `period/N` | the plan of period N, and the fingerprint of its key |
| `step/N` | the decision of step N and the offsets to continue from; only recent ones are kept |
| `published` | the last published step |
| `charges/N/I` | chunk I of the users charged in step N |
| `snapshot` | the step of the current snapshot, and its number of chunks |
| `counters/N/I` | chunk I of the counters after step N |
"""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Hitter, Users
from streamer.stream.periods import Period

FORMAT = 1
CHUNK_USERS = 50_000
"""Half a megabyte per record: below the default limit of brokers."""


class LifeRecord(msgspec.Struct, frozen=True):
    format: int
    length_ms: int
    epoch_ms: int
    events_topic: str


class PeriodRecord(msgspec.Struct, frozen=True):
    period: Period
    key: str


class StepEntry(msgspec.Struct, frozen=True):
    step: int
    first: int
    period: int
    hitters: tuple[Hitter[str], ...]
    offsets: dict[str, int]
    oldest: int
    """The oldest step that is still kept once this one is written."""
    spent: int
    """Charges of its period up to and including this step, over all users."""


class PublishedRecord(msgspec.Struct, frozen=True):
    step: int


class SnapshotRecord(msgspec.Struct, frozen=True):
    step: int
    chunks: int


encode = msgspec.json.Encoder().encode


def chunks_of(users: Users) -> list[bytes]:
    """The charged users, in chunks with a checksum each."""
    parts = [users[start : start + CHUNK_USERS] for start in range(0, len(users), CHUNK_USERS)]
    return [_sealed(part.astype("<u8").tobytes()) for part in parts]


def users_of(chunk: bytes) -> Users:
    return np.frombuffer(_opened(chunk), dtype="<u8").astype(np.uint64, copy=False)


def counter_chunks(users: Users, charges: NDArray[np.uint16]) -> list[bytes]:
    """All counters, in chunks: first the users, then how often each was charged."""
    return [
        _sealed(
            users[start : start + CHUNK_USERS].astype("<u8").tobytes()
            + charges[start : start + CHUNK_USERS].astype("<u2").tobytes()
        )
        for start in range(0, len(users), CHUNK_USERS)
    ]


def counters_of(chunk: bytes) -> tuple[Users, NDArray[np.uint16]]:
    content = _opened(chunk)
    number = len(content) // 10
    users = np.frombuffer(content, dtype="<u8", count=number)
    charges = np.frombuffer(content, dtype="<u2", offset=8 * number)
    return users.astype(np.uint64, copy=False), charges.astype(np.uint16, copy=False)


def _sealed(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little") + content


def _opened(chunk: bytes) -> memoryview:
    content = memoryview(chunk)[4:]
    if len(chunk) <= 4 or zlib.crc32(content) != int.from_bytes(chunk[:4], "little"):
        raise ValueError("a checksum is wrong")
    return content
