"""Relative entropy of two coins: the exponent in Chernoff's bound."""

from __future__ import annotations

import math


def coin_entropy(share: float, probability: float) -> float:
    """KL(share ‖ probability) in nats.

    In n tosses, the probability that the share of successes is at least this far from the
    coin's probability is at most exp(-n·KL).
    """
    if not 0 < probability < 1:
        return 0.0 if share == probability else math.inf
    ones = share * math.log(share / probability) if share > 0 else 0.0
    zeros = (1 - share) * math.log((1 - share) / (1 - probability)) if share < 1 else 0.0
    return ones + zeros
