"""What answers tell, and the distance at which they tell most."""

import math
from functools import cache

import numpy as np
import pytest

from streamer.experiments.likelihood import Evidence, expected_questions, telling_distance
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Attention, Method
from streamer.privacy.threshold import Workload, plan


@cache
def planned(contributions=1, steps=50, attention=Attention.EVERY_STEP, method=Method.HORIZON):
    guarantee = Guarantee(1.0, 0.01, contributions)
    return plan(guarantee, Workload(steps, 1000, 0.05), method, attention=attention)


@pytest.mark.slow
@pytest.mark.parametrize("method", [Method.HORIZON, Method.EXACT])
@pytest.mark.parametrize("distance", [-12, 0, 1, 15])
def test_the_ratios_are_those_of_two_laws(method, distance):
    """Weighted with the law of an absent user, likelihood ratios add up to 1."""
    plan = planned(attention=None, method=method)
    evidence, law = Evidence(plan, distance), plan.law
    noise = np.arange(distance, distance + 40 * math.ceil(plan.calibration.noise_scale))
    masses = np.array([law.at_least(int(z)) - law.at_least(int(z) + 1) for z in noise])
    reports = float(masses @ np.exp(evidence.of_reports(noise)))
    quiet = law.below(distance) * math.exp(evidence.quiet)
    assert reports + quiet == pytest.approx(1, abs=1e-9)
    assert reports == pytest.approx(law.at_least(distance - 1), abs=1e-9)


def test_gaussian_reports_tell_what_the_densities_say():
    plan = planned()
    sigma = plan.calibration.noise_scale
    noise = np.array([-3, 0, 25])
    told = Evidence(plan, -4).of_reports(noise)
    assert told == pytest.approx((2 * noise - 1) / (2 * sigma**2), abs=1e-9)


def test_with_few_charges_and_many_questions_rare_reports_tell_most():
    plan = planned(contributions=1, steps=50)
    distance = telling_distance(plan, 50)
    assert 1.5 < distance / plan.calibration.noise_scale < 2.5
    assert telling_distance(plan, 1000) > distance


def test_where_charges_never_run_out_every_estimate_is_read():
    plan = planned(contributions=10, steps=10)
    assert telling_distance(plan, 10) < -2 * plan.calibration.noise_scale


@pytest.mark.slow
def test_a_budget_lasts_as_long_as_its_prices_say():
    flat, priced = (
        planned(3, 50, attention) for attention in (Attention.EVERY_STEP, Attention.CHANGES)
    )
    assert expected_questions(flat, -100, 50) == pytest.approx(3)
    assert expected_questions(priced, -100, 50) == pytest.approx(11)
    assert expected_questions(flat, 40, 50) == 50
