"""The event contract, and how a batch of records is decoded to columns.

No record can stop the stream: one that is not a valid event is rejected with a reason, and
the rest of its batch continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from types import NoneType
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from streamer.stream.moments import Moments, parse_usual
from streamer.stream.timing import LATEST_MOMENT, StepTiming, parse_rfc3339

# Longer texts only add fractions of a millisecond. They are rejected, not cached.
_LONGEST_TIME = 40
_USER, _ITEM = attrgetter("user"), attrgetter("item")
_TIME, _STEP = attrgetter("time"), attrgetter("step")


class Event(msgspec.Struct, gc=False):
    """An item that one user holds at a point in time. Unknown fields are ignored."""

    user: Annotated[str, Meta(description="The user's id; never published.", examples=["u-17"])]
    item: Annotated[
        str, Meta(description="What the user holds.", examples=["crash:NPE:Foo.java:42"])
    ]
    time: Annotated[
        str | int | None,
        Meta(
            description="RFC 3339 with an offset, or milliseconds since 1970. Without it, and "
            "without a step, the record's arrival time is used.",
            examples=["2026-01-01T00:00:12Z", 1767225612000],
        ),
    ] = None
    step: Annotated[
        int | None, Meta(description="Instead of a time; means the start of this step.")
    ] = None


class Reason(StrEnum):
    """Why a record is rejected."""

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
    """The largest accepted record, user id and item, in bytes of UTF-8."""

    record_bytes: int = 65_536
    user_bytes: int = 256
    item_bytes: int = 1_024


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected record, by its position in the batch."""

    place: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Decoded:
    """The events of a batch as columns; `places` are their positions in the batch."""

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
        self._json = msgspec.json.Decoder(Event)
        # Only steps whose end can be written as RFC 3339.
        self._end = timing.start(timing.step_at(LATEST_MOMENT))

    def decode(self, records: Sequence[bytes | None], arrivals: Moments | None) -> Decoded:
        """Decode records. An event without a time gets its arrival time.

        Records of a file have no arrival time: their events must have a time.
        """
        reasons: dict[int, Reason] = {}
        events, places = self._events(records, reasons)
        moments = None if arrivals is None else arrivals[places]
        users, items = list(map(_USER, events)), list(map(_ITEM, events))
        if not self._surely_fit(users, items):
            self._check_sizes(events, places, reasons)
        times = self._times(events, places, moments, reasons)
        if reasons:
            good = [place not in reasons for place in places.tolist()]
            users, items = list(compress(users, good)), list(compress(items, good))
            places, times = places[good], times[good]
        rejections = [Rejection(place, reasons[place]) for place in sorted(reasons)]
        return Decoded(places, users, items, times, rejections)

    def _events(
        self, records: Sequence[bytes | None], reasons: dict[int, Reason]
    ) -> tuple[list[Event], NDArray[np.int64]]:
        """The events that can be decoded, and their positions. A valid batch is decoded at
        once. Otherwise records are decoded one by one: the content of one must never affect
        another."""
        if all(records) and max(map(len, records), default=0) <= self._limits.record_bytes:  # type: ignore[arg-type]
            with suppress(msgspec.ValidationError, ValueError, RecursionError):
                return list(map(self._json.decode, records)), np.arange(len(records))  # type: ignore[arg-type]
        events, places = [], []
        for place, record in enumerate(records):
            event = self._event(record)
            if isinstance(event, Reason):
                reasons[place] = event
            else:
                events.append(event)
                places.append(place)
        return events, np.array(places, dtype=np.int64)

    def _event(self, record: bytes | None) -> Event | Reason:
        if not record:
            return Reason.EMPTY
        if len(record) > self._limits.record_bytes:
            return Reason.TOO_LARGE
        try:
            return self._json.decode(record)
        except msgspec.ValidationError as error:
            return _explain(str(error))
        except (ValueError, RecursionError):
            return Reason.NOT_JSON

    def _check_sizes(
        self, events: list[Event], places: NDArray[np.int64], reasons: dict[int, Reason]
    ) -> None:
        for event, place in zip(events, places.tolist(), strict=True):
            reason = self._fault(event)
            if reason is not None:
                reasons[place] = reason

    def _surely_fit(self, users: list[str], items: list[str]) -> bool:
        """A quick check per column: nothing is empty, and a character is at most four bytes."""
        return (
            all(users)
            and all(items)
            and 4 * max(map(len, users), default=0) <= self._limits.user_bytes
            and 4 * max(map(len, items), default=0) <= self._limits.item_bytes
        )

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

    def _times(
        self,
        events: list[Event],
        places: NDArray[np.int64],
        arrivals: Moments | None,
        reasons: dict[int, Reason],
    ) -> Moments:
        """Usually all times of a batch have the same form; the rest is read one by one."""
        times, readable = _read_together(events, arrivals)
        in_range = (times >= self._timing.epoch_ms) & (times < self._end)
        for index in np.flatnonzero(~(readable & in_range)).tolist():
            arrival = None if arrivals is None else int(arrivals[index])
            time = self._time_of(events[index], arrival)
            if isinstance(time, Reason):
                reasons.setdefault(int(places[index]), time)
            else:
                times[index] = time
        return times

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


def _read_together(
    events: list[Event], arrivals: Moments | None
) -> tuple[Moments, NDArray[np.bool_]]:
    """The times of events if all have the same form, and which of them could be read."""
    times = list(map(_TIME, events))
    kinds = set(map(type, times))
    unread = np.zeros(len(events), dtype=np.int64), np.zeros(len(events), dtype=np.bool_)
    if set(map(_STEP, events)) - {None}:
        return unread
    if kinds == {str}:
        return parse_usual(times)
    if kinds == {NoneType} and arrivals is not None:
        return arrivals.copy(), np.ones(len(events), dtype=np.bool_)
    if kinds == {int}:
        with suppress(OverflowError):
            return np.array(times, dtype=np.int64), np.ones(len(events), dtype=np.bool_)
    return unread


@lru_cache(maxsize=1 << 14)
def _parse(text: str) -> int | Reason:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return Reason.BAD_TIME


def _explain(error: str) -> Reason:
    """Translate msgspec's message to a reason."""
    if "missing required field `user`" in error:
        return Reason.MISSING_USER
    if "missing required field `item`" in error:
        return Reason.MISSING_ITEM
    if error.startswith("Expected `object`"):
        return Reason.NOT_AN_OBJECT
    if error.endswith("`$.time`"):
        return Reason.BAD_TIME
    return Reason.WRONG_TYPE
