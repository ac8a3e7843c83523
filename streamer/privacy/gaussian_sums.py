"""Sums of a discrete Gaussian of parameter σ, vectorised and exact far into its tails.

All sums are of e^(-z²/2σ²) over z, z+1, z+2, …, for a real z: the tail of the noise where z is
whole, and the tilted sums of the privacy loss where it is not. A sum is its first term times
a ratio between 1 and 1 + 1.26σ. The ratio is computed, so a sum of 1e-300 has the same
relative error as one of 1/2 (about 1e-14, docs/privacy.md, 6.5).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SMALLEST_SIGMA = 0.5
LARGEST_SIGMA = 1e6
"""The range of σ for noise. Sums of many answers have a larger σ, for which all of this holds."""
# From here on the Euler-Maclaurin series is used, where terms fall slowly enough for it.
_SMOOTH = 8.0
_EXPONENT = 42.0
"""Terms below e^-42 of the first one are left out."""
# B₂ₙ/(2n)!, n = 1, 2, …
_BERNOULLI = tuple(
    number / math.factorial(2 * place)
    for place, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), start=1
    )
)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


class GaussianSums:
    """The sums for one σ of at least 0.5. Arguments may be infinite."""

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma
        # Poisson's summation; for σ >= 0.5 the third correction is below e^-44.
        waves = sum(math.exp(-2 * (math.pi * sigma * wave) ** 2) for wave in (1, 2))
        self.log_total = math.log(sigma * math.sqrt(2 * math.pi) * (1 + 2 * waves))

    def log_mass(self, numbers: Numbers) -> Numbers:
        """log Pr[w = x]."""
        return np.asarray(-((numbers / self.sigma) ** 2) / 2 - self.log_total)

    def log_at_least(self, numbers: Numbers) -> Numbers:
        """log Pr[w >= x] for whole x."""
        far = self._log_sum_above(np.maximum(numbers, 1 - numbers)) - self.log_total
        return np.where(numbers > 0, far, np.log1p(-np.exp(far)))

    def log_step(self, numbers: Numbers) -> Numbers:
        """log(Pr[w >= x+1] / Pr[w >= x]) for whole x; it falls in x, because w is log-concave."""
        # Pr[w = x | w >= x]
        body = np.minimum(numbers, 0.0)
        log_hazards = np.where(
            numbers > 0,
            -self._log_ratio(np.maximum(numbers, 0.0)),
            self.log_mass(body) - self.log_at_least(body),
        )
        hazards = np.exp(log_hazards)
        # Where nearly all of the tail is its first term, 1 - hazard would cancel.
        steep = hazards > 0.5
        steps = np.log1p(-np.where(steep, 0.0, hazards))
        if steep.any():
            far = numbers[steep]
            ratios = self._log_ratio(far + 1) - self._log_ratio(far)
            steps[steep] = ratios - (2 * far + 1) / (2 * self.sigma**2)
        return np.asarray(steps)

    def log_tilted(self, numbers: Numbers) -> Numbers:
        """log of the sum over z, z+1, … for a real z, divided by the sum over all integers."""
        above = self._log_sum_above(np.where(numbers > 0, numbers, 1 - numbers))
        log_all = self._log_all(numbers)
        body = log_all + np.log1p(-np.exp(np.minimum(above - log_all, 0.0)))
        return np.asarray(np.where(numbers > 0, above, body) - self.log_total)

    def _log_all(self, numbers: Numbers) -> Numbers:
        """log of the sum over z + all integers: nearly, and at most, that for a whole z."""
        phases = 2 * math.pi * np.where(np.isfinite(numbers), numbers, 0.0)
        waves = 1 + 2 * sum(
            math.exp(-2 * (math.pi * self.sigma * wave) ** 2) * np.cos(wave * phases)
            for wave in (1, 2)
        )
        return np.asarray(np.log(self.sigma * math.sqrt(2 * math.pi) * waves))

    def _log_sum_above(self, numbers: Numbers) -> Numbers:
        """log Σ_{j>=0} e^(-(z+j)²/2σ²) for z >= 0."""
        return np.asarray(self._log_ratio(numbers) - (numbers / self.sigma) ** 2 / 2)

    def _log_ratio(self, numbers: Numbers) -> Numbers:
        """log Σ_{j>=0} e^(-(2zj + j²)/2σ²) for z >= 0: the sum divided by its first term."""
        slopes = np.minimum(numbers / self.sigma**2, _EXPONENT)
        if self.sigma < _SMOOTH:
            return np.log(self._summed(slopes))
        steep = slopes > 1
        ratios = self._integrated(np.where(steep, 1.0, slopes))
        if steep.any():
            ratios[steep] = self._summed(slopes[steep])
        return np.log(ratios)

    def _summed(self, slopes: Numbers) -> Numbers:
        """Term by term: z/σ² is at least 1, or σ is small."""
        least = float(slopes.min(initial=_EXPONENT))
        root = math.hypot(least, math.sqrt(2 * _EXPONENT) / self.sigma)
        places = np.arange(math.ceil(self.sigma**2 * (root - least)) + 1, dtype=np.float64)
        exponents = places * slopes[..., None] + places**2 / (2 * self.sigma**2)
        return np.asarray(np.exp(-exponents).sum(axis=-1))

    def _integrated(self, slopes: Numbers) -> Numbers:
        """Euler-Maclaurin: the integral, half the first term, and eight corrections.

        The n-th derivative of e^(-xs - s²/2) at 0 is (-1)ⁿ·Heₙ(x).
        """
        x, width = slopes * self.sigma, 1 / self.sigma
        total = self.sigma * _mills(x) + 0.5
        before, hermite, power = np.ones_like(x), x, width
        for place, factor in enumerate(_BERNOULLI):
            total += factor * power * hermite
            for order in (2 * place + 1, 2 * place + 2):
                before, hermite = hermite, x * hermite - order * before
            power *= width**2
        return total


def _mills(x: Numbers) -> Numbers:
    """∫_0^∞ e^(-xs - s²/2) ds for x >= 0, by Gauss-Legendre where the integrand is not tiny."""
    lengths = np.sqrt(x**2 + 2 * _EXPONENT) - x
    places = (_NODES + 1) / 2 * lengths[..., None]
    values = np.exp(-places * (x[..., None] + places / 2))
    return np.asarray((values * _WEIGHTS).sum(axis=-1) * lengths / 2)
