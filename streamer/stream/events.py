"""The event contract, and how a batch of records is decoded to columns.

No record can stop the stream: one that is not a valid event is rejected with a reason, and
the rest of its batch continues. `mapped_events.py` decodes records of other forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import Annotated

import msgspec
from msgspec import Meta

from streamer.stream.decoding import Decoded, Envelopes, Limits, Rejection, parse_each
from streamer.stream.event_times import EventTimes
from streamer.stream.moments import Moments
from streamer.stream.reasons import Reason
from streamer.stream.timing import StepTiming

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


class EventDecoder:
    """Implements `Decoder` for records that follow the event contract: one event each."""

    def __init__(self, timing: StepTiming, limits: Limits | None = None) -> None:
        self._timing = timing
        self._limits = limits or Limits()
        self._times = EventTimes(timing)
        self._json = msgspec.json.Decoder(Event)

    def decode(
        self,
        records: Sequence[bytes | None],
        arrivals: Moments | None,
        envelopes: Envelopes | None = None,
    ) -> Decoded:
        """An event without a time gets its arrival time. Records of a file have none: their events
        must have a time."""
        del envelopes
        limits = self._limits
        events, places, reasons = parse_each(
            records, limits, self._json.decode, lambda _, error: _explain(str(error))
        )
        users, items = list(map(_USER, events)), list(map(_ITEM, events))
        faults: dict[int, Reason] = {}
        if not limits.surely_kept(users, items):
            for index, (user, item) in enumerate(zip(users, items, strict=True)):
                fault = limits.fault(user, item)
                if fault is not None:
                    faults[index] = fault
        values = self._values(events, faults)
        times, unread = self._times.read(values, None if arrivals is None else arrivals[places])
        faults = unread | faults
        if faults:
            reasons |= {int(places[index]): reason for index, reason in faults.items()}
            good = [index not in faults for index in range(len(events))]
            users, items = list(compress(users, good)), list(compress(items, good))
            places, times = places[good], times[good]
        rejections = [Rejection(place, reasons[place]) for place in sorted(reasons)]
        return Decoded(places, users, items, times, rejections)

    def _values(self, events: list[Event], faults: dict[int, Reason]) -> list[str | int | None]:
        """The events' times; the start of its step for an event that has one instead."""
        values = list(map(_TIME, events))
        if set(map(_STEP, events)) - {None}:
            for index, event in enumerate(events):
                if event.step is not None:
                    if event.time is not None:
                        faults.setdefault(index, Reason.TIME_AND_STEP)
                    values[index] = self._timing.start(event.step)
        return values


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
