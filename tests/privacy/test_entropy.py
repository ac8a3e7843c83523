"""The relative entropy of two coins, and the bound that it is used for."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy.entropy import coin_entropy

repeatable = settings(max_examples=100, deadline=None, derandomize=True, database=None)
SHARES = st.floats(0, 1)
PROBABILITIES = st.floats(1e-12, 1 - 1e-12)


def precise(share, probability):
    with mpmath.workdps(50):
        pairs = [(share, probability), (1 - mpmath.mpf(share), 1 - mpmath.mpf(probability))]
        return float(sum(p * mpmath.log(p / mpmath.mpf(q)) for p, q in pairs if p > 0))


@repeatable
@given(SHARES, PROBABILITIES)
def test_it_is_the_relative_entropy_to_the_precision_of_floats(share, probability):
    assert coin_entropy(share, probability) == pytest.approx(
        precise(share, probability), rel=1e-9, abs=1e-13
    )


@repeatable
@given(PROBABILITIES)
def test_a_coin_does_not_differ_from_itself(probability):
    assert coin_entropy(probability, probability) == 0


@pytest.mark.parametrize(("share", "side"), [(0, 0.0), (1, 1.0)])
def test_a_coin_with_one_side_agrees_with_itself(share, side):
    assert coin_entropy(share, side) == 0


@pytest.mark.parametrize(("share", "side"), [(0.5, 0.0), (0.5, 1.0), (1, 0.0), (0, 1.0)])
def test_a_coin_with_one_side_never_shows_the_other(share, side):
    assert coin_entropy(share, side) == math.inf


@pytest.mark.parametrize("tosses", [1, 7, 60])
@pytest.mark.parametrize("probability", [0.01, 0.3, 0.5, 0.9])
def test_both_tails_of_the_binomial_law_stay_below_the_bound(tosses, probability):
    mass = [
        math.comb(tosses, n) * probability**n * (1 - probability) ** (tosses - n)
        for n in range(tosses + 1)
    ]
    for successes in range(tosses + 1):
        share = successes / tosses
        tail = sum(mass[successes:]) if share >= probability else sum(mass[: successes + 1])
        assert tail <= math.exp(-tosses * coin_entropy(share, probability)) * (1 + 1e-9)
