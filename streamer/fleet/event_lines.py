"""Simulated events as JSON lines, in bulk."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamer.fleet.bad_records import Kind, bad_record
from streamer.fleet.catalogue import Catalogue, user_name
from streamer.fleet.simulation import Events

_FRACTIONS = np.array([b".%03dZ" % fraction for fraction in range(1000)], dtype=object)


class EventLines:
    """Renders columns; shared items are encoded once, users and personal items on demand."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._shared = [_json_text(catalogue.text(item)) for item in range(catalogue.shared)]

    def render(self, events: Events) -> list[bytes]:
        """One JSON record per row, in order, without newlines."""
        users = [user_name(user).encode() for user in events.users.tolist()]
        items = [self._item(item) for item in events.items.tolist()]
        times = _time_texts(events.times)
        lines = [
            b'{"user":"%b","item":"%b","time":"%b"}' % texts
            for texts in zip(users, items, times, strict=True)
        ]
        for row in np.flatnonzero(events.kinds != Kind.EVENT).tolist():
            kind = Kind(events.kinds[row])
            lines[row] = bad_record(kind, users[row], items[row], times[row])
        return lines

    def _item(self, item: int) -> bytes:
        if item < len(self._shared):
            return self._shared[item]
        return _json_text(self._catalogue.text(item))


def _json_text(text: str) -> bytes:
    """JSON-escaped, without the enclosing quotes."""
    return msgspec.json.encode(text)[1:-1]


def _time_texts(times: NDArray[np.int64]) -> list[bytes]:
    """Milliseconds since 1970 as RFC 3339 text in UTC."""
    # A step has few distinct seconds, and formatting a date is the slow part.
    seconds, rows = np.unique(times // 1000, return_inverse=True)
    texts = np.datetime_as_string(seconds.astype("datetime64[s]")).astype("S19").astype(object)
    whole: list[bytes] = (texts[rows] + _FRACTIONS[times % 1000]).tolist()
    return whole
