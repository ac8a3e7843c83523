"""The loop of a running stream: read, and close steps that no partition can add to.

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
from streamer.stream.decoding import Rejection
from streamer.stream.intake import Batch
from streamer.stream.sources import Source
from streamer.stream.watching import Watcher

_log = logging.getLogger(__name__)
_POLL_MS = 100
_AWAY = Backoff(first=0.2, longest=10.0)
"""Between attempts to reach a source that is away."""


class Rejects(Protocol):
    """Reports records that are not events, before the ledger moves past them."""

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
        self._goal: int | None = None
        self._reading = False
        """Whether the last poll returned something."""

    async def run(self) -> None:
        self._status.tell("")
        self._status.running = True
        waits, broken = _AWAY.waits(), False
        next_moment = self._next_moment()
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
                # It is retried at every moment on the schedule, where the backoff starts over:
                # how many attempts failed before depends on what there was to read.
                now = self._progress.clock()
                if now >= next_moment:
                    waits, next_moment = _AWAY.waits(), self._next_moment()
                await self._rest(min(next(waits), (next_moment - now) / 1000))

    async def turn(self) -> None:
        """Close what is due, then read once.

        In this order, and without a wait after something was read while a step is due: a
        step that nothing holds up closes at once, whether or not there was anything to read.
        Nor is there a wait past the next moment on the schedule, counted from before we
        looked: a record that ends the wait would show in when results leave.
        """
        progress = self._progress
        next_moment = self._next_moment()
        self._current_goal()  # before the source is asked: it may be away
        await progress.look_for_partitions()
        await progress.look_for_drained(reading=self._reading)
        await self._close()
        self._hold_back()
        now = progress.clock()
        due = progress.schedule.last_due(now)
        behind = self._reading and not self._engine.has_closed(due)
        timeout = 0 if behind else max(0, min(_POLL_MS, next_moment - now))
        batches = await self._source.poll(timeout, self._skipped)
        for batch in batches:
            self._receive(batch)
            await asyncio.sleep(0)  # let other tasks run, and the source read ahead
        self._reading = bool(batches)
        if self._rejects is not None and self._rejects.full:
            await self._rejects.write()

    def _receive(self, batch: Batch) -> None:
        now = self._progress.clock()  # one moment: what counts and how far we are must agree
        received = self._pipeline.receive(batch, now)
        self._progress.read(batch, now)
        if self._rejects is not None:
            self._rejects.add(batch, received.rejections)

    async def _close(self) -> None:
        """Close the steps that are due, and let results leave when their moment has come."""
        engine = self._engine
        while await self._pipeline.release(self._released()):
            goal = self._current_goal()
            if engine.has_closed(goal):
                # After a restart too, however much there is to read first.
                self._pipeline.hold_quiet_steps()
                await self._pipeline.release(self._released())
                return
            through = self._progress.closable()
            if through is None or engine.has_closed(min(through, goal)):
                return
            if self._rejects is not None:
                # The offsets in the ledger are about to move past what was rejected.
                await self._rejects.write()
            await self._pipeline.close_next(min(through, goal), goal)

    def _next_moment(self) -> int:
        """When a step is due or its results leave, whichever is next."""
        now = self._progress.clock()
        return now + self._progress.schedule.until_next(now)

    def _current_goal(self) -> int:
        """The step up to which quiet steps are recorded together.

        It is the last one that was due when catching up began, whether or not the source
        answered then. Where reading happens to be, which shows who sent something, has no
        part in it.
        """
        if self._goal is None or self._engine.has_closed(self._goal):
            self._goal = self._progress.schedule.last_due(self._progress.clock())
        return self._goal

    def _released(self) -> int:
        """The last step whose results may leave now."""
        schedule = self._progress.schedule
        return schedule.last_due(self._progress.clock() - schedule.release_ms)

    def _hold_back(self) -> None:
        """With full buffers, partitions that are ahead wait for those that hold things up."""
        most = self._most_buffered
        full = most is not None and self._engine.intake.buffered >= most
        self._skipped = self._progress.ahead() if full else []

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
