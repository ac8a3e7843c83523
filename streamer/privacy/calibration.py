"""How much noise a guarantee needs: from (ε, δ, k, neighbours) to the law of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.privacy.gaussian_law import GaussianLaw
from streamer.privacy.gaussian_sums import LARGEST_SIGMA
from streamer.privacy.guarantee import Guarantee, check_whole
from streamer.privacy.horizon import horizon_delta, horizon_epsilon, horizon_scale
from streamer.privacy.laplace_law import LaplaceLaw
from streamer.privacy.law import NoiseLaw
from streamer.privacy.loss import charge_delta, total_epsilon
from streamer.privacy.priced import Horizon
from streamer.privacy.prices import CHANGES, FULL, VALUES, Questions
from streamer.privacy.renyi import fractional_scale
from streamer.privacy.search import round_up, smallest_scale
from streamer.privacy.terms import Attention, Method, Neighbours, Noise
from streamer.privacy.theorem import theorem_scales

# A share of δ held in reserve: it covers rounding and the sampler's distance from the ideal
# distribution (below 2⁻¹⁰⁰ per draw, docs/privacy.md "What is left out").
RESERVE = 1e-9
MOST_QUESTIONS = 10**12


@dataclass(frozen=True, slots=True)
class Calibration:
    """The monitor's noise, and what its answers cost.

    Gaussian: w with parameter σ = noise_scale. Laplace: w ~ Lap(noise_scale), v ~ Lap(delta2),
    v̄ = min(v, delta1). All scales are in whole users. Noise is drawn as integers, which is why
    there is a `cap`. Stored in ledgers: fields that 0.1.0 did not have have its values as defaults.
    """

    guarantee: Guarantee
    method: Method
    keys_delta: float
    noise_scale: float
    delta2: float
    noise: Noise = Noise.LAPLACE
    questions: int = 0
    """The horizon M: how many questions can touch one user in a period; 0: any number."""
    kinds: Questions = VALUES

    @property
    def delta1(self) -> float:
        """The paper's Δ₁, a tenth of the scale of w; Gaussian noise has no v to cap."""
        return self.noise_scale / 10 if self.noise is Noise.LAPLACE else 0.0

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
        return self.method in (Method.THEOREM, Method.FRACTIONAL)

    @property
    def attention(self) -> Attention:
        return Attention.CHANGES if self.kinds.still_there else Attention.EVERY_STEP

    @property
    def loud_excess(self) -> int:
        """Reports that exceed the threshold by at least this much are loud: ⌈σ⌉."""
        return math.ceil(self.noise_scale)

    @property
    def loud_price(self) -> float:
        """What a loud report charges its holders, in contributions."""
        return self.kinds.loud / FULL

    def prices(self, excess: NDArray[np.int64]) -> NDArray[np.uint16]:
        """What reports charge their holders, in units, given by how much each exceeds its
        threshold."""
        loud = excess >= self.loud_excess
        return np.where(loud, self.kinds.loud, FULL).astype(np.uint16)

    @property
    def law(self) -> NoiseLaw:
        if self.noise is Noise.GAUSSIAN:
            return GaussianLaw(self.noise_scale)
        return LaplaceLaw(self.noise_scale, self.delta2, self.cap)

    def delta_at(self, epsilon: float) -> float:
        """δ(ε′) of the charges: a plan promises this whole curve.

        A plan counts whole users, so the exact loss is valid for every Laplace calibration.
        """
        if self.noise is Noise.GAUSSIAN:
            return horizon_delta(epsilon, self.noise_scale, self._horizon)
        k, neighbours = self.guarantee.contributions, self.guarantee.neighbours
        return charge_delta(epsilon, self.noise_scale, k, neighbours)

    def epsilon_after(self, periods: int) -> float:
        """The total ε of the charges of this many periods, at as many times their δ."""
        delta = self.charge_delta * periods * (1 - RESERVE)
        if self.noise is Noise.GAUSSIAN:
            return horizon_epsilon(delta, self.noise_scale, self._horizon.after(periods))
        k, neighbours = self.guarantee.contributions, self.guarantee.neighbours
        return total_epsilon(delta, self.noise_scale, k, neighbours, periods)

    @property
    def _horizon(self) -> Horizon:
        guarantee = self.guarantee
        return Horizon(guarantee.contributions, self.questions, guarantee.neighbours, self.kinds)


