"""The discrete Gaussian law to 50 digits, against sums and theta functions of mpmath."""

import math
from decimal import Decimal

import mpmath
import pytest

from streamer.privacy import gaussian_mass
from streamer.privacy.gaussian_mass import grid_step, precise_at_least, reach, weights

FIFTY_DIGITS = mpmath.mpf(10) ** -50


def total(sigma: float) -> mpmath.mpf:
    """Σ_x e^(-x²/2σ²), by Poisson's formula where the plain sum is long."""
    variance = mpmath.mpf(sigma) ** 2
    if sigma < 5:
        return mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * variance)))
    factor = mpmath.jtheta(3, 0, mpmath.exp(-2 * mpmath.pi**2 * variance))
    return mpmath.sqrt(2 * mpmath.pi * variance) * factor


def tail(sigma: float, bound: int) -> mpmath.mpf:
    """Pr[w >= bound], term by term."""
    double_variance = 2 * mpmath.mpf(sigma) ** 2
    last = math.ceil(math.sqrt(max(bound, 0) ** 2 + 300 * sigma**2))
    terms = (mpmath.exp(-(mpmath.mpf(x) ** 2) / double_variance) for x in range(bound, last))
    return mpmath.fsum(terms) / total(sigma)


def error(sigma: float, bound: int) -> mpmath.mpf:
    found = mpmath.mpf(str(precise_at_least(sigma, bound)))
    return abs(found / tail(sigma, bound) - 1)


@pytest.mark.parametrize(
    ("sigma", "bound"),
    [
        *((0.5, bound) for bound in (-3, 0, 1, 2, 7, 20)),
        *((7.0, bound) for bound in (-20, 1, 30, 280)),
        *((70.498, bound) for bound in (0, 452, 2819)),
        *((256.0, bound) for bound in (1, 1000)),
        *((256.001, bound) for bound in (1, 1000, 10_240)),
        *((600.59, bound) for bound in (-500, 4000, 24_000)),
    ],
)
def test_a_tail_is_the_sum_of_its_terms_to_50_digits(sigma, bound):
    with mpmath.workdps(80):
        assert error(sigma, bound) < FIFTY_DIGITS


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 8_000, 80_000])
def test_a_tail_is_the_sum_of_its_terms_over_a_coarse_grid_too(bound):
    with mpmath.workdps(80):
        assert error(2000.0, bound) < FIFTY_DIGITS


def test_the_comparison_notices_a_missing_correction(monkeypatch):
    coefficients = gaussian_mass._bernoulli()
    precise_at_least.cache_clear()
    monkeypatch.setattr(gaussian_mass, "_bernoulli", lambda: [*coefficients[:-8], *[0] * 8])
    with mpmath.workdps(80):
        assert error(600.59, 24_000) > FIFTY_DIGITS
    precise_at_least.cache_clear()


# Here the sum has too many terms. The integral from bound - 1/2 differs by the fraction
# (bound/σ²)²/24 and by terms of the order of its square.
@pytest.mark.parametrize("place", [0.5, 4.5, 9.0, 39.0])
def test_a_tail_of_the_largest_sigma_is_close_to_its_integral(place):
    sigma, bound = 1e6, int(place * 1e6)
    with mpmath.workdps(40):
        integral = mpmath.erfc((bound - mpmath.mpf(1) / 2) / (sigma * mpmath.sqrt(2))) / 2
        found = mpmath.mpf(str(precise_at_least(sigma, bound)))
        assert abs(found / integral - 1) < mpmath.mpf(place**2 + 1) / (12 * sigma**2)


@pytest.mark.parametrize("sigma", [0.5, 70.0, 1000.0, 1e6])
def test_both_sides_and_the_middle_make_one(sigma):
    with mpmath.workdps(80):
        middle = 1 / total(sigma)
        above = mpmath.mpf(str(precise_at_least(sigma, 1)))
        assert abs(2 * above + middle - 1) < FIFTY_DIGITS
        below = 1 - mpmath.mpf(str(precise_at_least(sigma, 0)))
        assert abs(below - above) < FIFTY_DIGITS


@pytest.mark.parametrize("sigma", [0.5, 0.52, 70.0, 1e6])
def test_a_bound_beyond_40_sigma_counts_as_one_of_40_sigma(sigma):
    farthest = precise_at_least(sigma, math.ceil(40 * sigma))
    assert precise_at_least(sigma, 10**12) == farthest
    assert 0 < farthest < Decimal("1e-347")


@pytest.mark.parametrize(
    ("sigma", "first", "step", "count"),
    [(0.5, -8, 1, 17), (70.0, 452, 1, 3000), (1e6, -13_418_496, 4096, 6600), (70.0, 5, 1, 1)],
)
def test_weights_along_a_grid_are_those_of_the_law(sigma, first, step, count):
    found = weights(sigma, first, step, count)
    assert len(found) == count
    with mpmath.workdps(80):
        for place in (0, count // 3, count // 2, count - 1):
            x = mpmath.mpf(first + place * step)
            ideal = mpmath.exp(-(x**2) / (2 * mpmath.mpf(sigma) ** 2))
            assert abs(mpmath.mpf(str(found[place])) / ideal - 1) < FIFTY_DIGITS


@pytest.mark.parametrize(
    ("sigma", "step"), [(0.5, 1), (256.0, 1), (256.1, 2), (512.0, 2), (513.0, 4), (1e6, 4096)]
)
def test_sigma_is_at_most_256_steps_and_more_than_128_unless_the_step_is_1(sigma, step):
    assert grid_step(sigma) == step


@pytest.mark.parametrize("sigma", [0.5, 7.0, 70.0])
@pytest.mark.parametrize("place", [0, 3, 40])
def test_what_is_beyond_the_reach_is_negligible(sigma, place):
    mode = math.floor(place * sigma)
    with mpmath.workdps(80):
        beyond = tail(sigma, reach(sigma, mode, 90)) / tail(sigma, mode)
        assert beyond <= mpmath.exp(-90)
