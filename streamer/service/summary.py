"""What happened to the records and steps of a run, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.watching import Watcher


@dataclass(slots=True)
class Summary(Watcher):
    """Counts records read and steps closed."""

    records: int = 0
    accepted: int = 0
    late: int = 0
    already_closed: int = 0
    """Events of steps that were closed before: read again, or too old."""
    missed: int = 0
    """Events that could be read only after their step was closed."""
    left: int = 0
    """Events of steps after the end of this run over a file, left for the next one."""
    ignored: int = 0
    """Events that the settings of `events` leave out."""
    rejected: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    """Accepted events that did not count: the user's later events of the step did."""
    steps: int = 0
    hitters: int = 0
    charged: int = 0
    exhausted: int = 0
    """Users of the current period, including those of earlier runs."""

    def started(self, engine: Engine) -> None:
        self.charged, self.exhausted = engine.charged, engine.exhausted

    def received(self, batch: Batch, received: Received) -> None:
        self.records += len(batch.records)
        self.accepted += received.accepted
        self.late += received.late
        self.already_closed += received.already_closed
        self.missed += received.missed
        self.left += received.left
        self.ignored += received.ignored
        self.rejected.update(rejection.reason.value for rejection in received.rejections)

    def closed(self, decided: Decided, engine: Engine) -> None:
        self.duplicates += engine.turnout.events - engine.turnout.held
        self.steps += decided.step - decided.first + 1
        self.hitters += len(decided.hitters)
        self.charged, self.exhausted = engine.charged, engine.exhausted
