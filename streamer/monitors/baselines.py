"""The two techniques that the paper improves on, as baselines for measurements.

For experiments only: their Gaussian noise uses floating-point numbers, which is good enough
to count what a method finds, but not to publish real data.
"""

from __future__ import annotations

import numpy as np

from streamer.monitors.above_threshold import AboveThreshold
from streamer.monitors.seam import Decision, Tally
from streamer.privacy.baseline_plans import HistogramPlan, RestartPlan
from streamer.privacy.gaussian import normal_tail
from streamer.privacy.randomness import RandomBytes, secure_bytes


class StepHistogram:
    """A private histogram per step; cells at or above the threshold are reported."""

    def __init__(self, plan: HistogramPlan, random_bytes: RandomBytes = secure_bytes) -> None:
        self._plan = plan
        self._gaussian = np.random.Generator(np.random.Philox(int.from_bytes(random_bytes(16))))

    def decide(self, tally: Tally[int]) -> Decision:
        noise = self._gaussian.normal(0.0, self._plan.deviation, len(tally.items))
        estimates = np.rint(tally.holders + noise).astype(np.int64)
        above = tally.holders + noise >= self._plan.threshold
        return Decision.flat(tally.step, tally.items[above], estimates[above])

    def detection(self, weight: int) -> float:
        """The probability that an item with `weight` holders is reported."""
        return normal_tail((self._plan.threshold - weight) / self._plan.deviation)


class RestartedAboveThreshold:
    """AboveThreshold on the largest count of each step; after a ⊤, a histogram and a restart.

    Once the planned number of halts is used up, it reports nothing.
    """

    def __init__(self, plan: RestartPlan, random_bytes: RandomBytes = secure_bytes) -> None:
        self._plan = plan
        self._random_bytes = random_bytes
        self._halts_left = plan.halts
        self._run = self._start()
        self.histogram = StepHistogram(plan.histogram, random_bytes)

    def decide(self, tally: Tally[int]) -> Decision | None:
        """The histogram's report after a ⊤; None after a ⊥ or when all halts are used up."""
        if self._halts_left == 0:
            return None
        if not self._run.ask(int(tally.holders.max(initial=0))):
            return None
        self._halts_left -= 1
        self._run = self._start()
        return self.histogram.decide(tally)

    def _start(self) -> AboveThreshold:
        return AboveThreshold(
            self._plan.epsilon, self._plan.threshold, random_bytes=self._random_bytes
        )
