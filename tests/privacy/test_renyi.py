"""The Rényi bound for fractional weights: above the truth, and not far above."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streamer.privacy import renyi
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.loss import charge_delta
from streamer.privacy.renyi import fractional_delta, fractional_scale
from streamer.privacy.terms import Method, Neighbours
from tests.privacy.test_loss import moved, payoff, settled

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
repeatable = settings(max_examples=100, deadline=None, derandomize=True, database=None)


# Scales of w for ε=1, δ=1e-6 that an independent computation found (docs/privacy.md).
@pytest.mark.parametrize(("k", "scale"), [(1, 21.595), (3, 24.952), (10, 32.915), (100, 75.467)])
def test_the_scale_is_the_reference_scale(k, scale):
    found = calibrate(Guarantee(1.0, 1e-6, k, ADD_REMOVE), Method.FRACTIONAL).noise_scale
    assert found == pytest.approx(scale, rel=1e-3)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_scale_is_the_smallest_that_the_bound_allows(neighbours):
    scale = fractional_scale(1.0, 1e-6, 3, neighbours)
    assert fractional_delta(1.0, scale, 3, neighbours) <= 1e-6
    assert fractional_delta(1.0, 0.999 * scale, 3, neighbours) > 1e-6


# Whole weights: the bound against the divergence of the two laws of failures


def divergence(order: float, odds: float, k: int, *, present_first: bool) -> float:
    """(α-1)·D_α of the two laws of failures before the k-th success, summed term by term."""
    with mpmath.workdps(60):
        odds, order = mpmath.mpf(odds), mpmath.mpf(order)
        likely, unlikely = 1 / (1 + mpmath.exp(-odds)), 1 / (1 + mpmath.exp(odds))
        first, second = (likely, unlikely) if present_first else (unlikely, likely)
        # The terms fall by a seventh or more each: 800 leave out less than 1e-45.
        masses = [(failures_at(n, k, first), failures_at(n, k, second)) for n in range(800)]
        return float(mpmath.log(mpmath.fsum(p**order * q ** (1 - order) for p, q in masses)))


def failures_at(n: int, k: int, success: mpmath.mpf) -> mpmath.mpf:
    return mpmath.binomial(n + k - 1, n) * success**k * (1 - success) ** n


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("order", "odds"), [(1.5, 0.5), (3.0, 0.2), (6.0, 0.1)])
def test_the_growth_per_charge_is_the_divergence_of_the_laws_of_failures(order, odds, k):
    present = divergence(order, odds, k, present_first=True)
    absent = divergence(order, odds, k, present_first=False)
    assert k * renyi._present_growth(odds, order) == pytest.approx(present, rel=1e-9)
    assert k * renyi._absent_growth(odds, order) == pytest.approx(absent, rel=1e-9)


def test_an_order_whose_divergence_is_infinite_is_worth_nothing():
    odds = 0.1
    pole = math.log1p(math.exp(odds)) / odds
    assert renyi._absent_growth(odds, pole * 1.001) == math.inf
    assert math.isfinite(renyi._absent_growth(odds, pole * 0.999))


@repeatable
@given(
    st.floats(min_value=0.05, max_value=5.0),
    st.floats(min_value=3.0, max_value=200.0),
    st.integers(min_value=1, max_value=100),
    st.sampled_from(Neighbours),
)
def test_the_bound_is_above_the_exact_delta_of_whole_weights(epsilon, scale, k, neighbours):
    exact = charge_delta(epsilon, scale, k, neighbours)
    # Smaller ones are mostly the allowance for what the sums leave out.
    assume(exact > 1e-20)
    assert fractional_delta(epsilon, scale, k, neighbours) >= exact


def bound_at(order: mpmath.mpf, epsilon: float, scale: float, k: int) -> mpmath.mpf:
    """The logarithm of (13) for replacing a user, at this order."""
    u = 1 / mpmath.mpf(scale)
    present = order * u - mpmath.log(1 + mpmath.exp(u) - mpmath.exp((1 - order) * u))
    absent = -mpmath.log(1 + mpmath.exp(u) - mpmath.exp(order * u)) - (order - 1) * u
    divergence = (present + absent) * (k + 1) / (order - 1)
    return (order - 1) * (divergence - epsilon + mpmath.log(1 - 1 / order)) - mpmath.log(order)


@pytest.mark.parametrize(("epsilon", "scale", "k"), [(1.0, 26.323, 3), (0.5, 93.7, 10)])
def test_the_bound_is_the_least_over_all_orders_and_a_billionth_for_rounding(epsilon, scale, k):
    with mpmath.workdps(40):
        low, high = mpmath.mpf("1.0001"), mpmath.log1p(mpmath.exp(1 / mpmath.mpf(scale))) * scale
        # One valley: each round leaves out a third on the side that is higher.
        for _ in range(90):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            higher = bound_at(left, epsilon, scale, k) > bound_at(right, epsilon, scale, k)
            low, high = (left, high) if higher else (low, right)
        least = mpmath.exp(bound_at(low, epsilon, scale, k))
    found = fractional_delta(epsilon, scale, k, REPLACE)
    assert found == pytest.approx(float(least) * (1 + 1e-9), rel=2e-10, abs=0)


def test_the_bound_is_1_where_the_noise_is_far_too_small():
    assert fractional_delta(0.05, 0.5, 5, REPLACE) == pytest.approx(1.0, rel=1e-8)


# Fractional weights


@repeatable
@given(
    st.floats(min_value=1.01, max_value=60.0),
    st.floats(min_value=0.005, max_value=1.0),
    st.floats(min_value=0.05, max_value=0.99),
)
def test_per_unit_of_charge_a_full_weight_is_the_worst(order, odds, weight):
    # Far below this the differences of logarithms are rounding alone.
    tolerance = 1e-12 / (weight * odds)
    part = renyi._present_growth(weight * odds, order) / weight
    assert part <= renyi._present_growth(odds, order) + tolerance
    full = renyi._absent_growth(odds, order)
    if math.isfinite(full):
        assert renyi._absent_growth(weight * odds, order) / weight <= full + tolerance


def best_fractional_adversary(
    epsilon: float, scale: float, k: int, parts: int, reach: int = 600
) -> float:
    """The largest δ of any add/remove adversary with weights in multiples of 1/parts.

    A ⊤ of weight f charges f, and a user charged k or more is silent. Positions of the
    log-likelihood are in units of 1/(scale·parts).
    """
    odds = 1 / (scale * parts)
    stop = payoff(epsilon, odds, reach)
    worlds = []
    for present in (True, False):
        # values[left]: what the game is worth with so much of the budget left.
        values = dict.fromkeys(range(1 - parts, 1), stop)
        for left in range(1, k * parts + 1):
            questions = []
            for weight in range(1, parts + 1):
                likely = 1 / (1 + math.exp(-weight * odds))
                questions.append((weight, likely if present else 1 - likely, values[left - weight]))

            def any_question(current, questions=questions, direction=1 if present else -1):
                best = stop
                for weight, top, after in questions:
                    step = direction * weight
                    answer = top * moved(after, step) + (1 - top) * moved(current, -step)
                    best = np.maximum(best, answer)
                return best

            values[left] = settled(stop, any_question)
        worlds.append(float(values[k * parts][reach]))
    return max(worlds)


FRACTIONAL_GAMES = [(1.0, 3.0, 1, 4), (1.0, 4.0, 2, 4), (0.5, 5.0, 1, 8)]


@pytest.mark.parametrize(("epsilon", "scale", "k", "parts"), FRACTIONAL_GAMES)
def test_the_best_adversary_with_fractional_weights_stays_below_the_bound(epsilon, scale, k, parts):
    best = best_fractional_adversary(epsilon, scale, k, parts)
    assert best <= fractional_delta(epsilon, scale, k, ADD_REMOVE)


@pytest.mark.parametrize(("epsilon", "scale", "k", "parts"), FRACTIONAL_GAMES)
def test_the_exact_delta_of_whole_weights_would_be_caught_by_fractional_ones(
    epsilon, scale, k, parts
):
    best = best_fractional_adversary(epsilon, scale, k, parts)
    assert best > 1.1 * charge_delta(epsilon, scale, k, ADD_REMOVE)


def test_weights_of_1_alone_give_the_exact_delta_of_whole_weights():
    best = best_fractional_adversary(1.0, 3.0, 2, parts=1)
    assert best == pytest.approx(charge_delta(1.0, 3.0, 2, ADD_REMOVE), rel=1e-9, abs=0)


# Which way things go


@repeatable
@given(
    st.floats(min_value=0.05, max_value=5.0),
    st.floats(min_value=3.0, max_value=200.0),
    st.integers(min_value=1, max_value=100),
    st.sampled_from(Neighbours),
    st.floats(min_value=1.01, max_value=3.0),
)
def test_the_bound_falls_with_epsilon_and_with_noise_and_grows_with_contributions(
    epsilon, scale, k, neighbours, factor
):
    delta = fractional_delta(epsilon, scale, k, neighbours)
    rounding = 1 + 1e-9
    assert 0 <= delta <= rounding
    assert fractional_delta(epsilon * factor, scale, k, neighbours) <= delta * rounding
    assert fractional_delta(epsilon, scale * factor, k, neighbours) <= delta * rounding
    assert fractional_delta(epsilon, scale, k + 1, neighbours) * rounding >= delta
    assert fractional_delta(epsilon, scale, k, REPLACE) * rounding >= delta
