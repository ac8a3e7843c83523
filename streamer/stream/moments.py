"""Parses many RFC 3339 texts at once, in the most common form: 2026-01-01T00:00:12.345Z."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.int64]
"""Whole milliseconds since 1970-01-01T00:00:00Z."""

_FORM = np.frombuffer(b"0000-00-00T00:00:00.000Z", dtype=np.uint8)
_ZERO = _FORM[0]
_DIGITS = np.flatnonzero(_ZERO == _FORM)
_MARKS = np.flatnonzero(_ZERO != _FORM)
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE_MONTH = np.concatenate(([0], np.cumsum(_MONTH_DAYS)))
_DAYS_BEFORE_1970 = 719_162
"""Since the first day of the year 1."""


def parse_usual(texts: Sequence[str]) -> tuple[Moments, NDArray[np.bool_]]:
    """The moments of these texts, and which of them could be parsed.

    A text that could not be parsed may be in another form of RFC 3339: see `parse_rfc3339`.
    The others have the same result as with `parse_rfc3339`.
    """
    number, length = len(texts), len(_FORM)
    together = "".join(texts)
    if not together.isascii() or set(map(len, texts)) != {length}:
        return np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.bool_)
    # One row per character position, so that everything below works on whole rows.
    places = np.frombuffer(together.encode("ascii"), dtype=np.uint8).reshape(number, length).T
    readable = (places[_MARKS] == _FORM[_MARKS][:, None]).all(axis=0)
    digits = places[_DIGITS] - _ZERO
    readable &= (digits <= 9).all(axis=0)  # characters below "0" wrap around to large values
    d = digits.astype(np.int64)
    year = ((d[0] * 10 + d[1]) * 10 + d[2]) * 10 + d[3]
    month, day = d[4] * 10 + d[5], d[6] * 10 + d[7]
    hour, minute, second = d[8] * 10 + d[9], d[10] * 10 + d[11], d[12] * 10 + d[13]
    millisecond = (d[14] * 10 + d[15]) * 10 + d[16]
    readable &= (year >= 1) & (month >= 1) & (month <= 12)
    readable &= (hour < 24) & (minute < 60) & (second < 60)
    month = np.where(readable, month, 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    readable &= (day >= 1) & (day <= _MONTH_DAYS[month] + (leap & (month == 2)))
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - _DAYS_BEFORE_1970
    days += _DAYS_BEFORE_MONTH[month] + (leap & (month > 2)) + day - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return seconds * 1000 + millisecond, readable
