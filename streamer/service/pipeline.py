"""The protocol of a step: decide, make durable, publish, note."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from streamer.errors import MonitorError
from streamer.ledger.base import Journal, Restored
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.publication import Publication, Published, Recorder
from streamer.stream.records import Entry
from streamer.stream.timing import StepTiming
from streamer.stream.watching import NOBODY, Phase, Watcher

Checkpoint = Callable[[str], None]
"""Told of each point of the protocol as it is passed; tests end the process there."""


class Sink(Protocol):
    """Where decisions are published."""

    def sizes(self) -> Mapping[str, int]:
        """How long each output file is, so that a torn write can be taken back."""
        ...

    def take_back(self, published: Published, torn: bool) -> None:
        """Cut the outputs to what is noted as published. Without a `torn` publication to
        explain it, a longer output is one that the journal knows nothing of: refused."""
        ...

    async def publish(self, publication: Publication) -> None:
        """Durable when it returns."""
        ...


class Pipeline:
    """Takes in records and closes steps, and is the only one to do so."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        sink: Sink,
        timing: StepTiming,
        watcher: Watcher = NOBODY,
        checkpoint: Checkpoint = lambda _: None,
    ) -> None:
        self.engine = engine
        self._journal = journal
        self._sink = sink
        self._timing = timing
        self._watcher = watcher
        self._checkpoint = checkpoint
        self._recorder: Recorder | None = None

    async def recover(self, restored: Restored) -> None:
        """Publish what is decided and perhaps not published, exactly as it was decided."""
        self._recorder = Recorder(self._timing, restored.published.step)
        last = restored.last.decided
        self._sink.take_back(restored.published, torn=restored.published.step < last.step)
        if last.hitters and restored.published.step < last.step:
            await self._publish(self._recorder.with_results(last))

    async def start_at(self, step: int) -> None:
        """The first step of a new stream."""
        self.engine.start_at(step)
        await self._journal.note_published(Published(step - 1, self._sink.sizes()))
        self._recorder = Recorder(self._timing, step - 1)

    def receive(self, batch: Batch, now: int | None) -> Received:
        """Take in records. `now`: this machine's clock; None for a file, which has no arrivals."""
        received = self.engine.intake.receive(batch, self.engine.closed, now)
        self._watcher.received(batch, received)
        return received

    async def close_through(self, step: int) -> None:
        """Close all steps up to this one.

        1. Decide: counts of active users, noise, threshold, charges.
        2. Append to the journal, atomically and durably.
        3. Publish the hitters, if there are any, and the records that are due.
        4. Note that it is published.

        The process may die at any point: before 2 is complete the step was never decided;
        after it, recovery publishes the same decision again.
        """
        while not self.engine.has_closed(step):
            with self._timed(Phase.DECIDE):
                decided = await asyncio.to_thread(self.engine.close_next, step)
            self._checkpoint("decided")
            with self._timed(Phase.APPEND):
                await self._journal.append(Entry(decided, self.engine.intake.offsets()))
            self._checkpoint("appended")
            if decided.hitters:
                await self._publish(self._started().with_results(decided))
            if self._journal.snapshot_due:
                with self._timed(Phase.SNAPSHOT):
                    await self._journal.snapshot(*self.engine.counters.snapshot())
                self._checkpoint("snapshot taken")
            self._watcher.closed(decided, self.engine)

    async def record_quiet_steps(self) -> None:
        """Publish records of the closed steps that had no hitters and have none yet.

        Called when the stream is up to date, or over: see `publication`.
        """
        if self.engine.closed is None or self.engine.period is None:
            return
        recorder = self._started()
        publication = recorder.without_results(self.engine.closed, self.engine.period)
        if publication is not None:
            await self._publish(publication)

    async def _publish(self, publication: Publication) -> None:
        with self._timed(Phase.PUBLISH):
            await self._sink.publish(publication)
            self._checkpoint("published")
            await self._journal.note_published(Published(publication.through, self._sink.sizes()))
        self._checkpoint("noted")
        self._started().recorded = publication.through
        self._watcher.published(publication)

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._watcher.timed(phase, time.perf_counter() - began)

    def _started(self) -> Recorder:
        if self._recorder is None:
            raise MonitorError("the stream has no first step yet")
        return self._recorder
