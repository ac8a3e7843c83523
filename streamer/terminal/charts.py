"""Bars and sparklines as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from streamer.monitors.states import State
from streamer.web.answers import ClosedStep

PRESENT, ABSENT = "━", "·"
_EIGHTHS = "▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_BELOW, _ABOVE, _QUIET = "blue", "bright_blue", "dim"


def bar(value: int, mark: int, most: int, width: int) -> Text:
    """A bar in proportion to the value; `most` fills the width. Darker up to `mark`."""
    eighths = max(1, round(8 * width * min(1, value / max(1, most))))
    full, part = divmod(eighths, 8)
    text = Text("█" * full + (_EIGHTHS[part - 1] if part else ""), _ABOVE)
    text.stylize(_BELOW, 0, round(width * min(1, mark / max(1, most))))
    text.pad_right(width - len(text))
    return text


@dataclass(frozen=True, slots=True)
class Presence:
    """An item is there. `value`: the estimate, if there is one in this time."""

    value: int | None = None

    def joined(self, other: Presence | None) -> Presence:
        """The largest value of two times, if there is one."""
        values = [each.value for each in (self, other) if each and each.value is not None]
        return Presence(max(values, default=None))


Row = list[Presence | None]
"""When an item was there, a column for each time; None: it was not shown."""


def sparkline(row: Row, most: int) -> Text:
    """One character per column: a value has a height from 0 to `most`."""
    line = Text()
    for each in row:
        if each is None:
            line.append(ABSENT, _QUIET)
        elif each.value is None:
            line.append(PRESENT, _BELOW)
        else:
            height = int(len(_HEIGHTS) * each.value / (most + 1))
            line.append(_HEIGHTS[max(0, min(height, len(_HEIGHTS) - 1))], _ABOVE)
    return line


@dataclass(frozen=True, slots=True)
class History:
    """When each item was there: one row per item, one column per `refresh` steps."""

    start: str
    """Start of the oldest step shown, RFC 3339."""
    rows: dict[str, Row]
    """The last column is now. Those that were there most recently first."""
    most: int

    @classmethod
    def of(cls, steps: Iterable[ClosedStep], columns: int, refresh: int) -> History | None:
        """The latest steps that fit into `columns`. A reported item may not be checked again for
        `refresh` steps, so one column covers that many and shows the largest estimate."""
        known = list(steps)
        if not known:
            return None
        last = known[-1].step
        shown = [step for step in known if last - step.step < columns * refresh]
        first = shown[0].step if shown[0].first is None else shown[0].first
        used = min(columns, (last - first) // refresh + 1)
        rows: dict[str, Row] = {}
        for step in shown:
            place = -1 - (last - step.step) // refresh
            for result in step.results:
                if result.state is State.GONE:
                    continue
                # Removed and inserted again, so that the order is by the last record.
                row = rows.pop(result.item, None) or [None] * used
                row[place] = Presence(result.estimate).joined(row[place])
                rows[result.item] = row
        values = (each.value for row in rows.values() for each in row if each is not None)
        most = max((value for value in values if value is not None), default=0)
        return cls(shown[0].start, dict(reversed(rows.items())), most)

    def first(self, items: Iterable[str], number: int) -> Iterator[tuple[str, Row]]:
        """Up to `number` rows: first those of the given items, then others."""
        wanted = [item for item in items if item in self.rows]
        order = dict.fromkeys([*wanted, *self.rows])
        for item in list(order)[:number]:
            yield item, self.rows[item]
