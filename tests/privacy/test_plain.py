"""Answers without prices: the exact loss of several Gaussian answers together."""

import math

import mpmath
import numpy as np
import pytest

from streamer.privacy.gaussian import gaussian_delta
from streamer.privacy.plain import _deviation, plain_delta, plain_epsilon, plain_scale
from tests.privacy.precise_gaussian import PreciseGaussian


def convolved_masses(sigma: float, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """The law of the sum of so many independent draws, by convolution: numbers and masses."""
    reach = math.ceil(14 * sigma)
    each = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    each /= each.sum()
    masses = np.ones(1)
    for _ in range(answers):
        masses = np.convolve(masses, each)
    return np.arange(len(masses)) - answers * reach, masses


def convolved_delta(epsilon: float, sigma: float, answers: int) -> float:
    """δ(ε), term by term."""
    numbers, masses = convolved_masses(sigma, answers)
    # Without the user; with the user the sum is larger by the number of answers.
    losses = (2 * numbers + answers) / (2 * sigma**2)
    gain = losses > epsilon
    return float(np.sum(masses[gain] * -np.expm1(epsilon - losses[gain])))


@pytest.mark.parametrize("answers", [1, 2, 7, 40])
@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [(1.0, 9.0), (0.1, 30.0), (3.0, 6.5), (4.0, 1.2), (20.0, 0.5), (2.0, 1.7), (9.0, 2.0)],
)
def test_delta_is_that_of_the_convolution(epsilon, sigma, answers):
    exact = convolved_delta(epsilon, sigma, answers)
    found = plain_delta(epsilon, sigma, answers)
    assert exact - 1e-14 <= found
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.2])
@pytest.mark.parametrize("answers", [2, 3, 10])
def test_a_sum_of_answers_is_as_close_to_a_single_one_as_lemma_6_says(sigma, answers):
    numbers, masses = convolved_masses(sigma, answers)
    middle = abs(numbers) <= 4 * sigma * math.sqrt(answers)
    ratios = masses[middle] * np.exp((numbers[middle] / sigma) ** 2 / (2 * answers))
    spread = math.log(ratios.max() / ratios.min())
    deviation = _deviation(sigma, answers)
    if deviation < 1:
        assert spread <= 2 * math.atanh(deviation)
    assert spread > 1e-11  # so the law of a single one would be wrong


def test_two_answers_with_little_noise_have_the_delta_of_their_definition():
    sigma, epsilon = 0.6, 5.0
    with mpmath.workdps(40):
        law = PreciseGaussian(sigma)
        gains = [
            law.mass(x - 1) * law.mass(y - 1) - mpmath.exp(epsilon) * law.mass(x) * law.mass(y)
            for x in range(-12, 13)
            for y in range(-12, 13)
        ]
        exact = float(mpmath.fsum(gain for gain in gains if gain > 0))
    found = plain_delta(epsilon, sigma, 2)
    assert exact <= found == pytest.approx(exact, rel=1e-10)


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


@pytest.mark.parametrize("answers", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_little_noise_is_nearly_that_of_a_continuous_gaussian_too(answers, delta):
    sigma = plain_scale(4.0, delta, answers)
    assert plain_delta(4.0, sigma, answers) <= delta
    assert gaussian_delta(4.0, 1.02 * math.sqrt(answers) / sigma) > delta
    assert plain_epsilon(delta, sigma, answers) == pytest.approx(4.0, rel=1e-3)


def test_no_epsilon_is_too_large():
    sigma = plain_scale(100.0, 1e-9, 60)
    assert plain_epsilon(1e-9, sigma, 60) == pytest.approx(100.0, rel=1e-3)
    assert plain_epsilon(1e-9, 10.0, 10**6) == pytest.approx(5598, rel=0.01)


def test_of_very_many_answers_with_little_noise_nothing_is_claimed():
    assert plain_delta(15000.0, 1.5, 1 << 16) < 0.1
    assert plain_delta(15000.0, 1.5, 1 + (1 << 16)) == 1
    assert plain_epsilon(1e-6, 1.5, 1 << 17) == math.inf


def test_a_sigma_beyond_the_sampler_is_not_returned():
    assert plain_scale(1e-7, 1e-6, 10) is None
