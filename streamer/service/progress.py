"""How far the partitions are read, which is what lets steps close.

A partition says so by the arrival of its records, or by being drained. So the source is
asked what is drained when a step is over by the clock and something is still missing.
Partitions may be added at any time.
"""

from __future__ import annotations

import logging

from streamer.service.clock import Clock
from streamer.stream.closing import Frontier
from streamer.stream.intake import Batch
from streamer.stream.schedule import Schedule
from streamer.stream.sources import Source

_log = logging.getLogger(__name__)
_LIST_EVERY_MS = 10_000
_ASK_EVERY_MS = 100


class Progress:
    """Follows one source, from its start on."""

    def __init__(
        self,
        source: Source,
        schedule: Schedule,
        clock: Clock,
        ahead_ms: int = 0,
    ) -> None:
        """`ahead_ms`: how far ahead of our clock an arrival is believed."""
        self._source = source
        self.schedule = schedule
        self.clock = clock
        self._frontier = Frontier(schedule)
        self._ahead_ms = ahead_ms
        self.skew_ms = 0
        """How far the newest arrival is ahead of our clock."""
        self._known: list[str] | None = None
        """The partitions that are known; None before they were listed."""
        self._asked_at = self._listed_at = clock()
        self._listed: int | None = None
        """The last step that was over by the clock when partitions were listed."""

    def read(self, batch: Batch, now: int) -> None:
        if batch.arrivals is None:
            return
        self.skew_ms = max(0, int(batch.arrivals.max(initial=0)) - now)
        # Nothing has arrived in the future: a producer's clock that runs ahead must not close
        # steps for others, and one that is far ahead says nothing at all.
        credible = batch.arrivals[batch.arrivals <= now + self._ahead_ms]
        if len(credible):
            self._frontier.read(batch.partition, min(int(credible.max()), now))

    def behind(self, closed: int) -> int:
        """How long ago the last closed step ended, in milliseconds."""
        return self.clock() - self.schedule.timing.end(closed)

    def ahead(self) -> list[str]:
        """Partitions that are read further than the one that holds everything up."""
        return self._frontier.ahead()

    def closable(self) -> int | None:
        """The last step that may close: partitions were listed when it was due.

        One that is added later holds nothing for it.
        """
        through = self._frontier.closable(self.clock())
        if through is None or self._listed is None:
            return None
        return min(through, self._listed)

    async def look_for_drained(self, reading: bool) -> None:
        """Ask which partitions there are, and which are drained, once a step is due.

        While there is a backlog to be read, that is always so: then only now and then.
        """
        now = self.clock()
        due, closable = self.schedule.last_due(now), self.closable()
        if closable is not None and closable >= due:
            return
        if reading and now - self._asked_at < _ASK_EVERY_MS:
            return
        self._asked_at = now
        if self._listed is None or self._listed < due:
            await self._list_partitions()
        for partition in await self._source.drained():
            self._frontier.drained(partition, now)

    async def look_for_partitions(self) -> None:
        """At first, and now and then, also while no step closes."""
        if self._known is None or self.clock() - self._listed_at > _LIST_EVERY_MS:
            await self._list_partitions()

    async def _list_partitions(self) -> None:
        self._listed_at = self.clock()
        listed = self.schedule.last_due(self._listed_at)
        there = await self._source.partitions()
        new = [name for name in there if self._known is not None and name not in self._known]
        if new:
            _log.info("new partitions: %s", ", ".join(new))
        self._frontier.watch(there)
        self._known = there
        self._listed = listed
