"""The law of Gaussian noise, Z = w."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.gaussian_mass import precise_at_least
from streamer.privacy.gaussian_sums import GaussianSums
from streamer.privacy.law import NoiseLaw


@dataclass(frozen=True, slots=True)
class GaussianLaw(NoiseLaw):
    """Probabilities of a discrete Gaussian: Pr[x] is proportional to e^(-x²/2σ²)."""

    sigma: float

    @property
    def least_threshold(self) -> int:
        return 1

    def at_least(self, bound: int) -> float:
        return math.exp(float(self.log_at_least(np.array([bound]))[0]))

    def below(self, bound: int) -> float:
        # The law is symmetric: Z < bound is -Z >= 1 - bound.
        return self.at_least(1 - bound)

    def log_at_least(self, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        return _sums(self.sigma).log_at_least(bounds.astype(np.float64))

    def precise_at_least(self, bound: int) -> Decimal:
        return precise_at_least(self.sigma, bound)


@lru_cache(maxsize=64)
def _sums(sigma: float) -> GaussianSums:
    return GaussianSums(sigma)
