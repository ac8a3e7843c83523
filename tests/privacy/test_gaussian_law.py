"""The law of Gaussian noise: tails, bounds and margins."""

import mpmath
import numpy as np
import pytest

from streamer.privacy.gaussian_law import GaussianLaw
from tests.privacy.precise_gaussian import PreciseGaussian

SIGMAS = [0.5, 1.3, 16.0, 70.498]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_at_least_and_below_are_the_two_sides_of_a_bound(sigma):
    law = GaussianLaw(sigma)
    with mpmath.workdps(40):
        precise = PreciseGaussian(sigma)
        for bound in (-round(8 * sigma), -1, 0, 1, round(3 * sigma), round(20 * sigma)):
            assert law.at_least(bound) == pytest.approx(
                float(precise.at_least(bound)), rel=1e-12, abs=0
            )
            assert law.below(bound) == pytest.approx(
                float(precise.at_most(bound - 1)), rel=1e-12, abs=0
            )


@pytest.mark.parametrize("sigma", [0.5, 3.1, 70.498])
@pytest.mark.parametrize("place", [0.5, 1.0, 6.0, 20.0])
def test_the_precise_tail_has_50_digits(sigma, place):
    bound = max(1, round(place * sigma) + 1)
    found = GaussianLaw(sigma).precise_at_least(bound)
    with mpmath.workdps(75):
        exact = PreciseGaussian(sigma).at_least(bound)
        assert abs(mpmath.mpf(str(found)) / exact - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("sigma", [*SIGMAS, 1e6])
@pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-9, 1e-200])
def test_bounds_are_the_tightest_integers(sigma, probability):
    law = GaussianLaw(sigma)
    smallest, largest = law.smallest_bound(probability), law.largest_bound(probability)
    assert law.at_least(smallest) <= probability < law.at_least(smallest - 1)
    assert law.below(largest) <= probability < law.below(largest + 1)


@pytest.mark.parametrize("sigma", [5.0, 70.498, 1e6])
def test_the_margin_is_about_two_sigma(sigma):
    assert GaussianLaw(sigma).margin() == pytest.approx(1.959964 * sigma, abs=1)


def test_many_bounds_at_once_are_the_same_as_one_by_one():
    law, bounds = GaussianLaw(12.5), np.arange(-60, 200)
    each = [law.at_least(bound) for bound in bounds.tolist()]
    np.testing.assert_allclose(np.exp(law.log_at_least(bounds)), each, rtol=1e-13)
