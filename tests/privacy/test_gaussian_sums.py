"""Sums of the discrete Gaussian agree with their definition, however small they are."""

import mpmath
import numpy as np
import pytest

from streamer.privacy.gaussian_sums import GaussianSums
from tests.privacy.precise_gaussian import PreciseGaussian

# Below and above the σ from which on sums are integrated, and at it.
SIGMAS = [0.5, 0.7, 7.9, 8.0, 16.0, 70.498]
PLACES = [-9.3, -3.0, -0.4, 0.0, 0.2, 1.7, 4.0, 9.0, 26.0, 37.0]


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(50):
        yield


@pytest.mark.parametrize("sigma", SIGMAS)
def test_tails_have_a_relative_error_below_1e_12_down_to_1e_297(sigma):
    numbers = np.unique(np.round(sigma * np.array(PLACES)))
    found, law = GaussianSums(sigma).log_at_least(numbers), PreciseGaussian(sigma)
    for x, log in zip(numbers.tolist(), found.tolist(), strict=True):
        assert abs(mpmath.exp(log) / law.at_least(int(x)) - 1) < 1e-12


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_other_tail_is_not_lost_beside_1(sigma):
    """log Pr[w >= x] for a negative x is minus the small tail: its own relative error counts."""
    numbers = -np.unique(np.round(sigma * np.array([1.0, 5.0, 20.0, 34.0])))
    found, law = GaussianSums(sigma).log_at_least(numbers), PreciseGaussian(sigma)
    for x, log in zip(numbers.tolist(), found.tolist(), strict=True):
        missing = law.at_least(1 - int(x))
        assert abs(-log / mpmath.log1p(missing / (1 - missing)) - 1) < 1e-12


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("shift", [0.0, 0.5, 0.91])
def test_sums_that_begin_between_integers_are_exact_as_well(sigma, shift):
    numbers = np.round(sigma * np.array(PLACES)) + shift
    found, law = GaussianSums(sigma).log_tilted(numbers), PreciseGaussian(sigma)
    for z, log in zip(numbers.tolist(), found.tolist(), strict=True):
        assert abs(mpmath.exp(log) * law.total / law.sum_from(z) - 1) < 1e-12


@pytest.mark.parametrize("sigma", SIGMAS)
def test_steps_are_exact_relative_to_themselves(sigma):
    """log U(x+1)/U(x) is tiny on one side and large on the other."""
    numbers = np.unique(np.round(sigma * np.array(PLACES)))
    found, law = GaussianSums(sigma).log_step(numbers), PreciseGaussian(sigma)
    for x, log in zip(numbers.tolist(), found.tolist(), strict=True):
        hazard = law.mass(int(x)) / law.at_least(int(x))
        assert abs(log / mpmath.log1p(-hazard) - 1) < 1e-12


@pytest.mark.parametrize("sigma", [1000.3, 1e6, 3e8])
def test_a_large_sigma_has_the_tails_of_a_continuous_gaussian_and_their_corrections(sigma):
    """The sum is ∫ + f/2 - f′/12 + f‴/720 - …: with four terms exact to 1e-12 for such a σ."""
    for x in (1.0, 3.3, 12.0, 36.0):
        bound = round(x * sigma)
        z = mpmath.mpf(bound) / sigma
        first = mpmath.exp(-(z**2) / 2)
        total = sigma * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(z / mpmath.sqrt(2)) + first / 2
        total += first * z / (12 * sigma) - first * (z**3 - 3 * z) / (720 * mpmath.mpf(sigma) ** 3)
        exact = total / (sigma * mpmath.sqrt(2 * mpmath.pi))
        found = float(GaussianSums(sigma).log_at_least(np.array([float(bound)]))[0])
        assert abs(mpmath.exp(found) / exact - 1) < 3e-12


@pytest.mark.parametrize("sigma", [0.5, 70.5, 1e6])
def test_the_ends_of_the_line(sigma):
    sums, ends = GaussianSums(sigma), np.array([-np.inf, np.inf])
    assert sums.log_at_least(ends).tolist() == [0.0, -np.inf]
    assert sums.log_tilted(ends).tolist() == [0.0, -np.inf]
    assert sums.log_step(ends).tolist() == [0.0, -np.inf]


@pytest.mark.parametrize("sigma", [0.5, 2.0, 7.9, 8.0, 333.0])
def test_steps_fall_and_tilted_sums_fall(sigma):
    numbers = np.arange(-round(12 * sigma) - 3.0, round(12 * sigma) + 3.0)
    sums = GaussianSums(sigma)
    assert np.all(np.diff(sums.log_step(numbers)) <= 0)
    assert np.all(np.diff(sums.log_tilted(numbers + 0.3)) <= 1e-15)


def test_a_mass_is_the_difference_of_two_tails():
    sums, numbers = GaussianSums(7.3), np.arange(-40.0, 40.0)
    tails = np.exp(sums.log_at_least(numbers))
    np.testing.assert_allclose(
        np.exp(sums.log_mass(numbers[:-1])), tails[:-1] - tails[1:], rtol=0, atol=1e-15
    )
