"""Calibration for queries with fractional weights, f(x) in [0, 1], by a Rényi bound.

An answer that a user of weight f affects is a randomized response with odds
e^u, u = f/b, whose ⊤ charges f. If H is such that no such answer increases
E[(P/Q)^(α-1)·e^(H·remaining budget)], the whole run has
D_α ≤ H·(k+1)/(α-1), because the last charge may exceed k by less than one
(docs/privacy.md, theorem 3).
"""

from __future__ import annotations

import math

from streamer.privacy.search import least_point, smallest_scale
from streamer.privacy.terms import Neighbours


def fractional_scale(
    epsilon: float, delta: float, contributions: int, neighbours: Neighbours
) -> float:
    """The smallest b, in whole users, whose Rényi bound gives (ε, δ)."""

    def private(scale: float) -> bool:
        return fractional_delta(epsilon, scale, contributions, neighbours) <= delta

    return smallest_scale(private)


def fractional_delta(
    epsilon: float, noise_scale: float, contributions: int, neighbours: Neighbours
) -> float:
    """An upper bound on δ at this ε with noise of scale b."""
    odds = 1 / noise_scale
    # h_B needs e^(αu) < 1 + e^u.
    largest = math.log1p(math.exp(odds)) / odds

    def log_delta(order: float) -> float:
        absent, present = _absent_growth(odds, order), _present_growth(odds, order)
        replaced = neighbours == Neighbours.REPLACE
        growth = absent + present if replaced else max(absent, present)
        divergence = growth * (contributions + 1) / (order - 1)
        slack = math.log1p(-1 / order)
        return (order - 1) * (divergence - epsilon + slack) - math.log(order)

    order = least_point(log_delta, 1 + 1e-9, largest * (1 - 1e-12), 60)
    return math.exp(min(0.0, log_delta(order))) * (1 + 1e-9)


def _absent_growth(odds: float, order: float) -> float:
    """h_B(u) = -log(1 + e^u - e^(αu)) - (α-1)u.

    It is convex and 0 at u = 0, so per unit of charge the full weight is the worst case.
    """
    room = 1 + math.exp(odds) - math.exp(order * odds)
    return -math.log(room) - (order - 1) * odds if room > 0 else math.inf


def _present_growth(odds: float, order: float) -> float:
    """h_A(u) = αu - log(1 + e^u - e^((1-α)u)).

    h_A(u)/u also grows with u (docs/privacy.md, lemma 4): again full weight is the worst case.
    """
    return order * odds - math.log(1 + math.exp(odds) - math.exp((1 - order) * odds))
