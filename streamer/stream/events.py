"""The event contract, and how a batch of records is decoded to columns.

Nothing that a record contains can stop the stream: what is not an event is rejected with
a reason, and the rest of its batch goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import repeat
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from streamer.stream.timing import LATEST_MOMENT, StepTiming, parse_rfc3339

Moments = NDArray[np.int64]
# Longer texts than this only say fractions of a millisecond; they are not worth keeping.
_LONGEST_TIME = 40


class Event(msgspec.Struct):
    """What one user holds at a moment. Unknown fields are ignored."""

    user: Annotated[str, Meta(description="Who; never published.", examples=["u-17"])]
    item: Annotated[str, Meta(description="What.", examples=["crash:NPE:Foo.java:42"])]
    time: Annotated[
        str | int | None,
        Meta(
            description="When: RFC 3339 with an offset, or milliseconds since 1970. Without it, "
            "and without a step, the record's arrival counts.",
            examples=["2026-01-01T00:00:12Z", 1767225612000],
        ),
    ] = None
    step: Annotated[int | None, Meta(description="Instead of a time: the start of this step.")] = (
        None
    )


class Reason(StrEnum):
    """Why a record is no event, or one that cannot count."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_USER = "missing_user"
    MISSING_ITEM = "missing_item"
    WRONG_TYPE = "wrong_type"
    USER_TOO_LONG = "user_too_long"
    ITEM_TOO_LONG = "item_too_long"
    MISSING_TIME = "missing_time"
    BAD_TIME = "bad_time"
    TIME_AND_STEP = "time_and_step"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    TIME_AHEAD = "time_ahead"
    ARRIVAL_AHEAD = "arrival_ahead"


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest record, user id and item that are accepted, in bytes of UTF-8."""

    record_bytes: int = 65_536
    user_bytes: int = 256
    item_bytes: int = 1_024


@dataclass(frozen=True, slots=True)
class Rejection:
    """The record at this place of its batch is rejected."""

    place: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Decoded:
    """The events of a batch as columns; `places` are their places among its records."""

    places: NDArray[np.int64]
    users: list[str]
    items: list[str]
    times: Moments
    rejections: list[Rejection]


class EventDecoder:
    """Decodes batches of records to columns."""

    def __init__(self, timing: StepTiming, limits: Limits | None = None) -> None:
        self._timing = timing
        self._limits = limits or Limits()
        # A record of this length cannot hold a user or an item that is too long.
        self._short = min(
            self._limits.record_bytes, self._limits.user_bytes, self._limits.item_bytes
        )
        self._json = msgspec.json.Decoder(Event)
        # Only steps that end before the last moment that can be written down.
        self._end = timing.start(timing.step_at(LATEST_MOMENT))

    def decode(self, records: Sequence[bytes | None], arrivals: Moments | None) -> Decoded:
        """Records and when each arrived, which is the time of an event that has none.

        Records of a file never arrived: there an event must carry its time.
        """
        moments = repeat(None, len(records)) if arrivals is None else arrivals.tolist()
        places, users, items, times = [], [], [], []
        rejections = []
        for place, (record, arrival) in enumerate(zip(records, moments, strict=True)):
            event = self._decode(record)
            if isinstance(event, Reason):
                rejections.append(Rejection(place, event))
                continue
            time = self._time_of(event, arrival)
            if isinstance(time, Reason):
                rejections.append(Rejection(place, time))
                continue
            places.append(place)
            users.append(event.user)
            items.append(event.item)
            times.append(time)
        columns = np.array(places, dtype=np.int64), np.array(times, dtype=np.int64)
        return Decoded(columns[0], users, items, columns[1], rejections)

    def _decode(self, record: bytes | None) -> Event | Reason:
        """Each record by itself: what one of them holds must never change another's fate."""
        if not record:
            return Reason.EMPTY
        if len(record) > self._limits.record_bytes:
            return Reason.TOO_LARGE
        try:
            event = self._json.decode(record)
        except msgspec.ValidationError as error:
            return _explain(str(error))
        except (ValueError, RecursionError):
            return Reason.NOT_JSON
        if len(record) <= self._short and event.user and event.item:
            return event
        return self._fault(event) or event

    def _fault(self, event: Event) -> Reason | None:
        if not event.user:
            return Reason.MISSING_USER
        if not event.item:
            return Reason.MISSING_ITEM
        if len(event.user.encode()) > self._limits.user_bytes:
            return Reason.USER_TOO_LONG
        if len(event.item.encode()) > self._limits.item_bytes:
            return Reason.ITEM_TOO_LONG
        return None

    def _time_of(self, event: Event, arrival: int | None) -> int | Reason:
        if event.time is not None and event.step is not None:
            return Reason.TIME_AND_STEP
        if event.step is not None:
            time: int | Reason = self._timing.start(event.step)
        elif isinstance(event.time, str):
            time = _parse(event.time) if len(event.time) <= _LONGEST_TIME else Reason.BAD_TIME
        elif event.time is not None:
            time = event.time
        elif arrival is not None:
            time = arrival
        else:
            time = Reason.MISSING_TIME
        if not isinstance(time, Reason) and not self._timing.epoch_ms <= time < self._end:
            return Reason.TIME_OUT_OF_RANGE
        return time


def _parse(text: str) -> int | Reason:
    """The usual form, with milliseconds, is read from its second: that has been seen before."""
    fraction = text[20:23]
    if len(text) == 24 and text[19] == "." and text[23] == "Z" and _is_number(fraction):
        second = _parse_seen(text[:19] + "Z")
        return second if isinstance(second, Reason) else second + int(fraction)
    return _parse_seen(text)


@lru_cache(maxsize=1 << 14)
def _parse_seen(text: str) -> int | Reason:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return Reason.BAD_TIME


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _explain(error: str) -> Reason:
    """From msgspec's message to ours."""
    if "missing required field `user`" in error:
        return Reason.MISSING_USER
    if "missing required field `item`" in error:
        return Reason.MISSING_ITEM
    if error.startswith("Expected `object`"):
        return Reason.NOT_AN_OBJECT
    if error.endswith("`$.time`"):
        return Reason.BAD_TIME
    return Reason.WRONG_TYPE
