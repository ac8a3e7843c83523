"""The loop of a running stream: read, and close what no partition can add to.

It knows neither Kafka nor a real clock: a source, a clock and a way to wait are given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from streamer.backoff import Backoff
from streamer.errors import UnreachableError
from streamer.operations.health import Status
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.stream.events import Rejection
from streamer.stream.intake import Batch
from streamer.stream.sources import Source
from streamer.stream.watching import Watcher

_log = logging.getLogger(__name__)
_POLL_MS = 100
_AWAY = Backoff(first=0.2, longest=10.0)
"""Between attempts to reach a source that is away."""


class Rejects(Protocol):
    """Where records that are no events are reported, before the ledger moves past them."""

    @property
    def full(self) -> bool: ...

    def add(self, batch: Batch, rejections: Sequence[Rejection]) -> None: ...

    async def write(self) -> None: ...


class Loop:
    """Runs until it is stopped or its source ends, however often the source goes away."""

    def __init__(
        self,
        source: Source,
        progress: Progress,
        pipeline: Pipeline,
        status: Status,
        watcher: Watcher,
        stopping: asyncio.Event,
        most_buffered: int | None = None,
        rejects: Rejects | None = None,
        rest: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        """`most_buffered`: from this many events on, partitions that are ahead of others wait
        for them; None: there is only one partition. `rest`: waits for some seconds, or
        until `stopping` is set."""
        self._source = source
        self._progress = progress
        self._pipeline = pipeline
        self._engine = pipeline.engine
        self._status = status
        self._watcher = watcher
        self._stopping = stopping
        self._most_buffered = most_buffered
        self._rejects = rejects
        self._rest = rest or self._wait
        self._skipped: list[str] = []

    async def run(self) -> None:
        self._status.tell("")
        self._status.running = True
        waits, broken = _AWAY.waits(), False
        while not self._stopping.is_set() and not self._source.ended:
            try:
                await self.turn()
                self._status.beat()
                if broken:
                    self._status.tell("")
                    waits, broken = _AWAY.waits(), False
            except UnreachableError as error:
                self._watcher.failed(error.__cause__ or error, writing=False)
                self._status.tell(str(error))
                broken = True
                await self._rest(next(waits))

    async def turn(self) -> None:
        """Read once, and close what can be closed."""
        await self._progress.look_for_partitions()
        timeout = min(_POLL_MS, self._progress.until_next())
        batches = await self._source.poll(timeout, self._skipped)
        for batch in batches:
            self._receive(batch)
            await asyncio.sleep(0)  # others want to use the loop, and the source to read ahead
        if self._rejects is not None and self._rejects.full:
            await self._rejects.write()
        await self._progress.look_for_drained(reading=bool(batches))
        await self._close()
        self._hold_back()

    def _receive(self, batch: Batch) -> None:
        now = self._progress.clock()  # one moment: what counts and how far we are must agree
        received = self._pipeline.receive(batch, now)
        self._progress.read(batch, now)
        if self._rejects is not None:
            self._rejects.add(batch, received.rejections)

    async def _close(self) -> None:
        through = await self._progress.closable()
        if through is None:
            return
        engine = self._engine
        if engine.closed is None:
            self._pipeline.start_at(min([through, *engine.intake.open_steps[:1]]))
        if self._rejects is not None and not engine.has_closed(through):
            # The offsets in the ledger are about to move past what was rejected.
            await self._rejects.write()
        await self._pipeline.close_through(through)
        # After an outage, quiet steps are recorded when we are up to date again.
        if self._progress.is_up_to_date(through):
            await self._pipeline.record_quiet_steps()

    def _hold_back(self) -> None:
        """With full buffers, partitions that are ahead wait for those that hold things up."""
        most = self._most_buffered
        full = most is not None and self._engine.intake.buffered >= most
        self._skipped = self._progress.ahead() if full else []

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
