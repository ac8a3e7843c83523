"""Priced and plain answers: the better of the two, where both hold."""

import itertools

import pytest

from streamer.privacy.baseline_plans import plan_histograms
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.horizon import horizon_delta, horizon_epsilon, horizon_scale
from streamer.privacy.plain import plain_scale
from streamer.privacy.priced import Horizon
from streamer.privacy.priced_search import priced_delta, priced_scale
from streamer.privacy.prices import CHANGES, VALUES
from streamer.privacy.terms import Attention, Method, Neighbours
from streamer.privacy.threshold import Workload, plan

REPLACE = Neighbours.REPLACE


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "kinds"), [(1, VALUES), (10, VALUES), (50, CHANGES)])
def test_where_charges_are_ample_prices_save_nothing(questions, kinds):
    horizon = Horizon(10, questions, REPLACE, kinds)
    assert horizon.ample
    sigma, priced = horizon_scale(1.0, 1e-6, horizon), priced_scale(1.0, 1e-6, horizon)
    assert sigma == plain_scale(1.0, 1e-6, 2 * questions)
    assert 0.92 * priced < sigma < priced
    assert horizon_delta(1.0, sigma, horizon) <= 1e-6 < priced_delta(1.0, sigma, horizon)
    assert horizon_epsilon(1e-6, sigma, horizon) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.slow
def test_where_they_are_not_the_better_account_counts():
    scarce, scarcer = Horizon(10, 11, REPLACE), Horizon(10, 24, REPLACE)
    assert not scarce.ample
    assert horizon_scale(1.0, 1e-6, scarce) == plain_scale(1.0, 1e-6, 22)
    assert horizon_scale(1.0, 1e-6, scarcer) == priced_scale(1.0, 1e-6, scarcer)
    assert horizon_epsilon(1e-6, 27.3, scarcer) == pytest.approx(1.0, rel=0.01)
    assert horizon_delta(1.0, 27.3, scarcer) == priced_delta(1.0, 27.3, scarcer) <= 1e-6


def test_a_replaced_user_has_two_histories_of_answers():
    assert Horizon(1, 7, REPLACE).answers == 14
    assert Horizon(1, 7, Neighbours.ADD_REMOVE).answers == 7


def test_periods_add_charges_and_questions():
    assert Horizon(3, 24, REPLACE, CHANGES).after(7) == Horizon(21, 168, REPLACE, CHANGES)


def thresholds(guarantee, workload, attention):
    """That of the monitor, and that of a histogram in every step."""
    made = plan(guarantee, workload, Method.HORIZON, attention=attention)
    return made.threshold, plan_histograms(guarantee, workload).threshold


TINY = [
    (Attention.EVERY_STEP, 10, 1),
    (Attention.EVERY_STEP, 30, 3),
    (Attention.CHANGES, 6, 3),
]
"""Attention, contributions and items per step: ample charges for up to 10 steps."""


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_where_steps_are_few_a_histogram_in_every_step_has_no_lower_threshold(epsilon, delta):
    """But for 3%, and less than one user because thresholds are whole."""
    settings = itertools.product((1, 2, 5, 10), Neighbours)
    for (steps, neighbours), tiny in zip(settings, itertools.cycle(TINY)):
        attention, contributions, items_per_step = tiny
        guarantee = Guarantee(epsilon, delta, contributions, neighbours)
        workload = Workload(steps, 10_000, 0.05, items_per_step=items_per_step)
        monitor, histogram = thresholds(guarantee, workload, attention)
        assert monitor < 1.03 * histogram + 1, (steps, neighbours, tiny)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "contributions", "steps", "items_per_step", "epsilon", "delta"),
    [
        (Attention.EVERY_STEP, 1, 2, 1, 4.0, 1e-3),
        (Attention.CHANGES, 1, 10, 3, 1.0, 1e-6),
        (Attention.EVERY_STEP, 10, 5, 3, 0.1, 1e-8),
        (Attention.EVERY_STEP, 10, 12, 1, 1.0, 1e-6),
    ],
)
def test_nor_where_charges_are_scarce(
    attention, contributions, steps, items_per_step, epsilon, delta
):
    guarantee = Guarantee(epsilon, delta, contributions)
    workload = Workload(steps, 10_000, 0.05, items_per_step=items_per_step)
    monitor, histogram = thresholds(guarantee, workload, attention)
    assert monitor < 1.03 * histogram + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contributions", "steps", "epsilon", "delta", "neighbours"),
    [
        (1, 24, 4.0, 1e-8, Neighbours.REPLACE),
        (3, 24, 0.2, 1e-6, Neighbours.REPLACE),
        (10, 24, 1.0, 1e-6, Neighbours.ADD_REMOVE),
        (10, 1440, 1.0, 1e-6, Neighbours.REPLACE),
    ],
)
def test_where_steps_are_many_the_monitor_has_the_lower_threshold(
    contributions, steps, epsilon, delta, neighbours
):
    guarantee = Guarantee(epsilon, delta, contributions, neighbours)
    workload = Workload(steps, 10_000, 0.05)
    monitor, histogram = thresholds(guarantee, workload, Attention.EVERY_STEP)
    assert monitor < histogram
