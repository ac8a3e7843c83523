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
from streamer.stream.sources import Source
from streamer.stream.timing import StepTiming

_log = logging.getLogger(__name__)
_CATCHING_UP_MS = 10_000
_LIST_EVERY_MS = 10_000
_ASK_EVERY_MS = 100


class Progress:
    """Follows one source, from its start on."""

    def __init__(
        self,
        source: Source,
        timing: StepTiming,
        clock: Clock,
        skew_ms: int = 0,
        ahead_ms: int = 0,
    ) -> None:
        """`skew_ms`: how far the clock that arrivals are told by may be behind ours, `ahead_ms`:
        how far ahead of ours an arrival is believed."""
        self._source = source
        self.clock = clock
        self._frontier = Frontier(timing, skew_ms)
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

    def until_next(self) -> int:
        """Milliseconds until a step can close, if nothing holds it up."""
        return self._frontier.until_next(self.clock())

    def behind(self, closed: int) -> int:
        """How long ago the last closed step ended, in milliseconds."""
        return self._frontier.behind(closed, self.clock())

    def ahead(self) -> list[str]:
        """Partitions that are read further than the one that holds everything up."""
        return self._frontier.ahead()

    def is_up_to_date(self, closable: int) -> bool:
        return closable >= self._frontier.due(self.clock() - _CATCHING_UP_MS)

    async def closable(self) -> int | None:
        """The last step that may close: partitions were listed when it was over.

        One that is added later holds nothing for it.
        """
        through = self._frontier.closable()
        if through is not None and (self._listed is None or self._listed < through):
            await self._list_partitions()
            through = self._frontier.closable()
        return through

    async def look_for_drained(self, reading: bool) -> None:
        """Ask which partitions are drained once a step is over by the clock.

        While there is a backlog to be read, that is always so: then only now and then.
        """
        now = self.clock()
        closable = self._frontier.closable()
        if closable is not None and closable >= self._frontier.due(now):
            return
        if reading and now - self._asked_at < _ASK_EVERY_MS:
            return
        self._asked_at = now
        for partition in await self._source.drained():
            self._frontier.drained(partition, now)

    async def look_for_partitions(self) -> None:
        """At first, and now and then, also while no step closes."""
        if self._known is None or self.clock() - self._listed_at > _LIST_EVERY_MS:
            await self._list_partitions()

    async def _list_partitions(self) -> None:
        self._listed_at = self.clock()
        listed = self._frontier.due(self._listed_at)
        there = await self._source.partitions()
        new = [name for name in there if self._known is not None and name not in self._known]
        if new:
            _log.info("new partitions: %s", ", ".join(new))
        self._frontier.watch(there)
        self._known = there
        self._listed = listed
