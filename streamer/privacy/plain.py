"""The exact loss of Gaussian answers without prices: n counts, each published with noise.

Whatever the prices are, every question that touches a user may as well be answered with its
noisy count. The loss of n such answers depends on the sum S of their noise alone
(docs/privacy.md, theorem 5). From a σ of about 2 on, S has the law of a single draw with
parameter σ√n, nearly; below that its masses are computed. A Rényi bound of the same answers
needs about 3% more noise.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from streamer.privacy.gaussian_sums import LARGEST_SIGMA, SMALLEST_SIGMA, GaussianSums, Numbers
from streamer.privacy.search import falling_root, round_up, smallest_true

# Above the relative error of a probability here.
ROUNDING = 1e-11
_MOST_CONVOLVED = 1 << 16
"""So many answers with a small σ have an ε of thousands, which is no promise."""
_CROPPED = 80.0
"""Masses are left out where those beyond are below 2·e^-80, and e^-65 in all."""
# The precision of log σ.
_CLOSE = 1e-7
# Smaller ones are not told apart while looking for σ.
_LEAST_DELTA = 1e-300
# Far above every ε of interest.
_LARGEST_EPSILON = 2.0**20


def plain_delta(epsilon: float, sigma: float, answers: int) -> float:
    """An upper bound on δ at ε, hardly above the least one."""
    deviation = _deviation(sigma, answers)
    if 5 * deviation <= ROUNDING:
        delta = _joined_delta(epsilon, sigma, answers, ROUNDING + 5 * deviation)
    elif answers <= _MOST_CONVOLVED:
        delta = _convolved_delta(epsilon, sigma, answers)
    else:
        delta = 1.0
    return min(1.0, delta)


def plain_scale(epsilon: float, delta: float, answers: int) -> float | None:
    """The least σ whose δ is at most this one, rounded up; None if it exceeds LARGEST_SIGMA."""

    def excess(log_sigma: float) -> float:
        found = plain_delta(epsilon, math.exp(log_sigma), answers)
        return math.log(max(found, _LEAST_DELTA) / delta)

    # Close to it: Gaussian answers have D_α = α/2σ².
    root = math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))
    start = min(max(math.sqrt(answers / 2) / root, SMALLEST_SIGMA), LARGEST_SIGMA)
    ends = math.log(SMALLEST_SIGMA), math.log(LARGEST_SIGMA)
    sigma = round_up(math.exp(falling_root(excess, math.log(start), ends, _CLOSE)))
    # Between whole numbers of users δ does not quite fall in σ.
    while sigma <= LARGEST_SIGMA and plain_delta(epsilon, sigma, answers) > delta:
        sigma = round_up(sigma * (1 + 1e-6))
    return sigma if sigma <= LARGEST_SIGMA else None


def plain_epsilon(delta: float, sigma: float, answers: int) -> float:
    """The least ε whose δ is at most this one; infinite if it is in the millions."""

    def private(epsilon: float) -> bool:
        return plain_delta(epsilon, sigma, answers) <= delta

    high = 1.0
    while not private(high):
        high *= 2
        if high > _LARGEST_EPSILON:
            return math.inf
    return smallest_true(private, 0.0, high, precision=1e-7)


def _deviation(sigma: float, answers: int) -> float:
    """By how much a mass of S differs at most from a multiple of that of a draw with σ√n,
    relative to it."""
    if answers == 1:
        return 0.0
    # Lemma 6; where it exceeds 1 it says nothing, and must not overflow.
    exponent = 2.01 * answers * math.exp(-((math.pi * sigma) ** 2))
    return math.expm1(min(1.0, exponent))


def _joined_delta(epsilon: float, sigma: float, answers: int, error: float) -> float:
    """All answers as one with noise of parameter σ√n and a sensitivity of n."""
    # The loss of a sum s is (2s - n)/2σ².
    least = math.floor(epsilon * sigma**2 + answers / 2) + 1
    sums = GaussianSums(sigma * math.sqrt(answers))
    log_likely, log_unlikely = sums.log_at_least(np.array([least - answers, least], float)).tolist()
    likely, unlikely = math.exp(log_likely), math.exp(epsilon + log_unlikely)
    return max(0.0, likely - unlikely) + error * likely


def _convolved_delta(epsilon: float, sigma: float, answers: int) -> float:
    """The sum of all masses, each times its share above e^ε."""
    masses = _masses(sigma, answers)
    reach = len(masses) // 2
    losses = (2 * np.arange(-reach, reach + 1) + answers) / (2 * sigma**2)
    gain = losses > epsilon
    delta = float(np.sum(masses[gain] * -np.expm1(epsilon - losses[gain])))
    return delta * (1 + ROUNDING * (1 + answers / 100)) + math.exp(-65)


@lru_cache(maxsize=16)
def _masses(sigma: float, answers: int) -> Numbers:
    """Pr[S = x] for x from -r to r. All terms are positive, so relative errors stay small."""
    if answers == 1:
        reach = _reach(sigma, 1)
        return np.exp(GaussianSums(sigma).log_mass(np.arange(-reach, reach + 1.0)))
    half = _masses(sigma, answers // 2)
    whole = np.convolve(half, half)
    if answers % 2:
        whole = np.convolve(whole, _masses(sigma, 1))
    surplus = max(0, len(whole) // 2 - _reach(sigma, answers))
    return whole[surplus : len(whole) - surplus]


def _reach(sigma: float, answers: int) -> int:
    """Pr[|S| > reach] is below 2·e^-80."""
    return math.ceil(sigma * math.sqrt(2 * _CROPPED * answers))