@lru_cache(maxsize=256)
def calibrate(
    guarantee: Guarantee,
    method: Method = Method.EXACT,
    keys_delta: float = 0.0,
    questions: int = 0,
    attention: Attention = Attention.EVERY_STEP,
) -> Calibration:
    """The least noise that the chosen analysis proves sufficient, rounded up.

    `keys_delta` is the part of δ that the open domain's key set takes (docs/privacy.md,
    theorem 2; see `threshold`); the rest is for the charges. `questions` is the horizon M,
    which only the horizon calibration needs: the others allow any number of questions.
    """
    _check(guarantee, method, keys_delta, questions, attention)
    delta = (guarantee.delta - keys_delta) * (1 - RESERVE)
    if method == Method.HORIZON:
        horizon = _horizon_of(guarantee, questions, attention)
        kinds = horizon.kinds
        scale = _within_range(guarantee, horizon, horizon_scale(guarantee.epsilon, delta, horizon))
        return Calibration(
            *(guarantee, Method.HORIZON, keys_delta, scale, 0.0, Noise.GAUSSIAN, questions, kinds)
        )
    scale, delta2 = _laplace_scales(guarantee, method, delta)
    return Calibration(guarantee, Method(method), keys_delta, scale, delta2)


def sketch(
    guarantee: Guarantee,
    method: Method,
    keys_delta: float,
    questions: int,
    attention: Attention,
) -> Calibration:
    """About what `calibrate` returns, in no time: for comparing ways to divide δ.

    σ is interpolated between all of δ and a tenth of it for the charges, within 0.3%, where it
    takes long to compute.
    """
    if method != Method.HORIZON or _horizon_of(guarantee, questions, attention).ample:
        return calibrate(guarantee, method, keys_delta, questions, attention)
    most, least = (
        calibrate(guarantee, method, share * guarantee.delta, questions, attention)
        for share in (0.0, 0.9)
    )
    weight = math.log10(guarantee.delta / (guarantee.delta - keys_delta))
    scale = most.noise_scale ** (1 - weight) * least.noise_scale**weight
    return replace(most, keys_delta=keys_delta, noise_scale=scale)


def _horizon_of(guarantee: Guarantee, questions: int, attention: Attention) -> Horizon:
    kinds = CHANGES if attention == Attention.CHANGES else VALUES
    return Horizon(guarantee.contributions, questions, guarantee.neighbours, kinds)


def exact_scale(epsilon: float, delta: float, contributions: int, neighbours: Neighbours) -> float:
    """The smallest scale b of w for which the exact loss is within (ε, δ)."""

    def private(scale: float) -> bool:
        return charge_delta(epsilon, scale, contributions, neighbours) <= delta

    return smallest_scale(private)


def _laplace_scales(guarantee: Guarantee, method: Method, delta: float) -> tuple[float, float]:
    """The scale of w, rounded up, and Δ₂."""
    epsilon, k, neighbours = guarantee.epsilon, guarantee.contributions, guarantee.neighbours
    if method == Method.THEOREM:
        scales = theorem_scales(epsilon, delta, k, neighbours)
        # The paper proves its theorems for continuous noise; ours is discrete, and estimates
        # are published. Theorems 1 and 3 cover that from these two scales on.
        ours = (solve(epsilon, delta, k, neighbours) for solve in (exact_scale, fractional_scale))
        return round_up(max(10 * scales.delta1, *ours)), scales.delta2
    solve = exact_scale if method == Method.EXACT else fractional_scale
    scale = round_up(solve(epsilon, delta, k, neighbours))
    return scale, scale / 10 / _log_ratio(guarantee)


def _check(
    guarantee: Guarantee, method: Method, keys_delta: float, questions: int, attention: Attention
) -> None:
    if method not in tuple(Method):
        raise SettingError("calibration", method, f"use one of {', '.join(Method)}")
    if attention not in tuple(Attention):
        raise SettingError("attention", attention, f"use one of {', '.join(Attention)}")
    if not 0 <= keys_delta < guarantee.delta:
        raise SettingError(
            "delta of the key set", keys_delta, "it must be at least 0 and below delta"
        )
    if method == Method.HORIZON:
        check_whole("questions", questions, 1, MOST_QUESTIONS)
    elif attention == Attention.CHANGES:
        raise SettingError(
            "attention",
            attention,
            f"the {method} calibration covers every_step only; use that, "
            "or the horizon calibration",
        )


def _within_range(guarantee: Guarantee, horizon: Horizon, scale: float | None) -> float:
    if scale is None:
        raise SettingError(
            "epsilon",
            guarantee.epsilon,
            f"with delta {guarantee.delta:g}, {horizon.charges:,} contributions and "
            f"{horizon.questions:,} questions per user and period it needs noise of more than "
            f"{LARGEST_SIGMA:,.0f} users; raise epsilon or delta, lower contributions, or shorten "
            "the period",
        )
    return scale


def _log_ratio(guarantee: Guarantee) -> float:
    """Δ₁/Δ₂ = log((k/ε)·log(k/δ)) as in the paper, but at least 1 (large ε would give less)."""
    k = guarantee.contributions
    return math.log(max(math.e, (k / guarantee.epsilon) * math.log(k / guarantee.delta)))
