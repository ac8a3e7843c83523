"""When a step is due and when its results leave: by the clock alone, whatever was read."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.stream.timing import StepTiming


@dataclass(frozen=True, slots=True)
class Schedule:
    """A step is due when nothing that still arrives can count for it. Its results leave a fixed
    time later, so that they show neither how much was read nor when.

    `skew_ms`: how far the clock that arrivals are measured by may be behind ours.
    `release_ms`: how long after a step is due its results leave.
    """

    timing: StepTiming
    skew_ms: int = 0
    release_ms: int = 0

    def due_at(self, step: int) -> int:
        return self.timing.end(step) + self.timing.lateness_ms + self.skew_ms

    def release_at(self, step: int) -> int:
        return self.due_at(step) + self.release_ms

    def last_due(self, now: int) -> int:
        """The last step that is due."""
        return self.timing.last_over(now - self.skew_ms)

    def until_next(self, now: int) -> int:
        """Milliseconds until a step is due or its results leave, whichever is first."""
        due = self.due_at(self.last_due(now) + 1)
        released = self.release_at(self.last_due(now - self.release_ms) + 1)
        return min(due, released) - now
