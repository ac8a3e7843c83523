"""The discrete Gaussian by its definition, term by term, with 50 digits and more."""

from functools import cache

import mpmath


class PreciseGaussian:
    """Masses and tails of Pr[x] ∝ e^(-x²/2σ²) for σ up to a few thousand."""

    def __init__(self, sigma: float) -> None:
        self.sigma = mpmath.mpf(sigma)
        self.weight = cache(self._weight)
        self.sum_from = cache(self._sum_from)
        self.total = 2 * self.sum_from(1) + 1

    def _weight(self, x) -> mpmath.mpf:
        return mpmath.exp(-((x / self.sigma) ** 2) / 2)

    def _sum_from(self, z) -> mpmath.mpf:
        """Σ e^(-x²/2σ²) over x = z, z+1, …"""
        z = mpmath.mpf(z)
        if z < 0:
            # As many whole steps as lead to the other side, one by one from there.
            steps = int(mpmath.ceil(-z))
            near = min(steps, int(14 * self.sigma) + 20)
            return self.sum_from(z + steps) + sum(
                self.weight(z + steps - place) for place in range(1, near + 1)
            )
        total, x, first = mpmath.mpf(0), z, self.weight(z)
        while True:
            term = self.weight(x)
            if term < first * mpmath.mpf(10) ** -(mpmath.mp.dps - 5):
                return total
            total += term
            x += 1

    def mass(self, x) -> mpmath.mpf:
        return self.weight(x) / self.total

    def at_least(self, x) -> mpmath.mpf:
        """1 less the other tail where it is the larger one; digits are lost only far beyond."""
        return self.sum_from(x) / self.total if x > 0 else 1 - self.sum_from(1 - x) / self.total

    def at_most(self, x) -> mpmath.mpf:
        return self.at_least(-x)
