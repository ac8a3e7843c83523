"""Answers without prices: the exact loss of several Gaussian answers together."""

import math

import mpmath
import numpy as np
import pytest

from streamer.privacy.gaussian import gaussian_delta
from streamer.privacy.plain import plain_delta, plain_epsilon, plain_scale
from tests.privacy.precise_gaussian import PreciseGaussian


def convolved_delta(epsilon: float, sigma: float, answers: int) -> float:
    """δ(ε) of the sum of so many independent draws, by convolution and term by term."""
    reach = math.ceil(14 * sigma)
    each = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    each /= each.sum()
    masses = np.ones(1)
    for _ in range(answers):
        masses = np.convolve(masses, each)
    numbers = np.arange(len(masses)) - answers * reach
    # Without the user; with the user the sum is larger by the number of answers.
    losses = (2 * numbers + answers) / (2 * sigma**2)
    gain = losses > epsilon
    return float(np.sum(masses[gain] * -np.expm1(epsilon - losses[gain])))


@pytest.mark.parametrize("answers", [1, 2, 7, 40])
@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 9.0), (0.1, 30.0), (3.0, 6.5)])
def test_delta_is_that_of_the_convolution(epsilon, sigma, answers):
    exact = convolved_delta(epsilon, sigma, answers)
    found = plain_delta(epsilon, sigma, answers)
    assert exact - 1e-14 <= found
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-12)


def test_one_answer_has_the_delta_of_its_definition():
    sigma, epsilon = 8.0, 0.5
    with mpmath.workdps(40):
        law = PreciseGaussian(sigma)
        gains = [law.mass(y - 1) - mpmath.exp(epsilon) * law.mass(y) for y in range(-100, 101)]
        exact = float(mpmath.fsum(gain for gain in gains if gain > 0))
    assert plain_delta(epsilon, sigma, 1) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("answers", [2, 48, 2880])
def test_the_noise_is_that_of_a_continuous_gaussian(answers):
    sigma = plain_scale(1.0, 1e-6, answers)
    assert plain_delta(1.0, sigma, answers) <= 1e-6
    assert gaussian_delta(1.0, math.sqrt(answers) / sigma) == pytest.approx(1e-6, rel=0.02)
    assert plain_epsilon(1e-6, sigma, answers) == pytest.approx(1.0, rel=1e-4)


def test_a_sigma_that_the_proof_does_not_cover_proves_nothing():
    assert plain_delta(1.0, 6.0, 2) < 1.0
    assert plain_delta(1.0, 5.0, 2) == plain_delta(50.0, 6.0, 2) == 1.0
    assert plain_epsilon(1e-6, 5.0, 2) == math.inf


def test_a_sigma_beyond_the_sampler_is_not_returned():
    assert plain_scale(1e-7, 1e-6, 10) is None
