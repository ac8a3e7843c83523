"""How much noise a guarantee needs: from (ε, δ, k, neighbours) to Δ₁ and Δ₂."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from streamer.errors import SettingError
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.loss import charge_delta
from streamer.privacy.renyi import fractional_scale
from streamer.privacy.search import smallest_scale
from streamer.privacy.terms import Method, Neighbours
from streamer.privacy.theorem import theorem_scales

# A share of δ held in reserve: it covers rounding and the sampler's distance from the ideal
# distribution (below 2⁻¹⁰⁰ per draw, docs/privacy.md "What is left out").
RESERVE = 1e-9
# Scales are rounded up to a multiple of this, so that printed scales are exact.
SCALE_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Calibration:
    """The monitor's noise: w ~ Lap(noise_scale), v ~ Lap(delta2), v̄ = min(v, delta1).

    All scales are in whole users. Noise is drawn as integers, which is why there is a `cap`.
    """

    guarantee: Guarantee
    method: Method
    keys_delta: float
    noise_scale: float
    delta2: float

    @property
    def delta1(self) -> float:
        """The paper's Δ₁: a tenth of the scale of w."""
        return self.noise_scale / 10

    @property
    def charge_delta(self) -> float:
        """The part of δ that covers what the answers reveal about a user."""
        return self.guarantee.delta - self.keys_delta

    @property
    def cap(self) -> int:
        """The largest value of v̄: Δ₁ rounded down to an integer."""
        return math.floor(self.delta1)

    @property
    def fractional(self) -> bool:
        """Whether the guarantee covers weights other than 0 and 1."""
        return self.method is not Method.EXACT


@lru_cache(maxsize=256)
def calibrate(
    guarantee: Guarantee, method: Method = Method.EXACT, keys_delta: float = 0.0
) -> Calibration:
    """The least noise that the chosen analysis proves sufficient, rounded up.

    `keys_delta` is the part of δ that the open domain's key set takes (docs/privacy.md,
    theorem 2; see `threshold`); the rest is for the charges.
    """
    if method not in tuple(Method):
        raise SettingError("calibration", method, f"use one of {', '.join(Method)}")
    if not 0 <= keys_delta < guarantee.delta:
        raise SettingError(
            "delta of the key set", keys_delta, "it must be at least 0 and below delta"
        )
    epsilon, delta = guarantee.epsilon, (guarantee.delta - keys_delta) * (1 - RESERVE)
    k, neighbours = guarantee.contributions, guarantee.neighbours
    if method == Method.THEOREM:
        scales = theorem_scales(epsilon, delta, k, neighbours)
        # The paper proves its theorems for continuous noise; ours is discrete, and estimates
        # are published. Theorems 1 and 3 cover that from these two scales on.
        ours = (solve(epsilon, delta, k, neighbours) for solve in (exact_scale, fractional_scale))
        scale = _round_up(max(10 * scales.delta1, *ours))
        return Calibration(guarantee, Method.THEOREM, keys_delta, scale, scales.delta2)
    solve = exact_scale if method == Method.EXACT else fractional_scale
    scale = _round_up(solve(epsilon, delta, k, neighbours))
    delta2 = scale / 10 / _log_ratio(guarantee)
    return Calibration(guarantee, Method(method), keys_delta, scale, delta2)


def exact_scale(epsilon: float, delta: float, contributions: int, neighbours: Neighbours) -> float:
    """The smallest scale b of w for which the exact loss is within (ε, δ)."""

    def private(scale: float) -> bool:
        return charge_delta(epsilon, scale, contributions, neighbours) <= delta

    return smallest_scale(private)


def _log_ratio(guarantee: Guarantee) -> float:
    """Δ₁/Δ₂ = log((k/ε)·log(k/δ)) as in the paper, but at least 1 (large ε would give less)."""
    k = guarantee.contributions
    return math.log(max(math.e, (k / guarantee.epsilon) * math.log(k / guarantee.delta)))


def _round_up(scale: float) -> float:
    return round(math.ceil(scale / SCALE_STEP) * SCALE_STEP, 6)
