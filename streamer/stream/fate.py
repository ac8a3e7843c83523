"""Whether an event counts: a rule that depends on that event only.

An event counts for the step of its time if and only if it arrived before the end of that step
plus the allowed lateness. Read order, restarts, other partitions and other users' clocks make
no difference. This is a privacy rule: if one user's clock could close a step for others, one
user could change everybody's counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.stream.moments import Moments
from streamer.stream.timing import StepTiming


@dataclass(frozen=True, slots=True)
class Fates:
    """Per event: its step, and whether it is late, rejected (and why), or left for the next run
    over a file."""

    steps: NDArray[np.int64]
    late: NDArray[np.bool_]
    time_ahead: NDArray[np.bool_]
    arrival_ahead: NDArray[np.bool_]
    left: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.bool_]:
        return ~(self.late | self.time_ahead | self.arrival_ahead | self.left)


@dataclass(frozen=True, slots=True)
class FateRule:
    """`ahead_ms`: how far an event's time may be ahead of its arrival, and an arrival ahead of
    this machine's clock."""

    timing: StepTiming
    ahead_ms: int

    def judge(self, times: Moments, arrivals: Moments | None, now: int | None) -> Fates:
        """Without arrivals (a file) an event arrives at its own time."""
        timing = self.timing
        steps = (times - timing.epoch_ms) // timing.length_ms
        never = np.zeros(len(times), dtype=np.bool_)
        if arrivals is None:
            return Fates(steps, never, never, never, never)
        arrival_ahead = never if now is None else arrivals > now + self.ahead_ms
        # An arrival may be any 64-bit number: subtracting from it could overflow.
        time_ahead = (times - self.ahead_ms > arrivals) & ~arrival_ahead
        ends = timing.epoch_ms + (steps + 1) * timing.length_ms
        late = (arrivals >= ends + timing.lateness_ms) & ~arrival_ahead
        return Fates(steps, late, time_ahead, arrival_ahead, never)
