"""Accounting for the two baselines that the paper improves on, each at its best.

(a) A histogram at every step: a user adds to one cell in each of m steps, or to as many as its
items that count, and a replaced user changes twice as many. The Gaussian mechanism has the
smallest error for this, of order √m.

(b) AboveThreshold finds the steps that have a heavy hitter, and a histogram of such a
step finds the item; after each halt it is restarted. With h halts: h times a pure
ε′ (dominated by h randomized responses, the exact composition of pure privacy) and h
histograms, composed exactly with each other. The error is of order √h.

Both work in the open domain and have the same guarantee and the same β as the monitor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamer.privacy.gaussian import gaussian_delta, normal_bound
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.laplace_law import LaplaceLaw
from streamer.privacy.search import least_point, smallest_true
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Workload


@dataclass(frozen=True, slots=True)
class HistogramPlan:
    """Cells get Gaussian noise of this deviation; cells at or above the threshold are reported.

    `reach` is the smallest weight that is found with the planned probability.
    """

    deviation: float
    threshold: float
    reach: float


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """AboveThreshold with `epsilon` per run and this threshold, restarted after each halt."""

    halts: int
    epsilon: float
    threshold: int
    histogram: HistogramPlan
    reach: float


def plan_histograms(guarantee: Guarantee, workload: Workload) -> HistogramPlan:
    """A histogram in each of the workload's steps."""
    budget = _after_keys(guarantee)
    cells = workload.within(guarantee.contributions).questions
    return _histogram(guarantee, cells, _widest(budget), budget.keys, workload.miss_tail)


def plan_restarts(
    guarantee: Guarantee, workload: Workload, halts: int, ignored: int
) -> RestartPlan:
    """AboveThreshold for items heavier than `ignored`, which occur in `halts` steps."""

    budget = _after_keys(guarantee)
    widest = _widest(budget)
    tail = workload.beta / (8 * halts * workload.items)

    def with_share(share: float) -> RestartPlan:
        distance = widest * share
        each = _largest(
            lambda x: restarts_delta(budget.epsilon, halts, x, distance) <= budget.delta
        )
        cells = halts * workload.within(guarantee.contributions).items_per_step
        histogram = _histogram(guarantee, cells, distance, budget.keys, tail)
        return _restarts(workload, halts, ignored, each, histogram)

    return with_share(least_point(lambda x: with_share(x).reach, 0.01, 0.99, rounds=8))


@dataclass(frozen=True, slots=True)
class _Budget:
    """What is left for the noise after the key set has its part of δ."""

    epsilon: float
    delta: float
    keys: float


def _after_keys(guarantee: Guarantee) -> _Budget:
    """A quarter of δ for the key set, close to what the monitor's own planner chooses."""
    keys = guarantee.delta / 4
    return _Budget(guarantee.epsilon, guarantee.delta - keys, keys)


def _widest(budget: _Budget) -> float:
    """The largest distance between two Gaussians that the budget covers."""
    return _largest(lambda mu: gaussian_delta(budget.epsilon, mu) <= budget.delta)


def restarts_delta(epsilon: float, halts: int, epsilon_each: float, distance: float) -> float:
    """δ(ε) of h pure ε′-private runs together with Gaussians at this distance."""
    ones = np.arange(halts + 1)
    log_success = -math.log1p(math.exp(-epsilon_each))
    choices = np.append(0.0, np.cumsum(np.log((halts - ones[:-1]) / (ones[:-1] + 1))))
    logs = choices + ones * log_success + (halts - ones) * (log_success - epsilon_each)
    # The terms left out are far below every δ that is planned for.
    kept = logs > math.log(1e-20)
    losses = epsilon_each * (2 * ones[kept] - halts)
    masses = np.exp(logs[kept])
    return math.fsum(
        mass * gaussian_delta(epsilon - loss, distance)
        for mass, loss in zip(masses.tolist(), losses.tolist(), strict=True)
    )


def _restarts(
    workload: Workload, halts: int, ignored: int, each: float, histogram: HistogramPlan
) -> RestartPlan:
    """Half of β for the questions, half for the histograms."""
    # ν - ρ of AboveThreshold: two independent Laplace draws, the smaller one never capped.
    law = LaplaceLaw(scale=4 / each, small_scale=2 / each, cap=math.ceil(200 / each))
    threshold = ignored + law.smallest_bound(workload.beta / (4 * workload.period_steps))
    reach = threshold - law.largest_bound(workload.beta / (4 * halts))
    return RestartPlan(halts, each, threshold, histogram, max(reach, histogram.reach))


def _histogram(
    guarantee: Guarantee, cells: int, distance: float, keys: float, tail: float
) -> HistogramPlan:
    """Histograms in which a user adds to this many cells altogether."""
    changed = cells * (2 if guarantee.neighbours == Neighbours.REPLACE else 1)
    deviation = math.sqrt(changed) / distance
    threshold = 1 + deviation * normal_bound(keys / cells)
    return HistogramPlan(deviation, threshold, threshold + deviation * normal_bound(tail))


def _largest(private: Callable[[float], bool]) -> float:
    """The largest x up to 100 that is private, approached from below."""
    precision = 1e-4
    return smallest_true(lambda x: not private(x), 0.0, 100.0, precision) * (1 - 2 * precision)
