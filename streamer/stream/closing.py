"""When a step may close: when it is due by the clock, and no partition can hold anything more
for it.

A partition is past a moment once a record that arrived later by the skew was read, or once the
partition was drained: its end was requested later by the skew and reading reached it. The
skew covers clocks: brokers' clocks may be behind ours, and when another broker takes over a
partition, the arrivals in it may step back by the difference between the two clocks. So an
idle partition never stalls the stream, and a backlog is never cut off. Reading alone closes
nothing: when a step closes would show that somebody sent something.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamer.stream.schedule import Schedule


class Frontier:
    """How far each partition has been read, in arrival time."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._passed: dict[str, int | None] = {}

    def watch(self, partitions: Iterable[str]) -> None:
        """Add partitions: no step closes before all of them allow it."""
        for partition in partitions:
            self._passed.setdefault(partition, None)

    def read(self, partition: str, arrival: int) -> None:
        """A record with this arrival time was read."""
        self._pass(partition, arrival - self._schedule.skew_ms)

    def drained(self, partition: str, asked_at: int) -> None:
        """The partition was read up to the end offset that was requested at this moment."""
        self._pass(partition, asked_at - self._schedule.skew_ms)

    def closable(self, now: int) -> int | None:
        """The last step that may close; None if not every partition has been read yet."""
        passed = list(self._passed.values())
        known = [moment for moment in passed if moment is not None]
        if not known or len(known) < len(passed):
            return None
        return min(self._schedule.timing.last_over(min(known)), self._schedule.last_due(now))

    def ahead(self) -> list[str]:
        """Partitions that have been read further than the slowest one."""
        passed = {name: moment or 0 for name, moment in self._passed.items()}
        behind = min(passed.values(), default=0)
        return [name for name, moment in passed.items() if moment > behind]

    def _pass(self, partition: str, moment: int) -> None:
        passed = self._passed.get(partition)
        self._passed[partition] = moment if passed is None else max(passed, moment)
