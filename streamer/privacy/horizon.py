"""Gaussian noise for a finite horizon: what it needs to be, and what it reveals.

Two accounts that both hold, the priced answers of theorem 4 and the plain answers of theorem 5:
the better one counts. Where charges are ample, that is the second one.
"""

from __future__ import annotations

from streamer.privacy.plain import plain_delta, plain_epsilon, plain_scale
from streamer.privacy.priced import Horizon
from streamer.privacy.priced_search import priced_delta, priced_epsilon, priced_scale


def horizon_scale(epsilon: float, delta: float, horizon: Horizon) -> float | None:
    """The least σ with which δ at ε is at most this one; None if it is beyond the sampler."""
    scales = [plain_scale(epsilon, delta, horizon.answers)]
    if not horizon.ample:
        scales.append(priced_scale(epsilon, delta, horizon))
    return min((scale for scale in scales if scale is not None), default=None)


def horizon_delta(epsilon: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on δ at this ε."""
    delta = plain_delta(epsilon, sigma, horizon.answers)
    return delta if horizon.ample else min(delta, priced_delta(epsilon, sigma, horizon))


def horizon_epsilon(delta: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on ε at this δ."""
    epsilon = plain_epsilon(delta, sigma, horizon.answers)
    return epsilon if horizon.ample else min(epsilon, priced_epsilon(delta, sigma, horizon))
