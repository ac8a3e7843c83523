"""The event contract, and how a batch of records is decoded to columns.

Nothing that a record contains can stop the stream: what is not an event is rejected with
a reason, and the rest of its batch goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import compress
from types import NoneType
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from streamer.stream.moments import Moments, parse_usual
from streamer.stream.timing import LATEST_MOMENT, StepTiming, parse_rfc3339

# Longer texts than this only say fractions of a millisecond; they are not worth keeping.
_LONGEST_TIME = 40


class Event(msgspec.Struct, gc=False):
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
        self._json = msgspec.json.Decoder(Event)
        # Only steps that end before the last moment that can be written down.
        self._end = timing.start(timing.step_at(LATEST_MOMENT))

    def decode(self, records: Sequence[bytes | None], arrivals: Moments | None) -> Decoded:
        """Records and when each arrived, which is the time of an event that has none.

        Records of a file never arrived: there an event must carry its time.
        """
        reasons: dict[int, Reason] = {}
        decoded = self._events(records, reasons)
        places = [place for place, event in enumerate(decoded) if event is not None]
        events = [event for event in decoded if event is not None]
        self._check_sizes(events, places, reasons)
        moments = None if arrivals is None else arrivals[places]
        times = self._times(events, places, moments, reasons)
        if reasons:
            good = [place not in reasons for place in places]
            places, events = list(compress(places, good)), list(compress(events, good))
            times = times[good]
        return Decoded(
            np.array(places, dtype=np.int64),
            [event.user for event in events],
            [event.item for event in events],
            times,
            [Rejection(place, reasons[place]) for place in sorted(reasons)],
        )

    def _events(
        self, records: Sequence[bytes | None], reasons: dict[int, Reason]
    ) -> list[Event | None]:
        """Each record by itself: what one of them holds must never change another's fate."""
        sizes = [len(record) if record else 0 for record in records]
        largest = self._limits.record_bytes
        if records and (max(sizes) > largest or not min(sizes)):
            for place, size in enumerate(sizes):
                if size == 0 or size > largest:
                    reasons[place] = Reason.TOO_LARGE if size else Reason.EMPTY
            records = [None if place in reasons else one for place, one in enumerate(records)]
        events: list[Event | None] = []
        note, decode = events.append, self._json.decode
        for record in records:
            try:
                note(decode(record))  # type: ignore[arg-type]
            except msgspec.ValidationError as error:
                reasons.setdefault(len(events), _explain(str(error)))
                note(None)
            except (ValueError, TypeError, RecursionError):
                reasons.setdefault(len(events), Reason.NOT_JSON)
                note(None)
        return events

    def _check_sizes(
        self, events: list[Event], places: list[int], reasons: dict[int, Reason]
    ) -> None:
        """The usual case is a look at each column; only if that leaves a doubt, at each event."""
        users, items = [event.user for event in events], [event.item for event in events]
        longest = max(map(len, users), default=0), max(map(len, items), default=0)
        if all(users) and all(items) and self._surely_fits(*longest):
            return
        for event, place in zip(events, places, strict=True):
            reason = self._fault(event)
            if reason is not None:
                reasons.setdefault(place, reason)

    def _surely_fits(self, user: int, item: int) -> bool:
        """Texts of so many characters, each of which takes at most four bytes."""
        return 4 * user <= self._limits.user_bytes and 4 * item <= self._limits.item_bytes

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
        places: list[int],
        arrivals: Moments | None,
        reasons: dict[int, Reason],
    ) -> Moments:
        """The usual case is a batch of times of one kind; what is left is looked at one by one."""
        times, readable = _read_together(events, arrivals)
        in_range = (times >= self._timing.epoch_ms) & (times < self._end)
        for index in np.flatnonzero(~(readable & in_range)).tolist():
            arrival = None if arrivals is None else int(arrivals[index])
            time = self._time_of(events[index], arrival)
            if isinstance(time, Reason):
                reasons.setdefault(places[index], time)
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
    """The times of events, as far as all of them are given in one way; and which are read."""
    times = [event.time for event in events]
    kinds = set(map(type, times))
    unread = np.zeros(len(events), dtype=np.int64), np.zeros(len(events), dtype=np.bool_)
    if any(event.step is not None for event in events):
        return unread
    if kinds == {str}:
        return parse_usual(times)  # type: ignore[arg-type]
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
