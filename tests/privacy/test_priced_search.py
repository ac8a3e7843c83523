"""The calibration for priced answers: reference values, proofs again, the best adversary."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy import priced_search
from streamer.privacy.gaussian_sums import LARGEST_SIGMA, SMALLEST_SIGMA, GaussianSums
from streamer.privacy.priced import Distances, Growth, Horizon
from streamer.privacy.priced_search import priced_delta, priced_epsilon, priced_scale
from streamer.privacy.prices import CHANGES, LOUD, VALUES, Questions
from streamer.privacy.terms import Neighbours
from tests.privacy.gaussian_adversary import GaussianAdversary
from tests.privacy.test_priced import Answers

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
LOUDLY = Questions(loud=LOUD)
repeatable = settings(max_examples=8, deadline=None, derandomize=True, database=None)

# k, M, ε, δ, neighbours, kinds and the least σ of an independent computation (docs/privacy.md).
REFERENCE = [
    (1, 24, 1.0, 1e-6, REPLACE, VALUES, 17.309),
    (10, 24, 1.0, 1e-6, REPLACE, VALUES, 27.279),
    (10, 24, 1.0, 1e-6, REPLACE, CHANGES, 31.394),
    (10, 168, 1.0, 1e-6, ADD_REMOVE, VALUES, 36.072),
    (10, 168, 1.0, 1e-6, REPLACE, VALUES, 43.827),
    (10, 168, 1.0, 1e-6, REPLACE, CHANGES, 50.741),
    (3, 1440, 1.0, 1e-6, REPLACE, VALUES, 45.192),
    (3, 1440, 1.0, 1e-6, REPLACE, CHANGES, 52.300),
    (5, 1440, 1.0, 1e-6, REPLACE, CHANGES, 58.902),
    (10, 1440, 1.0, 1e-6, ADD_REMOVE, VALUES, 53.530),
    (10, 1440, 1.0, 1e-6, ADD_REMOVE, CHANGES, 54.049),
    (10, 1440, 1.0, 1e-6, REPLACE, VALUES, 62.125),
    (10, 1440, 1.0, 1e-6, REPLACE, LOUDLY, 62.875),
    (10, 1440, 1.0, 1e-6, REPLACE, CHANGES, 70.498),
    (30, 1440, 1.0, 1e-6, REPLACE, VALUES, 88.252),
    (30, 1440, 1.0, 1e-6, REPLACE, CHANGES, 96.375),
    (100, 1440, 1.0, 1e-6, REPLACE, VALUES, 130.560),
    (1000, 1440, 1.0, 1e-6, REPLACE, VALUES, 233.01),
    (10, 7200, 1.0, 1e-6, REPLACE, CHANGES, 84.787),
    (10, 10080, 1.0, 1e-6, REPLACE, VALUES, 76.889),
    (10, 10080, 1.0, 1e-6, REPLACE, CHANGES, 87.562),
    (10, 100_000, 1.0, 1e-6, REPLACE, VALUES, 92.017),
    (10, 1440, 0.5, 1e-8, REPLACE, VALUES, 146.14),
    (10, 1440, 0.1, 1e-6, REPLACE, VALUES, 532.65),
    (10, 1440, 0.1, 1e-6, REPLACE, CHANGES, 600.59),
    (10, 1440, 4.0, 1e-6, REPLACE, VALUES, 17.649),
    (10, 1440, 4.0, 1e-6, REPLACE, CHANGES, 20.115),
    (10, 1440, 1.0, 1e-8, REPLACE, VALUES, 75.749),
    (10, 1440, 1.0, 1e-8, REPLACE, CHANGES, 86.621),
    (5, 1440, 1.0, 1e-8, REPLACE, CHANGES, 73.247),
]


@pytest.mark.parametrize(("k", "m", "epsilon", "delta", "neighbours", "kinds", "sigma"), REFERENCE)
def test_sigma_is_the_reference_value(k, m, epsilon, delta, neighbours, kinds, sigma):
    found = priced_scale(epsilon, delta, Horizon(k, m, neighbours, kinds))
    assert 0.998 * sigma <= found <= 1.002 * sigma


# 1. The proof once more, at the σ that is returned

PROVEN = [
    (1.0, 1e-6, Horizon(10, 24, REPLACE)),
    (3.0, 1e-9, Horizon(2, 50, REPLACE, CHANGES)),
    (4.0, 1e-6, Horizon(10, 1440, REPLACE, CHANGES)),
    (2.0, 1e-4, Horizon(1, 12, ADD_REMOVE, LOUDLY)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "horizon"), PROVEN, ids=str)
def test_delta_computed_again_with_40_digits_is_within_the_wanted_one(epsilon, delta, horizon):
    """Every order and every H is valid: here is one choice whose (A), (B) and (13) are recomputed.

    The largest sum over all d is looked for in the whole range where it can be, and far outside.
    """
    sigma = priced_scale(epsilon, delta, horizon)
    objective = priced_search._log_delta_at(epsilon)
    middle = math.log(-2 * math.log(delta) / epsilon)
    for way in horizon.ways:
        wide = priced_search._Orders(middle - 2, middle + 1, 24)
        choice = priced_search._search(sigma, way, horizon, objective, wide)
        with mpmath.workdps(40):
            order, cost = mpmath.mpf(choice.order), mpmath.mpf(0)
            for direction, rate in zip(way, choice.rates, strict=True):
                answers = Answers(sigma, choice.order, direction, horizon.kinds)
                grid = Distances.grid(GaussianSums(sigma), choice.order)
                growth = Growth(grid, choice.order, direction, horizon.kinds)
                parts = growth._points.excess(rate)
                worst = int(grid.numbers[int(parts.argmax())])
                step = int(grid.numbers[1] - grid.numbers[0])
                near = range(worst - step, worst + step + 1)
                far = [round(place * sigma) for place in (-40, -9, -4, -1, 0, 1, 2, 3, 5, 9, 40)]
                g = mpmath.log(max(1, *(answers.largest(d, rate) for d in (*near, *far))))
                cost += horizon.charges * mpmath.mpf(rate) + horizon.questions * g
            log_delta = cost - (order - 1) * epsilon + (order - 1) * mpmath.log(1 - 1 / order)
            log_delta -= mpmath.log(order)
            assert log_delta <= math.log(delta) + 2e-3
            bound = priced_search._bound(sigma, way, horizon, objective, choice)
            assert log_delta <= bound


@pytest.mark.parametrize(("epsilon", "delta", "horizon"), PROVEN, ids=str)
def test_the_returned_sigma_is_private_and_a_hundredth_less_is_not_proven(epsilon, delta, horizon):
    sigma = priced_scale(epsilon, delta, horizon)
    assert sigma == round(sigma, 6)
    assert priced_delta(epsilon, sigma, horizon) <= delta * 1.002
    assert priced_delta(epsilon, 0.99 * sigma, horizon) > delta


@pytest.mark.parametrize(("epsilon", "delta", "horizon"), PROVEN, ids=str)
def test_epsilon_and_delta_are_two_sides_of_one_bound(epsilon, delta, horizon):
    sigma = priced_scale(epsilon, delta, horizon)
    assert priced_epsilon(delta, sigma, horizon) == pytest.approx(epsilon, rel=1e-3)


# 2. The best adversary

GAMES = [
    (3.0, 1e-6, Horizon(2, 6, REPLACE)),
    (3.0, 1e-6, Horizon(2, 6, ADD_REMOVE)),
    (3.0, 1e-6, Horizon(2, 6, REPLACE, CHANGES)),
    (3.0, 1e-6, Horizon(2, 6, ADD_REMOVE, CHANGES)),
    (3.0, 1e-6, Horizon(2, 8, ADD_REMOVE, LOUDLY)),
]


def attained(epsilon: float, sigma: float, horizon: Horizon) -> float:
    adversary = GaussianAdversary(epsilon, sigma, horizon.kinds)
    play = adversary.replace if horizon.neighbours == REPLACE else adversary.add_remove
    return play(horizon.charges, horizon.questions)


@pytest.mark.parametrize(("epsilon", "delta", "horizon"), GAMES, ids=str)
def test_the_best_adversary_stays_below_delta(epsilon, delta, horizon):
    assert attained(epsilon, priced_scale(epsilon, delta, horizon), horizon) <= delta


@pytest.mark.parametrize(("epsilon", "delta", "horizon"), GAMES, ids=str)
def test_with_a_sixth_less_noise_it_does_not(epsilon, delta, horizon):
    """So the bound asks for at most a fifth more noise than any proof could do with."""
    sigma = priced_scale(epsilon, delta, horizon)
    assert attained(epsilon, sigma / 1.2, horizon) > delta


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (Horizon(2, 2, REPLACE), Horizon(2, 8, REPLACE)),
        (Horizon(1, 6, REPLACE), Horizon(3, 6, REPLACE)),
        (Horizon(2, 6, ADD_REMOVE), Horizon(2, 6, REPLACE)),
        (
            Horizon(2, 6, REPLACE, VALUES),
            Horizon(2, 6, REPLACE, Questions(loud=1, still_there=True)),
        ),
    ],
    ids=["horizon too short", "too few charges", "one history of two", "prices not accounted for"],
)
def test_noise_for_something_else_is_broken_by_the_adversary(wrong, right):
    epsilon, delta = 3.0, 1e-6
    assert attained(epsilon, priced_scale(epsilon, delta, wrong), right) > delta


# 3. Which way things go

epsilons = st.floats(min_value=0.1, max_value=8.0)
deltas = st.floats(min_value=-12.0, max_value=-3.0).map(lambda power: 10**power)
horizons = st.builds(
    Horizon,
    st.integers(min_value=1, max_value=60),
    st.integers(min_value=1, max_value=20_000),
    st.sampled_from(Neighbours),
    st.sampled_from([VALUES, LOUDLY, CHANGES]),
)
# Searches and bounds have a precision of their own.
CLOSE = 1.003


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, horizons, st.integers(min_value=1, max_value=4))
def test_more_charges_and_more_questions_need_more_noise(epsilon, delta, horizon, more):
    sigma = priced_scale(epsilon, delta, horizon)
    charged = Horizon(horizon.charges + more, horizon.questions, horizon.neighbours, horizon.kinds)
    asked = Horizon(horizon.charges, horizon.questions * more, horizon.neighbours, horizon.kinds)
    assert priced_scale(epsilon, delta, charged) * CLOSE >= sigma
    assert priced_scale(epsilon, delta, asked) * CLOSE >= sigma


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, horizons, st.floats(min_value=1.05, max_value=4.0))
def test_a_larger_epsilon_or_delta_needs_less_noise(epsilon, delta, horizon, factor):
    sigma = priced_scale(epsilon, delta, horizon)
    assert priced_scale(epsilon * factor, delta, horizon) <= sigma * CLOSE
    assert priced_scale(epsilon, delta * factor, horizon) <= sigma * CLOSE


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, horizons)
def test_the_returned_sigma_is_private(epsilon, delta, horizon):
    sigma = priced_scale(epsilon, delta, horizon)
    assert SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA
    assert priced_delta(epsilon, sigma, horizon) <= delta * 1.02
    assert priced_delta(epsilon, 1.02 * sigma, horizon) <= delta


# 4. Ends of the range


def test_a_sigma_beyond_the_sampler_is_not_returned():
    assert priced_scale(1e-6, 1e-6, Horizon(10, 1440, REPLACE)) is None


def test_no_sigma_is_below_the_smallest_one():
    assert priced_scale(90.0, 0.01, Horizon(1, 10, ADD_REMOVE)) == SMALLEST_SIGMA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "neighbours", "kinds"),
    [
        (1.0, 1e-6, REPLACE, CHANGES),
        (0.02, 1e-15, ADD_REMOVE, LOUDLY),
        (100.0, 0.3, REPLACE, VALUES),
    ],
)
def test_noise_grows_with_charges_and_questions_to_the_ends_of_their_ranges(
    epsilon, delta, neighbours, kinds
):
    def sigma(charges: int, questions: int) -> float:
        found = priced_scale(epsilon, delta, Horizon(charges, questions, neighbours, kinds))
        assert SMALLEST_SIGMA <= found <= LARGEST_SIGMA
        return found

    few, many, most = 10_000, 3 * 10**9, 10**11
    one = sigma(1, few), sigma(1, many), sigma(1, most)
    all_of_them = sigma(10_000, few), sigma(10_000, many), sigma(10_000, most)
    assert list(one) == sorted(one)
    assert list(all_of_them) == sorted(all_of_them)
    assert all(less < more for less, more in zip(one, all_of_them, strict=True))
    # Questions cost their logarithm, if bounds are close enough: without prices, 550 times more.
    assert all_of_them[1] < 8 * all_of_them[0]
    assert all_of_them[2] < 1.2 * all_of_them[1]
