"""The exact privacy loss of the Gaussian mechanism, for the baselines."""

from __future__ import annotations

import math

from streamer.privacy.search import smallest_true


def gaussian_delta(epsilon: float, distance: float) -> float:
    """δ(ε) of N(0, 1) against N(distance, 1): Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ)."""
    if distance == 0:
        return max(0.0, -math.expm1(min(epsilon, 0.0)))
    likely = normal_tail(epsilon / distance - distance / 2)
    unlikely = normal_tail(epsilon / distance + distance / 2)
    if unlikely == 0:
        return likely
    return max(0.0, likely - math.exp(epsilon + math.log(unlikely)))


def normal_tail(bound: float) -> float:
    """Pr[N(0, 1) >= bound]."""
    return math.erfc(bound / math.sqrt(2)) / 2


def normal_bound(probability: float) -> float:
    """The smallest x >= 0 with Pr[N(0, 1) >= x] <= probability."""
    return smallest_true(lambda bound: normal_tail(bound) <= probability, 0.0, 40.0)
