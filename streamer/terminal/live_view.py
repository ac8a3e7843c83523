"""The live view of a terminal: what is there now and since when, and what has just gone, at any
size.

The item comes last in every line: however a terminal renders it, nothing else moves. The
layout depends only on the size, so nothing jumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from streamer.monitors.states import State
from streamer.stream.current import Trend
from streamer.terminal.charts import ABSENT, PRESENT, History, bar, sparkline
from streamer.terminal.scene import GroundTruth, Scene, visible
from streamer.terminal.standing import Standing, Value, brief, just_gone, standings
from streamer.web.ground_truth import LABEL, TrueItem

_HEAD, _SOFT = "bold", "dim"
_TROUBLE, _LABEL = "bold yellow", "bold magenta"
_STATES = {State.NEW: ("●", "bold"), State.BACK: ("↺", "bold"), State.GONE: ("✕", "dim")}
_ARROWS = {
    Trend.NEW: ("→", "default"),
    Trend.GROWING: ("↑", "bold red"),
    Trend.STEADY: ("→", "default"),
    Trend.SHRINKING: ("↓", "cyan"),
}
_ESTIMATE = 13
"""Columns used by an estimate with its sign and the spaces around them."""
_TIME = 9
"""Columns used by how long an item is there, and by the age of its value, with a space."""
_INTERVAL = 18
"""Columns used by the interval of an estimate and a space."""
_WIDE = 72
"""A narrower terminal has no columns for intervals and for ages of values."""
_MOST_GONE = 3
"""Lines for items that have just gone; fewer in a small terminal."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Number of lines of each list, and the widths of the intervals and ages (0: not shown) and
    of the bars."""

    now: int
    past: int
    truth: int
    interval: int
    age: int
    bar: int

    @classmethod
    def of(cls, width: int, height: int, has_truth: bool) -> Layout:
        """In a small terminal, the most important parts stay."""
        intervals, ages = (_INTERVAL, _TIME) if width >= _WIDE else (0, 0)
        bars = max(4, min(40, (width - _ESTIMATE - _TIME - intervals - ages) // 4))
        # Two lines of header and two of guarantee, a heading and a note for the current list,
        # an empty line before each part.
        free = height - 8
        truth = min(4, 2 + max(0, free - 16) // 4) if has_truth and free >= 9 else 0
        free -= truth + 4 if truth else 0
        past = (free - 2) // 2 if free >= 6 else 0
        free -= past + 2 if past else 0
        return cls(max(1, free), past, truth, intervals, ages, bars)

    @property
    def left(self) -> int:
        """The column where items start."""
        return _ESTIMATE + self.interval + self.age + self.bar + _TIME

    def gone(self, gone: int) -> int:
        """How many of the gone items have a line of the current list."""
        return min(gone, _MOST_GONE, self.now // 3)


class LiveView:
    """Draws a scene with rich, at the current size of the terminal."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(options.max_width, options.height or console.height)

    def lines(self, width: int, height: int) -> list[Text]:
        """The complete view."""
        layout = Layout.of(width, height, self._scene.truth is not None)
        lines = [*self._head(width), Text(), *self._now(width, layout)]
        if layout.past:
            lines += [Text(), *self._past(layout)]
        if layout.truth and self._scene.truth is not None:
            lines += [Text(), *_truth_lines(self._scene.truth(), layout)]
        lines += [Text(), *self._guarantee()]
        for line in lines:
            line.no_wrap = True
            line.truncate(width, overflow="ellipsis")
        return lines[:height]

    def _head(self, width: int) -> Iterator[Text]:
        scene = self._scene
        end = scene.current.end if scene.current else None
        right = Text(f"{end[11:19]} UTC" if end else "")
        if scene.trouble:
            right = Text(f"waiting: {scene.trouble}", _TROUBLE)
        yield _spread(Text.assemble((scene.title, _HEAD), "  ", scene.subject), right, width)
        yield Text(scene.place, _SOFT)

    def _now(self, width: int, layout: Layout) -> Iterator[Text]:
        threshold, current = self._scene.threshold, self._scene.current
        about = "" if threshold is None else f"about {threshold:,} users"
        title = Text("Trending now", _HEAD)
        title.append(", users (95% interval, age)" if layout.interval else ", users", _SOFT)
        threshold_note = Text(f"threshold: {about}" if about else "", _SOFT)
        fits = len(title) + len(threshold_note) < width
        yield _spread(title, threshold_note, width) if fits else title
        there = standings(current, self._scene.steps) if current else []
        gone = just_gone(self._scene.steps, self._scene.step_seconds)
        gone = gone[: layout.gone(len(gone))]
        lines = layout.now - len(gone)
        shown = there if len(there) <= lines else there[: lines - 1]
        # Scaled to the whole time that is shown, so that bars grow and shrink.
        history = self._history(layout)
        values = [each.value.estimate for each in there if each.value]
        most = max([*values, history.most if history else 1])
        rows = [self._line(each, most, layout) for each in shown]
        if len(shown) < len(there):
            rows.append(Text(f"{'and':>8} {len(there) - len(shown):,} more", _SOFT))
        elif not there:
            waiting = current is None or current.step is None
            words = "waiting for the first step to close" if waiting else "no items"
            rows.append(Text(f"  {words}", _SOFT))
        rows += [self._line(each, most, layout) for each in gone]
        yield from _filled(rows, layout.now)
        fewer = f"fewer than {about}" if about else "fewer users"
        items = "New items" if self._scene.has_states else "Items"
        yield Text(f"  {items} with {fewer} are not shown and cannot be known.", _SOFT)

    def _past(self, layout: Layout) -> Iterator[Text]:
        """When each item was there: current items first, then the most recent ones."""
        scene, history = self._scene, self._history(layout)
        since = f" since {history.start[11:19]} UTC" if history else ""
        title = Text(f"Shown{since}", _HEAD)
        yield title.append(f"  ▅ value  {PRESENT} still there  {ABSENT} not shown", _SOFT)
        now = [hitter.item for hitter in scene.current.hitters] if scene.current else []
        rows = []
        for item, row in history.first(now, layout.past) if history else ():
            line = Text(" " * (layout.left - 2 - len(row)))
            line.append_text(sparkline(row, history.most if history else 0))
            rows.append(line.append("  ").append(visible(item), "" if item in now else _SOFT))
        yield from _filled(rows, layout.past)

    def _line(self, each: Standing, most: int, layout: Layout) -> Text:
        sign, style = _STATES.get(each.state) or _ARROWS[each.trend]
        line = Text()
        if each.value is None:
            line.append("–".rjust(8).ljust(_ESTIMATE - 4 + layout.interval + layout.age))
        else:
            line.append(f"{each.value.estimate:>8,} ", _HEAD)
            if layout.interval:
                line.append(each.value.interval.ljust(layout.interval), _SOFT)
                line.append(self._age(each.value).ljust(layout.age), _SOFT)
        line.append(f"{sign} ", style)
        if each.value is None:
            line.append(" " * layout.bar)
        else:
            line.append_text(bar(each.value.estimate, each.threshold, most, layout.bar))
        word = "for" if each.state is State.ONGOING else each.state.value
        line.append(f"  {word} {self._long(each.steps)}".ljust(_TIME + 2), _SOFT)
        line.append(visible(each.item))
        if each.state is State.GONE:
            line.stylize(_SOFT)
        return line

    def _age(self, value: Value) -> str:
        """Of a value that was not measured in the last step."""
        through = self._scene.current.step if self._scene.current else None
        if through is None or value.step >= through:
            return ""
        return f"{self._long(through - value.step)} ago"

    def _long(self, steps: int) -> str:
        return brief(steps * self._scene.step_seconds)

    def _history(self, layout: Layout) -> History | None:
        return History.of(self._scene.steps, layout.left - 4, self._scene.refresh)

    def _guarantee(self) -> Iterator[Text]:
        first, second = self._scene.terms or ("Known with the first report.", "")
        yield Text.assemble(("Guarantee", _HEAD), f"  {first}")
        yield Text(f"  {second}")


