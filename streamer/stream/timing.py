"""Time steps: which step contains a moment, and when a step is over.

All moments are whole milliseconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

from streamer.errors import SettingError

LATEST_MOMENT = 253_402_300_799_999
"""The last millisecond of the year 9999: nothing later can be written as RFC 3339."""

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?"
    r"(?:([Zz])|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_DAYS_BEFORE_1970 = date(1970, 1, 1).toordinal()


_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Steps of `length_ms` since `epoch_ms`. Events may arrive `lateness_ms` after the end."""

    length_ms: int
    epoch_ms: int = 0
    lateness_ms: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.length_ms <= LATEST_MOMENT:
            raise SettingError("step_seconds", self.length_ms / 1000, "it must be at least 0.001")
        if not 0 <= self.epoch_ms < LATEST_MOMENT:
            raise SettingError("epoch", self.epoch_ms, "it must be between 1970 and 9999")
        if not 0 <= self.lateness_ms <= LATEST_MOMENT:
            raise SettingError("lateness_seconds", self.lateness_ms / 1000, "it must be 0 or more")

    def step_at(self, moment: int) -> int:
        """The step that contains a moment; negative before the epoch."""
        return (moment - self.epoch_ms) // self.length_ms

    def start(self, step: int) -> int:
        return self.epoch_ms + step * self.length_ms

    def end(self, step: int) -> int:
        """The first moment after the step."""
        return self.start(step + 1)

    def last_over(self, moment: int) -> int:
        """The last step that records arriving at this moment or later cannot count for."""
        return self.step_at(moment - self.lateness_ms) - 1


def parse_rfc3339(text: str) -> int:
    """The moment of an RFC 3339 text, rounded down; ValueError if the text is invalid.

    An offset is required: without it the moment is ambiguous.
    """
    found = _RFC3339.fullmatch(text)
    if not found:
        raise ValueError("not an RFC 3339 time with Z or an offset")
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    days = date(year, month, day).toordinal() - _DAYS_BEFORE_1970
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if not found[8]:
        offset = (int(found[10]) * 60 + int(found[11])) * 60
        seconds -= offset if found[9] == "+" else -offset
    return seconds * 1000 + int(((found[7] or "") + "000")[:3])


def format_rfc3339(moment: int) -> str:
    """With milliseconds only if they are not zero."""
    text = datetime.fromtimestamp(moment // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{moment % 1000:03d}Z" if moment % 1000 else f"{text}Z"


def duration(milliseconds: int) -> str:
    """In the largest unit that divides it evenly: 90 minutes, 1 day."""
    for size, unit in _UNITS:
        if milliseconds % size == 0:
            number = milliseconds // size
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return f"{milliseconds / 1000:,} seconds"
