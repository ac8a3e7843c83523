"""Who is told of what happens in a stream: metrics, logs, the live page, a summary.

Watchers only look. What `published` tells has passed the monitor; everything else is raw
and for operators alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.publication import Publication
from streamer.stream.records import Decided


class Phase(StrEnum):
    """The parts of closing a step."""

    DECIDE = "decide"
    APPEND = "append"
    PUBLISH = "publish"
    SNAPSHOT = "snapshot"


class Watcher:
    """Interested in nothing: a watcher overrides what it wants to be told of."""

    def restored(self, history: Sequence[Decided], published: int) -> None:
        """The last decisions before this start, the oldest first; those up to the step
        `published` are out."""

    def started(self, engine: Engine) -> None:
        """The past is restored, and the engine goes on from there."""

    def received(self, batch: Batch, received: Received) -> None:
        """A batch was read, and this is what became of its records."""

    def timed(self, phase: Phase, seconds: float) -> None:
        """A part of closing a step took so long."""

    def closed(self, decided: Decided, engine: Engine) -> None:
        """A step, or a run of empty ones, is closed; its results are published."""

    def published(self, publication: Publication) -> None:
        """These records are out."""

    def failed(self, error: BaseException, writing: bool) -> None:
        """The broker could not be read, or written to; it is tried again."""


NOBODY = Watcher()


@dataclass(frozen=True, slots=True)
class Watchers(Watcher):
    """Several watchers, told one after the other."""

    all: Sequence[Watcher]

    def restored(self, history: Sequence[Decided], published: int) -> None:
        for watcher in self.all:
            watcher.restored(history, published)

    def started(self, engine: Engine) -> None:
        for watcher in self.all:
            watcher.started(engine)

    def received(self, batch: Batch, received: Received) -> None:
        for watcher in self.all:
            watcher.received(batch, received)

    def timed(self, phase: Phase, seconds: float) -> None:
        for watcher in self.all:
            watcher.timed(phase, seconds)

    def closed(self, decided: Decided, engine: Engine) -> None:
        for watcher in self.all:
            watcher.closed(decided, engine)

    def published(self, publication: Publication) -> None:
        for watcher in self.all:
            watcher.published(publication)

    def failed(self, error: BaseException, writing: bool) -> None:
        for watcher in self.all:
            watcher.failed(error, writing)
