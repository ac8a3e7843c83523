"""How far the partitions are read, which is what lets steps close.

A partition tells by the arrival of its records, or by being drained: its end was asked for
and reached. So the ends are asked for when a step is over by the clock and something is
still missing. Partitions may be added at any time, and a consumer may fall silent.
"""

from __future__ import annotations

import logging
import time

from streamer.config import Settings
from streamer.kafka.source import KafkaSource
from streamer.service.clock import Clock
from streamer.service.startup import timing_of
from streamer.stream.closing import Frontier
from streamer.stream.intake import Batch

_log = logging.getLogger(__name__)
_CATCHING_UP_MS = 10_000
_WATCHDOG_SECONDS = 30.0
_PARTITIONS_SECONDS = 10.0
_ASK_SECONDS = 0.1


class Progress:
    """Follows one source."""

    def __init__(self, settings: Settings, source: KafkaSource, clock: Clock) -> None:
        self._source = source
        self.clock = clock
        self._frontier = Frontier(
            timing_of(settings.stream), round(settings.kafka.skew_seconds * 1000)
        )
        self._frontier.watch(source.partitions)
        self._ahead_ms = round(settings.stream.ahead_seconds * 1000)
        self.skew_ms = 0
        """How far the newest arrival is ahead of our clock."""
        self._looked = self._asked = time.monotonic()
        self._stuck_since: float | None = None
        self._listed: int | None = None
        """The last step that was over by the clock when partitions were asked for."""

    def read(self, batch: Batch, now: int) -> None:
        self._stuck_since = None
        if batch.arrivals is None:
            return
        self.skew_ms = max(0, int(batch.arrivals.max(initial=0)) - now)
        # Nothing has arrived in the future: a producer's clock that runs ahead must
        # not close steps for others, and one that is far ahead tells nothing at all.
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
        """The last step that may close: partitions were asked for when it was over.

        One that is added later holds nothing for it.
        """
        through = self._frontier.closable()
        if through is not None and (self._listed is None or self._listed < through):
            await self._find_partitions()
            through = self._frontier.closable()
        return through

    async def look_for_drained(self, reading: bool) -> None:
        """Ask for the ends of the partitions once a step is over by the clock.

        While there is a backlog to be read, that is always so: then only now and then.
        """
        now = self.clock()
        closable = self._frontier.closable()
        if closable is not None and closable >= self._frontier.due(now):
            return
        if reading and time.monotonic() - self._asked < _ASK_SECONDS:
            return
        self._asked = time.monotonic()
        ends = await self._source.ends()
        positions = await self._source.positions()
        drained = {partition for partition, end in ends.items() if positions[partition] >= end}
        for partition in drained:
            self._frontier.drained(partition, now)
        await self._watch_for_silence(behind=drained != ends.keys())

    async def look_for_partitions(self) -> None:
        """Now and then, also while no step closes."""
        if time.monotonic() - self._looked > _PARTITIONS_SECONDS:
            await self._find_partitions()

    async def _watch_for_silence(self, behind: bool) -> None:
        """Consumers have been seen to stop silently: nothing comes although there is more."""
        now = time.monotonic()
        if not behind:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since > _WATCHDOG_SECONDS:
            _log.warning(
                "nothing was read for %g s although there is more: reconnecting", _WATCHDOG_SECONDS
            )
            self._stuck_since = None
            await self._source.restart()

    async def _find_partitions(self) -> None:
        self._looked = time.monotonic()
        listed = self._frontier.due(self.clock())
        new = await self._source.find_new_partitions()
        if new:
            _log.info("new partitions: %s", ", ".join(new))
        self._frontier.watch(self._source.partitions)
        self._listed = listed
