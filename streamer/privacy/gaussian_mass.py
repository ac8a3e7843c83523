"""The discrete Gaussian law to 50 digits: Pr[x] ∝ e^(-x²/2σ²) on the integers.

The sampler's tables and the number of rare reports are computed from it. A large σ makes
millions of integers matter, so sums are taken over a coarser grid and corrected exactly.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache

from streamer.privacy.cut_table import PRECISE

FARTHEST = 40
"""How many σ a bound can be above 0. Pr[w >= 40σ] is below 10⁻³⁴⁷."""

# σ is at most this many grid steps, and more than half as many unless the step is 1.
_FINEST = 256
_CORRECTIONS = 24
# e⁻¹⁴⁰ < 10⁻⁶⁰: terms that are smaller than the first one by this are left out of a sum.
_LOG_NEGLIGIBLE = 140


@lru_cache(maxsize=64)
def precise_at_least(sigma: float, bound: int) -> Decimal:
    """Pr[w >= bound] to 50 digits.

    A bound beyond 40σ counts as one of 40σ: neither ever occurs.
    """
    with localcontext(PRECISE):
        if bound <= 0:
            return 1 - precise_at_least(sigma, 1 - bound)
        tail = _tail(sigma, min(bound, math.ceil(FARTHEST * sigma)))
        return tail / (1 + 2 * _tail(sigma, 1))


def weights(sigma: float, first: int, step: int, count: int) -> list[Decimal]:
    """e^(-x²/2σ²) at x = first, first + step, …: `count` values.

    The ratio of neighbours has a constant ratio itself, so a value costs two
    multiplications. The n-th value has an error of n² units in its 60th digit.
    """
    with localcontext(PRECISE):
        double_variance = 2 * Decimal(sigma) ** 2
        value = (-(Decimal(first) ** 2) / double_variance).exp()
        ratio = (-step * (2 * first + step) / double_variance).exp()
        decline = (-2 * step * step / double_variance).exp()
        values = [value]
        for _ in range(count - 1):
            values.append(values[-1] * ratio)
            ratio *= decline
        return values


def grid_step(sigma: float) -> int:
    """The smallest power of two that is at least σ/256."""
    return 1 << (math.ceil(sigma / _FINEST) - 1).bit_length()


def reach(sigma: float, mode: int, log_mass: int) -> int:
    """An integer x with Pr[w >= x | w >= mode] <= e^(-log_mass), for mode >= 0.

    The ratio of neighbours falls, so Pr[w >= x]/Pr[x] does, and the conditional probability
    is at most Pr[x]/Pr[mode] = e^(-(x² - mode²)/2σ²).
    """
    return math.ceil(math.sqrt(mode**2 + 2 * log_mass * sigma**2)) + 1


def _tail(sigma: float, bound: int) -> Decimal:
    """Σ_{x >= bound} e^(-x²/2σ²), for bound >= 1.

    The Euler-Maclaurin formula for the sum over all integers, minus h times the formula for
    the sum over every h-th one: the integral cancels, and the odd derivatives at the bound
    remain. f⁽ⁿ⁾(x) = -Heₙ(x/σ)·σ⁻ⁿ·f(x) for odd n, with Hermite polynomials.
    """
    step = grid_step(sigma)
    count = -(-(reach(sigma, bound, _LOG_NEGLIGIBLE) - bound) // step)
    values = weights(sigma, bound, step, count)
    place = bound / Decimal(sigma)
    even, odd = Decimal(1), place
    correction = Decimal(1 - step) / 2
    for order, coefficient in zip(range(1, 2 * _CORRECTIONS, 2), _bernoulli(), strict=True):
        derivative = -odd / Decimal(sigma) ** order
        correction -= coefficient * (1 - step ** (order + 1)) * derivative
        even = place * odd - order * even
        odd = place * even - (order + 1) * odd
    return step * sum(values) + correction * values[0]


@cache
def _bernoulli() -> list[Decimal]:
    """B₂ₖ/(2k)! for k from 1: the coefficients of x/(eˣ - 1)."""
    found = [Fraction(1)]
    for n in range(2, 2 * _CORRECTIONS + 2):
        found.append(-sum((x / math.factorial(n - j) for j, x in enumerate(found)), Fraction(0)))
    return [PRECISE.divide(x.numerator, x.denominator) for x in found[2::2]]
