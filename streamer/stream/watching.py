"""Observers of a stream for its operators: metrics, health, a summary.

Watchers see raw numbers and change nothing. Public views implement `Audience`
(publication.py) instead, which receives none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received


class Phase(StrEnum):
    """The phases of closing a step."""

    DECIDE = "decide"
    APPEND = "append"
    PUBLISH = "publish"
    SNAPSHOT = "snapshot"


class Watcher:
    """Does nothing by default: subclasses override the methods they need."""

    def restored(self, seconds: float) -> None:
        """The ledger was read, which took this long; also called for a new ledger."""

    def started(self, engine: Engine) -> None:
        """The state is restored, and the engine continues from there."""

    def received(self, batch: Batch, received: Received) -> None:
        """A batch was read; `received` says what happened to its records."""

    def timed(self, phase: Phase, seconds: float) -> None:
        """A phase of closing a step took this long."""

    def closed(self, decided: Decided, engine: Engine) -> None:
        """A step or a run of empty steps is closed; its results are published."""

    def failed(self, error: BaseException, writing: bool) -> None:
        """Reading from or writing to the broker failed; it will be retried."""


@dataclass(frozen=True, slots=True)
class Watchers(Watcher):
    """Several watchers, called in order."""

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