def _truth_lines(truth: GroundTruth, layout: Layout) -> Iterator[Text]:
    answer = truth.answer
    yield Text(LABEL, _LABEL)
    rows = [
        Text(
            _truth_line(each, each.item in truth.outbreaks, layout.left),
            _SOFT if each.estimate is None else "",
        )
        for each in sorted(answer.items, key=lambda each: each.item not in truth.outbreaks)
    ]
    yield from _filled(rows[: layout.truth], layout.truth)
    yield Text(
        f"  {answer.withheld:,} items with fewer users are correctly not shown; "
        f"{answer.singles:,} with one",
        _SOFT,
    )
    slow = f"; {truth.left_out:,} steps skipped: too slow" if truth.left_out else ""
    yield Text(f"  {truth.exhausted:.1%} of users have no reports left{slow}", _SOFT)


def _truth_line(each: TrueItem, outbreak: bool, left: int) -> str:
    kind = "outbreak" if outbreak else "usual"
    shown = "not shown" if each.estimate is None else f"shown as {each.estimate:>7,}"
    return f"  {kind:<8} {each.now:>7,} users, {shown}".ljust(left - 2) + f"  {visible(each.item)}"


def _spread(left: Text, right: Text, width: int) -> Text:
    """One text on each side; the left one is truncated if they do not fit."""
    left.truncate(max(0, width - right.cell_len - 1), overflow="ellipsis", pad=True)
    return Text.assemble(left, " ", right)


def _filled(rows: list[Text], number: int) -> list[Text]:
    return [*rows, *(Text() for _ in range(number - len(rows)))]
