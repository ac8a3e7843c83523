"""One run over lines of events, from a file or a pipe.

The steps of a file close when all of it has been read or, if it is sorted by time, as time
advances in it. The events of a live pipe arrive when they are read, and its steps close on
the clock.
"""

from __future__ import annotations

import asyncio
from typing import BinaryIO

from streamer.lines.live import LiveLines
from streamer.lines.source import read_batches
from streamer.operations.health import Status
from streamer.service.clock import Clock, wall_clock
from streamer.service.loop import Loop
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.stream.file_range import FileRange
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher


class LineRun:
    """Takes in lines, and closes their steps."""

    def __init__(
        self,
        pipeline: Pipeline,
        timing: StepTiming,
        longest_line: int,
        start: int | None = None,
    ) -> None:
        """`start`: the first step of a new stream; None: that of its first event, or of the clock
        for a live pipe."""
        self._pipeline = pipeline
        self._engine = pipeline.engine
        self._timing = timing
        self._longest_line = longest_line
        self._start = start

    async def read_file(self, stream: BinaryIO, file_range: FileRange) -> None:
        """Close the steps up to the end of the range, or all that the file has events of."""
        self._start_at(self._start)
        for batch in read_batches(stream, self._longest_line):
            self._pipeline.receive(batch, now=None)
            if file_range.passed is not None:
                await self._close_through(file_range.passed)
            await asyncio.sleep(0)  # lets a signal through
        if file_range.until is not None:
            await self._close_through(file_range.until - 1)
        elif self._engine.intake.open_steps:
            await self._close_through(self._engine.intake.open_steps[-1])
        await self._pipeline.record_quiet_steps()

    async def read_live(
        self, stream: BinaryIO, schedule: Schedule, clock: Clock = wall_clock
    ) -> None:
        """Events arrive at the moment of reading; steps close, and results leave, by the clock."""
        self._start_at(self._timing.step_at(clock()) if self._start is None else self._start)
        source = LiveLines(stream, self._longest_line, clock)
        progress = Progress(source, schedule, clock)
        never = asyncio.Event()
        await Loop(source, progress, self._pipeline, Status(), Watcher(), never).run()
        # The pipe is closed: no more events can arrive for the current step, and the process
        # ends. Future steps stay open: a sender whose clock is fast must not close them.
        await self._pipeline.release()
        await self._close_through(self._timing.step_at(clock()))
        await self._pipeline.record_quiet_steps()

    def _start_at(self, step: int | None) -> None:
        if self._engine.closed is None and step is not None:
            self._pipeline.start_at(step)

    async def _close_through(self, step: int) -> None:
        if self._engine.closed is None:
            self._start_at(self._engine.intake.open_steps[0])
        await self._pipeline.close_through(step)
