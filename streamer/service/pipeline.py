"""The protocol of a step: decide, make durable, publish, record that."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streamer.errors import MonitorError
from streamer.ledger.contract import Entry, Ledger
from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.publication import Audience, Publication, Recorder
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Phase, Watcher

_log = logging.getLogger(__name__)
Checkpoint = Callable[[str], None]
"""Called at each point of the protocol, with its name; tests kill the process there."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A closed step, and what is to be published of it when its moment comes."""

    decided: Decided | None
    publication: Publication | None


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
        self._held: _Held | None = None

    def start_at(self, step: int) -> None:
        """The first step of a new stream."""
        self.engine.start_at(step)
        self._recorder = Recorder(self._timing, step - 1)

    def receive(self, batch: Batch, now: int | None) -> Received:
        """Receive records. `now`: this machine's clock; None for a file, which has no arrivals."""
        received = self.engine.intake.receive(batch, self.engine.closed, now)
        self._watcher.received(batch, received)
        if received.missed:
            _log.warning(
                "partition %s: %d events could be read only after their step was closed: they do "
                "not count",
                *(batch.partition, received.missed),
            )
        return received

    async def close_through(self, step: int) -> None:
        """Close all steps up to this one, and let their results leave at once: for what is not
        read as it happens."""
        while not self.engine.has_closed(step):
            decided = await self._decide_next(step)
            if decided.hitters:
                await self.publish(self._started().with_results(decided))
            await self._finish(decided)

    async def record_quiet_steps(self) -> None:
        """Publish records of the closed steps that had no hitters and have none yet."""
        publication = self._quiet()
        if publication is not None:
            await self.publish(publication)

    async def close_next(self, through: int, goal: int) -> None:
        """Close the next step up to `through`. What is to be published of it is held back.

        Quiet steps up to `goal` are recorded together, when that step is closed.
        """
        decided = await self._decide_next(through)
        publication = None
        if decided.hitters:
            publication = self._started().with_results(decided)
        elif decided.step >= goal:
            publication = self._quiet()
        self._held = _Held(decided, publication)

    def hold_quiet_steps(self) -> None:
        """Hold records of steps that were closed before this start and have none yet."""
        publication = self._quiet()
        if self._held is None and publication is not None:
            self._held = _Held(None, publication)

    async def release(self, released: int | None = None) -> bool:
        """Publish what is held back of steps up to `released`; None: whatever is held back.

        Whether nothing is held back any more: only then is the next step decided. After a
        crash the last decision alone is published again.
        """
        held = self._held
        if held is None:
            return True
        publication = held.publication
        if publication is not None:
            if released is not None and publication.through > released:
                return False
            await self.publish(publication)
        self._held = None
        if held.decided is not None:
            await self._finish(held.decided)
        return True

    async def publish(self, publication: Publication) -> None:
        with self._timed(Phase.PUBLISH):
            await self._ledger.publish(publication)
        self._checkpoint("noted")
        self._started().recorded = publication.through
        self._audience.published(publication)

    async def _decide_next(self, through: int) -> Decided:
        """Decide the next step up to this one, and make that durable.

        1. Decide: counts of active users, noise, threshold, charges.
        2. Append to the ledger, atomically and durably.

        The process may die at any point: before 2 is complete the step was never decided;
        after it, the same decision is published by the next start.
        """
        with self._timed(Phase.DECIDE):
            decided = await asyncio.to_thread(self.engine.close_next, through)
        self._checkpoint("decided")
        with self._timed(Phase.APPEND):
            intake = self.engine.intake
            await self._ledger.append(Entry(decided, intake.offsets(), intake.read()))
        self._checkpoint("appended")
        return decided

    async def _finish(self, decided: Decided) -> None:
        """After a step's results left: a snapshot of the counters, if one is due."""
        if self._ledger.snapshot_due:
            with self._timed(Phase.SNAPSHOT):
                await self._ledger.snapshot(self.engine.counters.snapshot())
            self._checkpoint("snapshot taken")
        self._watcher.closed(decided, self.engine)

    def _quiet(self) -> Publication | None:
        """Records of the closed steps that had no hitters and have none yet."""
        if self.engine.closed is None or self.engine.period is None:
            return None
        return self._started().without_results(self.engine.closed, self.engine.period)

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._watcher.timed(phase, time.perf_counter() - began)

    def _started(self) -> Recorder:
        if self._recorder is None:
            raise MonitorError("the stream has no first step yet")
        return self._recorder
