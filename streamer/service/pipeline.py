"""The protocol of a step: decide, make durable, publish, note."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from streamer.journal.base import Journal, Restored
from streamer.stream.engine import Engine
from streamer.stream.records import Decided, Entry

Checkpoint = Callable[[str], None]
"""Told of each point of the protocol as it is passed; tests end the process there."""


class Sink(Protocol):
    """Where decisions are published."""

    def sizes(self) -> Mapping[str, int]:
        """How long each output is, so that a torn write can be taken back."""
        ...

    def take_back(self, sizes: Mapping[str, int]) -> None: ...

    async def publish(self, decided: Decided) -> None: ...


class Pipeline:
    """Closes steps, and is the only one to do so."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        sink: Sink,
        checkpoint: Checkpoint = lambda _: None,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._sink = sink
        self._checkpoint = checkpoint

    async def recover(self, restored: Restored) -> None:
        """Publish what is decided and perhaps not published, exactly as it was decided."""
        if restored.unpublished is None:
            return
        self._sink.take_back(restored.unpublished.outputs)
        await self._publish(restored.unpublished.decided)

    async def close_through(self, step: int, done: Callable[[Decided], None]) -> None:
        """Close all steps up to this one; `done` is told of each when it is published.

        1. Decide: counts of active users, noise, threshold, charges.
        2. Append to the journal, atomically and durably.
        3. Publish.
        4. Note that it is published.

        The process may die at any point: before 2 is complete the step was never decided;
        after it, recovery publishes the same decision again.
        """
        while True:
            decided = await asyncio.to_thread(self._engine.close_next, step)
            if decided is None:
                return
            self._checkpoint("decided")
            entry = Entry(decided, self._engine.intake.offsets(), self._sink.sizes())
            await self._journal.append(entry)
            self._checkpoint("appended")
            await self._publish(decided)
            if self._journal.snapshot_due:
                await self._journal.snapshot(*self._engine.counters.snapshot())
                self._checkpoint("snapshot taken")
            done(decided)

    async def _publish(self, decided: Decided) -> None:
        await self._sink.publish(decided)
        self._checkpoint("published")
        await self._journal.note_published(decided.step)
        self._checkpoint("noted")
