"""A run on one machine: events from a file or a pipe, decisions to files.

The steps of a file close when all of it has been read or, if it is sorted by time, as time
advances in it. The events of a live pipe arrive when they are read, and its steps close on
the clock.
"""

from __future__ import annotations

import asyncio
from typing import BinaryIO

import numpy as np

from streamer.errors import InputError
from streamer.lines.live import LiveLines
from streamer.lines.source import read_batches
from streamer.operations.health import Status
from streamer.service.clock import Clock, wall_clock
from streamer.service.loop import Loop
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher


class LineRun:
    """One run over lines of events."""

    def __init__(self, pipeline: Pipeline, timing: StepTiming, longest_line: int) -> None:
        self._pipeline = pipeline
        self._engine = pipeline.engine
        self._timing = timing
        self._longest_line = longest_line

    async def read_unordered(self, stream: BinaryIO) -> None:
        """Read everything, then close all steps from the first to the last."""
        latest: int | None = None
        for batch in read_batches(stream, self._longest_line):
            received = self._pipeline.receive(batch, now=None)
            if len(received.times):
                latest = max(latest or 0, int(received.times.max()))
            await asyncio.sleep(0)  # lets signals be handled
        if latest is not None:
            await self._close_through(self._timing.step_at(latest))
        await self._pipeline.record_quiet_steps()

    async def read_sorted(self, stream: BinaryIO) -> None:
        """Close each step when the first event of a later one is read."""
        latest = -1
        for batch in read_batches(stream, self._longest_line):
            received = self._pipeline.receive(batch, now=None)
            times = np.append(latest, received.times)
            backwards = np.flatnonzero(times[1:] < times[:-1])
            if len(backwards):
                line = int(batch.offsets[received.places[backwards[0]]]) + 1
                raise InputError(
                    f"line {line} is earlier than the line before it: sort the source by time, "
                    "or omit --sorted"
                )
            latest = int(times[-1])
            if latest >= 0:
                await self._close_through(self._timing.step_at(latest) - 1)
            await asyncio.sleep(0)
        if latest >= 0:
            await self._close_through(self._timing.step_at(latest))
        await self._pipeline.record_quiet_steps()

    async def read_live(self, stream: BinaryIO, clock: Clock = wall_clock) -> None:
        """Events arrive at the moment of reading; steps close on the clock."""
        if self._engine.closed is None:
            self._pipeline.start_at(self._timing.step_at(clock()))
        source = LiveLines(stream, self._longest_line, clock)
        progress = Progress(source, self._timing, clock)
        never = asyncio.Event()
        await Loop(source, progress, self._pipeline, Status(), Watcher(), never).run()
        # The pipe is closed, so no more events can arrive for the current step. Future steps
        # stay open: a sender whose clock is fast must not close them for others.
        await self._close_through(self._timing.step_at(clock()))
        await self._pipeline.record_quiet_steps()

    async def _close_through(self, step: int) -> None:
        if self._engine.closed is None:
            if not self._engine.intake.open_steps:
                return
            self._pipeline.start_at(self._engine.intake.open_steps[0])
        await self._pipeline.close_through(step)
