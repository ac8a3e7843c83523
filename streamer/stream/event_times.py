"""Reads the times of events: texts and numbers in a format that the settings name.

A number's unit is never guessed from its size: the same digits mean the same moment in every
batch and for every user.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import NoneType

import numpy as np
from numpy.typing import NDArray

from streamer.stream.moments import Moments, parse_usual
from streamer.stream.reasons import Reason
from streamer.stream.timing import LATEST_MOMENT, StepTiming, parse_rfc3339

# Longer texts only add fractions of a millisecond. They are rejected, not cached.
_LONGEST_TIME = 40
_MOST_MICROSECONDS = 1000.0 * LATEST_MOMENT


class TimeFormat(StrEnum):
    """How times are written. AUTO: ISO 8601 text, or a number of milliseconds."""

    AUTO = "auto"
    ISO = "iso"
    POSIX = "posix"
    MILLIS = "millis"
    MICROS = "micros"
    NANOS = "nanos"


_PER_SECOND = {
    TimeFormat.AUTO: 1_000,
    TimeFormat.POSIX: 1,
    TimeFormat.MILLIS: 1_000,
    TimeFormat.MICROS: 1_000_000,
    TimeFormat.NANOS: 1_000_000_000,
}
_ISO = {TimeFormat.AUTO, TimeFormat.ISO}


@dataclass(frozen=True)
class EventTimes:
    """Reads a column of times. `format`: what texts and numbers mean."""

    timing: StepTiming
    format: TimeFormat = TimeFormat.AUTO

    def read(
        self, values: Sequence[object], arrivals: Moments | None
    ) -> tuple[Moments, dict[int, Reason]]:
        """The moments of these times, rounded down, and by position why some have none.

        None means the arrival time. Usually all times of a batch have the same form; the rest
        is read one by one.
        """
        # Only steps whose end can be written as RFC 3339.
        first, end = self.timing.epoch_ms, self.timing.start(self.timing.step_at(LATEST_MOMENT))
        times, readable = self._read_together(values, arrivals)
        faults: dict[int, Reason] = {}
        for index in np.flatnonzero(~(readable & (times >= first) & (times < end))).tolist():
            time = self._moment(values[index], None if arrivals is None else int(arrivals[index]))
            if isinstance(time, Reason):
                faults[index] = time
            elif first <= time < end:
                times[index] = time
            else:
                faults[index] = Reason.TIME_OUT_OF_RANGE
        return times, faults

    def _read_together(
        self, values: Sequence[object], arrivals: Moments | None
    ) -> tuple[Moments, NDArray[np.bool_]]:
        """The moments if all times have the same form, and which of them could be read."""
        kinds = set(map(type, values))
        per_second = _PER_SECOND.get(self.format)
        if kinds == {str} and self.format in _ISO:
            return parse_usual(values)  # type: ignore[arg-type]
        if kinds == {NoneType} and arrivals is not None:
            return arrivals.copy(), np.ones(len(values), dtype=np.bool_)
        if kinds == {int} and per_second is not None:
            with suppress(OverflowError):
                return _from_whole(np.array(values, dtype=np.int64), per_second)
        if kinds == {float} and per_second is not None and self.format is not TimeFormat.AUTO:
            return _from_fractions(np.array(values, dtype=np.float64), per_second)
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)

    def _moment(self, value: object, arrival: int | None) -> int | Reason:
        if value is None:
            return Reason.MISSING_TIME if arrival is None else arrival
        if isinstance(value, str):
            if len(value) > _LONGEST_TIME:
                return Reason.BAD_TIME
            return _parse(value) if self.format in _ISO else self._number(_number(value))
        return self._number(value)

    def _number(self, value: object) -> int | Reason:
        """A time that is a number."""
        per_second = _PER_SECOND.get(self.format)
        if per_second is None or isinstance(value, bool):
            return Reason.BAD_TIME
        if isinstance(value, int):
            return value * 1000 // per_second
        if isinstance(value, float) and self.format is not TimeFormat.AUTO:
            microseconds = value * (1_000_000 / per_second)
            if abs(microseconds) <= _MOST_MICROSECONDS:
                return round(microseconds) // 1000
            return Reason.TIME_OUT_OF_RANGE
        return Reason.BAD_TIME


def _from_whole(numbers: Moments, per_second: int) -> tuple[Moments, NDArray[np.bool_]]:
    """The moments of whole numbers, and which fit into 64 bits."""
    fits = np.ones(len(numbers), dtype=np.bool_)
    if per_second < 1000:
        fits = np.abs(numbers) <= LATEST_MOMENT
        numbers = np.where(fits, numbers, 0) * (1000 // per_second)
    elif per_second > 1000:
        numbers = numbers // (per_second // 1000)
    return numbers, fits


def _from_fractions(
    numbers: NDArray[np.float64], per_second: int
) -> tuple[Moments, NDArray[np.bool_]]:
    """By way of microseconds: a float has no exact milliseconds, and 1.001 s would be rounded down
    to 1,000 ms."""
    microseconds = numbers * (1_000_000 / per_second)
    fits = np.abs(microseconds) <= _MOST_MICROSECONDS
    return np.rint(np.where(fits, microseconds, 0)).astype(np.int64) // 1000, fits


def _number(text: str) -> int | float | None:
    """Programs that cannot write 64-bit numbers write them as text: OTLP in JSON does."""
    whole, dot, fraction = text.removeprefix("-").partition(".")
    if not (text.isascii() and whole.isdigit() and (fraction.isdigit() or not dot)):
        return None
    return float(text) if dot else int(text)


@lru_cache(maxsize=1 << 14)
def _parse(text: str) -> int | Reason:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return Reason.BAD_TIME
