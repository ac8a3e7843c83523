"""The contract of decoders: from records to events as columns.

A record holds one event, or many of many users. Each is judged by itself: what is wrong with
one never affects another. No record can stop the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.stream.moments import Moments
from streamer.stream.reasons import Reason

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected record, by its position in the batch; `part`: which of the record's events, from
    0 on, if it holds several."""

    place: int
    reason: Reason
    part: int | None = None

    def position(self) -> tuple[int, int]:
        """In the order of records and of events in a record."""
        return self.place, self.part or 0


@dataclass(frozen=True, slots=True)
class Decoded:
    """The events of a batch as columns; `places` are the positions of their records in the batch,
    `parts` their positions in a record that holds several (-1: it holds one; None: all do).
    `ignored` events are not wanted: they are neither counted nor rejected."""

    places: NDArray[np.int64]
    users: list[str]
    items: list[str]
    times: Moments
    rejections: list[Rejection] = field(default_factory=list)
    parts: NDArray[np.int64] | None = None
    ignored: int = 0

    def rejection(self, index: int, reason: Reason) -> Rejection:
        """Of one of these events."""
        part = -1 if self.parts is None else int(self.parts[index])
        return Rejection(int(self.places[index]), reason, None if part < 0 else part)


class Envelopes(Protocol):
    """What a broker stores beside the values of a batch's records; built only when asked for."""

    def keys(self) -> Sequence[bytes | None]: ...

    def headers(self) -> Sequence[Sequence[tuple[str, bytes | None]]]: ...


class Decoder(Protocol):
    def decode(
        self,
        records: Sequence[bytes | None],
        arrivals: Moments | None,
        envelopes: Envelopes | None = None,
    ) -> Decoded:
        """Decode records. Those of a file have neither arrival times nor envelopes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest accepted record, user id and item, in bytes of UTF-8."""

    record_bytes: int = 65_536
    user_bytes: int = 256
    item_bytes: int = 1_024

    def surely_kept(self, users: list[str], items: list[str]) -> bool:
        """A quick check per column: nothing is empty, and a character is at most four bytes."""
        return (
            all(users)
            and all(items)
            and 4 * max(map(len, users), default=0) <= self.user_bytes
            and 4 * max(map(len, items), default=0) <= self.item_bytes
        )

    def fault(self, user: str, item: str) -> Reason | None:
        """The exact check of one event."""
        if not user:
            return Reason.MISSING_USER
        if not item:
            return Reason.MISSING_ITEM
        if len(user.encode()) > self.user_bytes:
            return Reason.USER_TOO_LONG
        if len(item.encode()) > self.item_bytes:
            return Reason.ITEM_TOO_LONG
        return None


def parse_each(
    records: Sequence[bytes | None],
    limits: Limits,
    parse: Callable[[bytes], Parsed],
    explain: Callable[[bytes, msgspec.ValidationError], Parsed | Reason],
) -> tuple[list[Parsed], NDArray[np.int64], dict[int, Reason]]:
    """Parse JSON records: the results, their positions, and why the others have none.

    `explain` is called for JSON that `parse` refuses. A valid batch is parsed at once.
    Otherwise records are parsed one by one: the content of one must never affect another.
    """
    if all(records) and max(map(len, records), default=0) <= limits.record_bytes:  # type: ignore[arg-type]
        with suppress(msgspec.ValidationError, ValueError, RecursionError):
            return list(map(parse, records)), np.arange(len(records)), {}  # type: ignore[arg-type]
    results, places, reasons = [], [], {}
    for place, record in enumerate(records):
        result = _parse_one(record, limits, parse, explain)
        if isinstance(result, Reason):
            reasons[place] = result
        else:
            results.append(result)
            places.append(place)
    return results, np.array(places, dtype=np.int64), reasons


def _parse_one(
    record: bytes | None,
    limits: Limits,
    parse: Callable[[bytes], Parsed],
    explain: Callable[[bytes, msgspec.ValidationError], Parsed | Reason],
) -> Parsed | Reason:
    if not record:
        return Reason.EMPTY
    if len(record) > limits.record_bytes:
        return Reason.TOO_LARGE
    try:
        try:
            return parse(record)
        except msgspec.ValidationError as error:
            return explain(record, error)
    except (ValueError, RecursionError):
        return Reason.NOT_JSON
