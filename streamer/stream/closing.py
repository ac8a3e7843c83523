"""When a step may close: when no partition can contain another event for it.

A partition is past a moment once a record that arrived at or after it was read, or once the
partition was drained: its end offset was requested after that moment and reading reached it.
So an idle partition never stalls the stream, and a backlog is never cut off.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamer.stream.timing import StepTiming


class Frontier:
    """How far each partition has been read, in arrival time."""

    def __init__(self, timing: StepTiming, skew_ms: int) -> None:
        """`skew_ms`: how far the brokers' clocks may be behind ours."""
        self._timing = timing
        self._skew_ms = skew_ms
        self._passed: dict[str, int | None] = {}

    def watch(self, partitions: Iterable[str]) -> None:
        """Add partitions: no step closes before all of them allow it."""
        for partition in partitions:
            self._passed.setdefault(partition, None)

    def read(self, partition: str, arrival: int) -> None:
        """A record with this arrival time was read."""
        self._pass(partition, arrival)

    def drained(self, partition: str, asked_at: int) -> None:
        """The partition was read up to the end offset that was requested at this moment."""
        self._pass(partition, asked_at - self._skew_ms)

    def closable(self) -> int | None:
        """The last step that may close; None if not every partition has been read yet."""
        passed = list(self._passed.values())
        known = [moment for moment in passed if moment is not None]
        if not known or len(known) < len(passed):
            return None
        return self._timing.last_over(min(known))

    def ahead(self) -> list[str]:
        """Partitions that have been read further than the slowest one."""
        passed = {name: moment or 0 for name, moment in self._passed.items()}
        behind = min(passed.values(), default=0)
        return [name for name, moment in passed.items() if moment > behind]

    def due(self, now: int) -> int:
        """The last step that is over by our clock, if no partition is behind."""
        return self._timing.last_over(now - self._skew_ms)

    def behind(self, closed: int, now: int) -> int:
        """How long ago the last closed step ended, in milliseconds."""
        return now - self._timing.end(closed)

    def until_next(self, now: int) -> int:
        """Milliseconds until the next step is over by our clock; at least one."""
        timing = self._timing
        over = timing.end(self.due(now) + 1) + timing.lateness_ms + self._skew_ms
        return max(1, over - now)

    def _pass(self, partition: str, moment: int) -> None:
        passed = self._passed.get(partition)
        self._passed[partition] = moment if passed is None else max(passed, moment)
