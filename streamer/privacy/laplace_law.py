"""The law of Laplace noise, Z = w + v̄.

w ~ Lap(b) and v ~ Lap(Δ₂) are discrete, v̄ = min(v, cap). Both tails of Z are sums of
geometric series and are computed as such, each from its small end, so that a
probability of 1e-12 is as exact as one of 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.law import NoiseLaw


@dataclass(frozen=True, slots=True)
class LaplaceLaw(NoiseLaw):
    """Probabilities of Z, given the scale b of w, the scale Δ₂ of v, and the cap on v."""

    scale: float
    small_scale: float
    cap: int

    @property
    def least_threshold(self) -> int:
        return self.cap + 1

    def at_least(self, bound: int) -> float:
        """Pr[Z >= bound]."""
        # w >= bound - v̄: a tail of w where v̄ <= bound, one minus the other tail elsewhere.
        ratio = 1 / (1 + math.exp(-1 / self.scale))
        tail = ratio * self._moment(1, -bound, None, bound)
        if bound >= self.cap:
            return tail
        missed = ratio * self._moment(-1, bound - 1, bound + 1, None)
        return tail + self._moment(0, 0, bound + 1, None) - missed

    def below(self, bound: int) -> float:
        """Pr[Z < bound]."""
        # w <= bound - 1 - v̄: a tail of w where v̄ >= bound - 1.
        ratio = 1 / (1 + math.exp(-1 / self.scale))
        tail = ratio * self._moment(-1, bound - 1, bound - 1, None)
        missed = ratio * self._moment(1, -bound, None, bound - 2)
        return tail + self._moment(0, 0, None, bound - 2) - missed

    def log_at_least(self, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([math.log(self.at_least(bound)) for bound in bounds.tolist()])

    def precise_at_least(self, bound: int) -> Decimal:
        """Pr[Z >= bound] to 50 digits, for bounds of at least the cap.

        There w is in its upper tail for every v̄, so this is r^bound/(1+r)·E[r^(-v̄)].
        """
        if bound < self.cap:
            raise ValueError(f"bound is {bound}: it must be at least the cap {self.cap}")
        with localcontext(prec=60):
            r = (-1 / Decimal(self.scale)).exp()
            s = (-1 / Decimal(self.small_scale)).exp()
            atom = (s / r) ** self.cap
            # v̄ from 0 up to the cap, below 0, and the mass collected at the cap.
            rising = (1 - s) * (1 - atom) / (1 - s / r)
            falling = (1 - s) * (s * r) / (1 - s * r)
            return r**bound / (1 + r) * (rising + falling + atom) / (1 + s)

    def _moment(self, direction: int, shift: int, least: int | None, most: int | None) -> float:
        """E[e^((direction·v̄ + shift)/b) ; least <= v̄ <= most]; None means no bound."""
        tilt = direction / self.scale
        offset = shift / self.scale
        decay = 1 / self.small_scale
        log_weight = math.log(-math.expm1(-decay)) - math.log1p(math.exp(-decay))
        low = -math.inf if least is None else least
        high = math.inf if most is None else most
        # v below 0, then from 0 up to the cap, then the mass collected at the cap.
        total = _geometric(decay + tilt, offset + log_weight, low, min(high, -1))
        total += _geometric(tilt - decay, offset + log_weight, max(low, 0), min(high, self.cap - 1))
        if low <= self.cap <= high:
            log_atom = -self.cap * decay - math.log1p(math.exp(-decay))
            total += math.exp(self.cap * tilt + offset + log_atom)
        return total


def _geometric(rate: float, offset: float, low: float, high: float) -> float:
    """Σ_{j=low..high} e^(rate·j + offset); the end where terms vanish may be infinite."""
    if low > high:
        return 0.0
    largest = math.exp(rate * (high if rate > 0 else low) + offset)
    if rate == 0:
        return largest * (high - low + 1)
    return largest * math.expm1(-abs(rate) * (high - low + 1)) / math.expm1(-abs(rate))
