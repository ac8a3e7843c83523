"""Priced and plain answers: the better of the two, where both hold."""

import pytest

from streamer.privacy.baseline_plans import plan_histograms
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.horizon import horizon_delta, horizon_epsilon, horizon_scale
from streamer.privacy.plain import plain_scale
from streamer.privacy.priced import Horizon
from streamer.privacy.priced_search import priced_scale
from streamer.privacy.prices import CHANGES, VALUES
from streamer.privacy.terms import Attention, Method, Neighbours
from streamer.privacy.threshold import Workload, plan

REPLACE = Neighbours.REPLACE


@pytest.mark.slow
@pytest.mark.parametrize("questions", [1, 10, 24])
@pytest.mark.parametrize("kinds", [VALUES, CHANGES], ids=str)
def test_where_charges_cannot_run_out_the_exact_loss_of_plain_answers_counts(questions, kinds):
    horizon = Horizon(24, questions, REPLACE, kinds)
    sigma = horizon_scale(1.0, 1e-6, horizon)
    assert sigma == plain_scale(1.0, 1e-6, 2 * questions)
    assert 0.92 * priced_scale(1.0, 1e-6, horizon) < sigma < priced_scale(1.0, 1e-6, horizon)
    assert horizon_delta(1.0, sigma, horizon) <= 1e-6
    assert horizon_epsilon(1e-6, sigma, horizon) == pytest.approx(1.0, rel=1e-4)


def test_where_they_can_run_out_prices_count():
    horizon = Horizon(10, 24, REPLACE)
    assert horizon_scale(1.0, 1e-6, horizon) == priced_scale(1.0, 1e-6, horizon)
    assert horizon_epsilon(1e-6, 27.3, horizon) == pytest.approx(1.0, rel=0.01)


def test_a_replaced_user_has_two_histories_of_answers():
    assert Horizon(1, 7, REPLACE).answers == 14
    assert Horizon(1, 7, Neighbours.ADD_REMOVE).answers == 7


def test_periods_add_charges_and_questions():
    assert Horizon(3, 24, REPLACE, CHANGES).after(7) == Horizon(21, 168, REPLACE, CHANGES)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2, 5, 10, 12, 24, 168, 1440])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_histogram_in_every_step_never_has_a_much_lower_threshold(steps, neighbours):
    guarantee = Guarantee(1.0, 1e-6, 10, neighbours)
    workload = Workload(steps, 10_000, 0.05)
    histogram = plan_histograms(guarantee, workload)
    made = plan(guarantee, workload, Method.HORIZON, attention=Attention.EVERY_STEP)
    if steps <= guarantee.contributions:
        assert made.threshold <= 1.02 * histogram.threshold + 1
    elif steps < 2 * guarantee.contributions:
        # Priced answers begin to pay, and still lose a little to the conversion from Rényi.
        assert made.threshold <= 1.08 * histogram.threshold + 1
    else:
        assert made.threshold < histogram.threshold
