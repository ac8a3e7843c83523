"""Who watches a stream for its operators: metrics, health, a summary.

Watchers see raw numbers, and only look. What may become public is an `Audience`
(publication.py), which sees nothing of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received


class Phase(StrEnum):
    """The parts of closing a step."""

    DECIDE = "decide"
    APPEND = "append"
    PUBLISH = "publish"
    SNAPSHOT = "snapshot"


class Watcher:
    """Interested in nothing: a watcher overrides what it wants to hear."""

    def restored(self, seconds: float) -> None:
        """The ledger was read, in this time; a new one too."""

    def started(self, engine: Engine) -> None:
        """The past is restored, and the engine goes on from there."""

    def received(self, batch: Batch, received: Received) -> None:
        """A batch was read, and this is what became of its records."""

    def timed(self, phase: Phase, seconds: float) -> None:
        """A part of closing a step took this long."""

    def closed(self, decided: Decided, engine: Engine) -> None:
        """A step, or a run of empty ones, is closed; its results are published."""

    def failed(self, error: BaseException, writing: bool) -> None:
        """The broker could not be read, or written to; it is tried again."""


@dataclass(frozen=True, slots=True)
class Watchers(Watcher):
    """Several watchers, one after the other."""

    all: Sequence[Watcher]

    def restored(self, seconds: float) -> None:
        for watcher in self.all:
            watcher.restored(seconds)

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

    def failed(self, error: BaseException, writing: bool) -> None:
        for watcher in self.all:
            watcher.failed(error, writing)
