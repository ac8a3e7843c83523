"""Gaussian noise for a finite horizon: what it needs to be, and what it reveals.

The priced answers of theorem 4; where charges cannot run out, because k is at least M, the
plain answers of theorem 5 as well, and the better of the two.
"""

from __future__ import annotations

from streamer.privacy.plain import plain_delta, plain_epsilon, plain_scale
from streamer.privacy.priced import Horizon
from streamer.privacy.priced_search import priced_delta, priced_epsilon, priced_scale


def horizon_scale(epsilon: float, delta: float, horizon: Horizon) -> float | None:
    """The least σ with which δ at ε is at most this one; None if it is beyond the sampler."""
    scales = [priced_scale(epsilon, delta, horizon)]
    if horizon.ample:
        scales.append(plain_scale(epsilon, delta, horizon.answers))
    return min((scale for scale in scales if scale is not None), default=None)


def horizon_delta(epsilon: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on δ at this ε."""
    delta = priced_delta(epsilon, sigma, horizon)
    return min(delta, plain_delta(epsilon, sigma, horizon.answers)) if horizon.ample else delta


def horizon_epsilon(delta: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on ε at this δ."""
    epsilon = priced_epsilon(delta, sigma, horizon)
    return min(epsilon, plain_epsilon(delta, sigma, horizon.answers)) if horizon.ample else epsilon
