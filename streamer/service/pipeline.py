"""The protocol of a step: decide, make durable, publish, record that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamer.errors import MonitorError
from streamer.ledger.contract import Entry, Ledger
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.publication import Audience, Publication, Recorder
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Phase, Watcher

Checkpoint = Callable[[str], None]
"""Called at each point of the protocol, with its name; tests kill the process there."""


class Pipeline:
    """Receives records and closes steps; nothing else does."""

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        timing: StepTiming,
        recorded: int | None,
        watcher: Watcher,
        audience: Audience,
        checkpoint: Checkpoint,
    ) -> None:
        """`recorded`: the last step that is published; None for a new stream."""
        self.engine = engine
        self._ledger = ledger
        self._timing = timing
        self._watcher = watcher
        self._audience = audience
        self._checkpoint = checkpoint
        self._recorder = None if recorded is None else Recorder(timing, recorded)

    def start_at(self, step: int) -> None:
        """The first step of a new stream."""
        self.engine.start_at(step)
        self._recorder = Recorder(self._timing, step - 1)

    def receive(self, batch: Batch, now: int | None) -> Received:
        """Receive records. `now`: this machine's clock; None for a file, which has no arrivals."""
        received = self.engine.intake.receive(batch, self.engine.closed, now)
        self._watcher.received(batch, received)
        return received

    async def close_through(self, step: int) -> None:
        """Close all steps up to this one.

        1. Decide: counts of active users, noise, threshold, charges.
        2. Append to the ledger, atomically and durably.
        3. Publish the hitters, if there are any, with the records that are due.
        4. Take a snapshot of the counters, if one is due.

        The process may die at any point: before 2 is complete the step was never decided;
        after it, the next start publishes the same decision.
        """
        while not self.engine.has_closed(step):
            with self._timed(Phase.DECIDE):
                decided = await asyncio.to_thread(self.engine.close_next, step)
            self._checkpoint("decided")
            with self._timed(Phase.APPEND):
                await self._ledger.append(Entry(decided, self.engine.intake.offsets()))
            self._checkpoint("appended")
            if decided.hitters:
                await self.publish(self._started().with_results(decided))
            if self._ledger.snapshot_due:
                with self._timed(Phase.SNAPSHOT):
                    await self._ledger.snapshot(*self.engine.counters.snapshot())
                self._checkpoint("snapshot taken")
            self._watcher.closed(decided, self.engine)

    async def record_quiet_steps(self) -> None:
        """Publish records of closed steps without hitters that have no record yet.

        Called when the stream is up to date, or over: see `publication`.
        """
        if self.engine.closed is None or self.engine.period is None:
            return
        recorder = self._started()
        publication = recorder.without_results(self.engine.closed, self.engine.period)
        if publication is not None:
            await self.publish(publication)

    async def publish(self, publication: Publication) -> None:
        with self._timed(Phase.PUBLISH):
            await self._ledger.publish(publication)
        self._checkpoint("noted")
        self._started().recorded = publication.through
        self._audience.published(publication)

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._watcher.timed(phase, time.perf_counter() - began)

    def _started(self) -> Recorder:
        if self._recorder is None:
            raise MonitorError("the stream has no first step yet")
        return self._recorder
