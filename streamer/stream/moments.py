"""Parses many RFC 3339 texts at once, whatever forms of it are mixed in a batch.

2026-01-01T00:00:12Z, with a fraction of up to nine digits, with a space in place of the T, with
an offset such as +02:00 in place of the Z: all take about the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.int64]
"""Whole milliseconds since 1970-01-01T00:00:00Z."""

_Bytes = NDArray[np.uint8]
_FORM = b"0000-00-00T00:00:00.000000000"
"""The longest form, without its end: Z or an offset."""
_OFFSET = b"+00:00"
_FIXED = _FORM.index(b".")
"""What every text has; a fraction may follow."""
_LONGEST_FRACTION = len(_FORM) - _FIXED - 1
_WIDTH = len(_FORM) + len(_OFFSET)
_ZERO, _DOT, _Z, _PLUS, _MINUS, _T, _SPACE, _NEWLINE = b"0.Z+-T \n"
_DIGITS = np.array([place for place in range(_FIXED) if _FORM[place] == _ZERO])
_MARKS = np.array([place for place in range(_FIXED) if _FORM[place] in b"-:"])
_BETWEEN = _FORM.index(b"T")
_YEARS = np.arange(10_000)
_LEAP = (_YEARS % 4 == 0) & ((_YEARS % 100 != 0) | (_YEARS % 400 == 0))
_BEFORE = _YEARS - 1
_DAYS_BEFORE_YEAR = _BEFORE * 365 + _BEFORE // 4 - _BEFORE // 100 + _BEFORE // 400 - 719_162
"""Since 1970-01-01."""
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE_MONTH = np.concatenate(([0], np.cumsum(_MONTH_DAYS)))


def parse_usual(texts: Sequence[str]) -> tuple[Moments, NDArray[np.bool_]]:
    """The moments of these texts, rounded down, and which of them could be parsed.

    A text that could not be parsed may be in another form of RFC 3339: see `parse_rfc3339`.
    The others have the same result as with `parse_rfc3339`.
    """
    unread = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
    together = "\n".join(texts)
    if not texts or not together.isascii():
        return unread
    # The padding is for windows that begin in the last text.
    flat = np.frombuffer(f"{together}\n{' ' * _WIDTH}".encode("ascii"), dtype=np.uint8)
    ends = np.flatnonzero(flat == _NEWLINE)
    if len(ends) != len(texts):
        return unread  # a text contains a newline
    starts = np.concatenate(([0], ends[:-1] + 1))
    fixed = _windows(flat, starts, _FIXED + 1)
    seconds, readable = _read_fixed(fixed)
    in_zulu = flat[ends - 1] == _Z
    size = (ends - starts) - _FIXED - np.where(in_zulu, 1, len(_OFFSET))
    if not in_zulu.all():
        behind = np.flatnonzero(~in_zulu)
        offset, known = _read_offsets(_windows(flat, ends[behind] - len(_OFFSET), len(_OFFSET)))
        seconds[behind] -= offset
        readable[behind] &= known
    milliseconds, known = _read_fractions(flat, starts, size, fixed[_FIXED] == _DOT)
    return seconds * 1000 + milliseconds, readable & known


def _windows(flat: _Bytes, starts: NDArray[np.int64], width: int) -> _Bytes:
    """The bytes from each start on: one row per position, so that all else works on whole rows."""
    windows = np.ndarray((len(flat) - width + 1,), f"V{width}", flat.data, strides=(1,))
    rows = windows[starts].view(np.uint8).reshape(len(starts), width)
    return np.ascontiguousarray(rows.T)


def _read_fixed(fixed: _Bytes) -> tuple[Moments, NDArray[np.bool_]]:
    """The seconds of dates and times."""
    digits = fixed[_DIGITS] - _ZERO
    readable = (digits <= 9).all(axis=0)  # characters below "0" wrap around to large values
    for mark in _MARKS.tolist():
        readable &= fixed[mark] == _FORM[mark]
    readable &= (fixed[_BETWEEN] == _T) | (fixed[_BETWEEN] == _SPACE)
    d = np.where(readable, digits, np.uint8(0)).astype(np.int16)
    year = ((d[0] * 10 + d[1]) * 10 + d[2]) * 10 + d[3]
    month, day, hour, minute, second = (d[place] * 10 + d[place + 1] for place in range(4, 14, 2))
    readable &= (year >= 1) & (month >= 1) & (month <= 12)
    readable &= (hour < 24) & (minute < 60) & (second < 60)
    month = np.where(readable, month, 1)
    leap = _LEAP[year]
    readable &= (day >= 1) & (day <= _MONTH_DAYS[month] + (leap & (month == 2)))
    days = _DAYS_BEFORE_YEAR[year] + _DAYS_BEFORE_MONTH[month] + (leap & (month > 2)) + day - 1
    return ((days * 24 + hour) * 60 + minute) * 60 + second, readable


def _read_offsets(offsets: _Bytes) -> tuple[Moments, NDArray[np.bool_]]:
    """The seconds of offsets such as +02:00."""
    digits = offsets[[1, 2, 4, 5]] - _ZERO
    sign, colon = offsets[0], offsets[3]
    d = digits.astype(np.int64)
    hour, minute = d[0] * 10 + d[1], d[2] * 10 + d[3]
    known = (digits <= 9).all(axis=0) & (hour < 24) & (minute < 60)
    known &= ((sign == _PLUS) | (sign == _MINUS)) & (colon == _OFFSET[3])
    return np.where(sign == _PLUS, 60, -60) * (hour * 60 + minute), known


def _read_fractions(
    flat: _Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], dotted: NDArray[np.bool_]
) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """The milliseconds of fractions; `sizes`: with their dots, 0 if there is none."""
    known = (sizes == 0) | (dotted & (sizes >= 2) & (sizes <= _LONGEST_FRACTION + 1))
    counts = np.clip(sizes - 1, 0, _LONGEST_FRACTION).astype(np.int8)
    width = max(3, int(counts.max()))
    digits = _windows(flat, starts + _FIXED + 1, width) - _ZERO
    if counts.min() < width:
        # What stands behind a short fraction is not part of it.
        digits *= np.arange(width, dtype=np.int8)[:, None] < counts
    known &= (digits <= 9).all(axis=0)
    d = digits[:3].astype(np.int16)
    return (d[0] * 10 + d[1]) * 10 + d[2], known
