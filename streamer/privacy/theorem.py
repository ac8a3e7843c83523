"""The paper's own theorems with their explicit constants.

Kept for comparison: the noise is thousands of times larger than what the exact calibration
needs for the same guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from streamer.errors import SettingError
from streamer.privacy.search import first_integer, least_point, smallest_true
from streamer.privacy.terms import Neighbours


@dataclass(frozen=True, slots=True)
class TheoremScales:
    """Δ₁ and Δ₂ of the monitor; the noise w has scale 10·Δ₁."""

    delta1: float
    delta2: float


@dataclass(frozen=True, slots=True)
class _Target:
    """The add/remove guarantee that the theorems are solved for."""

    epsilon: float
    delta: float
    contributions: int


def theorem_scales(
    epsilon: float, delta: float, contributions: int, neighbours: Neighbours
) -> TheoremScales:
    """The smaller noise of the direct theorem and its composition over epochs."""
    if neighbours == Neighbours.REPLACE:
        # Replacing one user is removing one and adding one.
        epsilon, delta = epsilon / 2, delta / (1 + math.exp(epsilon / 2))
    target = _Target(epsilon, delta, contributions)
    return min(_direct(target), _composed(target), key=lambda scales: scales.delta1)


def _direct(target: _Target) -> TheoremScales:
    """(75(k+1)ε̃/log(1/δ̃) + 25ε̃, 3δ̃)-DP, solved for ε̃."""
    log_delta = math.log(3 / target.delta)
    inner = target.epsilon / (75 * (target.contributions + 1) / log_delta + 25)
    return _scales(inner, log_delta)


def _composed(target: _Target) -> TheoremScales:
    """Epochs of log(1/δ̃) charges each, combined by advanced composition.

    The share of δ that composition takes is a free choice: the best one is searched for.
    """

    def cost(log_share: float) -> float:
        return _composed_at(target, math.exp(log_share)).delta1

    # The number of epochs jumps with the share, so each piece of a grid is searched.
    edges = [math.log(1e-6) + i * (math.log(0.999) - math.log(1e-6)) / 40 for i in range(41)]
    points = [least_point(cost, low, high, 25) for low, high in pairwise(edges)]
    return _composed_at(target, math.exp(min(points, key=cost)))


def _composed_at(target: _Target, share: float) -> TheoremScales:
    slack = share * target.delta

    def log_inverse(epochs: int) -> float:
        return math.log(3 * epochs / (target.delta - slack))

    # More epochs make δ̃ smaller and each epoch longer, so the condition is monotone.
    epochs = first_integer(lambda n: target.contributions <= n * log_inverse(n), least=1)
    log_delta = log_inverse(epochs)
    root = math.sqrt(2 * epochs * math.log(1 / slack))

    def too_much(per_epoch: float) -> bool:
        return root * per_epoch + epochs * per_epoch * math.expm1(per_epoch) > target.epsilon

    # The largest loss per epoch that still composes to ε, slightly below the limit.
    per_epoch = smallest_true(too_much, 0.0, 2 * target.epsilon / root) * (1 - 1e-8)
    inner = per_epoch / (75 * (log_delta + 1) / log_delta + 25)
    return _scales(inner, log_delta)


def _scales(inner: float, log_delta: float) -> TheoremScales:
    """Δ = (1/ε̃)·log(1/δ̃)·log((1/ε̃)·log(1/δ̃)); the proof needs a last factor of at least log(2)."""
    plain = log_delta / inner
    if plain < 2:
        raise SettingError(
            "epsilon",
            f"too large for the theorem calibration (log(1/δ)/ε = {plain:.3g} in its proof)",
            "the proof needs at least 2; lower epsilon, or use the exact calibration",
        )
    return TheoremScales(delta1=plain * math.log(plain), delta2=plain)
