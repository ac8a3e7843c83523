"""The exact loss of Gaussian answers without prices: n counts, each published with noise.

Where a user's charges never run out, every question that touches the user may as well be
answered with its noisy count. n answers with noise of parameter σ are together one with
noise of parameter σ√n and a sensitivity of n (docs/privacy.md, theorem 5), whose loss is known
exactly. A Rényi bound of the same answers needs about 3% more noise.
"""

from __future__ import annotations

import math

import numpy as np

from streamer.privacy.gaussian_sums import LARGEST_SIGMA, SMALLEST_SIGMA, GaussianSums
from streamer.privacy.search import round_up, smallest_true

_NEGLIGIBLE = 70.0
"""The distance from the law of the sum is below e^-70, far below every δ."""
# Far above every ε of interest.
_LARGEST_EPSILON = 2.0**20
# Above the relative error of a probability here.
ROUNDING = 1e-11


def plain_delta(epsilon: float, sigma: float, answers: int) -> float:
    """An upper bound on δ at ε, hardly above the least one; 1 if σ is too small for the proof."""
    # One answer has this law exactly; the sum of several has nearly that of a single one.
    far, near = answers * (0.75 - 1.23 * sigma**2), math.log(5 * answers) - 9.8 * sigma**2
    log_error = math.log(400 * sigma * math.sqrt(answers)) + max(far, near)
    if answers > 1 and log_error + epsilon > -_NEGLIGIBLE:
        return 1.0
    # The loss of a sum s is (2s - n)/2σ².
    least = math.floor(epsilon * sigma**2 + answers / 2) + 1
    sums = GaussianSums(sigma * math.sqrt(answers))
    log_likely, log_unlikely = sums.log_at_least(np.array([least - answers, least], float)).tolist()
    likely, unlikely = math.exp(log_likely), math.exp(epsilon + log_unlikely)
    return min(1.0, max(0.0, likely - unlikely) + ROUNDING * likely + math.exp(-_NEGLIGIBLE))


def plain_scale(epsilon: float, delta: float, answers: int) -> float | None:
    """The least σ whose δ is at most this one, rounded up; None if it exceeds LARGEST_SIGMA."""

    def private(sigma: float) -> bool:
        return plain_delta(epsilon, sigma, answers) <= delta

    if not private(LARGEST_SIGMA):
        return None
    sigma = round_up(smallest_true(private, SMALLEST_SIGMA, LARGEST_SIGMA, precision=1e-7))
    # Between whole numbers of users δ does not quite fall in σ.
    while not private(sigma):
        sigma = round_up(sigma * (1 + 1e-6))
    return sigma


def plain_epsilon(delta: float, sigma: float, answers: int) -> float:
    """The least ε whose δ is at most this one; infinite if σ is too small for the proof."""

    def private(epsilon: float) -> bool:
        return plain_delta(epsilon, sigma, answers) <= delta

    high = 1.0
    while not private(high):
        high *= 2
        if high > _LARGEST_EPSILON:
            return math.inf
    return smallest_true(private, 0.0, high, precision=1e-7)
