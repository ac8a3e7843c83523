"""Accounting for the techniques that are compared with: private, and not overly so."""

import math
from dataclasses import replace

import numpy as np
import pytest

from streamer.privacy.baseline_plans import plan_histograms, plan_restarts, restarts_delta
from streamer.privacy.gaussian import gaussian_delta, normal_tail
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Workload
from tests.monitors.laws import REACH, laplace

GUARANTEE = Guarantee(1.0, 1e-6, 3)
ADD_REMOVE = replace(GUARANTEE, neighbours=Neighbours.ADD_REMOVE)
WORKLOAD = Workload(period_steps=200, items=10_000, beta=0.05)
HALTS, IGNORED = 20, 50


def responses(halts, epsilon_each):
    """Two distributions of the number of ones in n randomized responses, by convolution."""
    likely = 1 / (1 + math.exp(-epsilon_each))
    ours, theirs = np.ones(1), np.ones(1)
    for _ in range(halts):
        ours = np.convolve(ours, [1 - likely, likely])
        theirs = np.convolve(theirs, [likely, 1 - likely])
    return ours, theirs


def delta_of_both(epsilon, halts, epsilon_each, distance):
    """The hockey stick of randomized responses combined with Gaussians, on a fine grid."""
    ours, theirs = responses(halts, epsilon_each)
    width = 1e-3
    points = np.arange(-14, 14 + distance, width)
    here = np.exp(-((points - distance) ** 2) / 2) / math.sqrt(2 * math.pi)
    there = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    gap = np.outer(ours, here) - math.exp(epsilon) * np.outer(theirs, there)
    return float(np.sum(np.maximum(gap, 0)) * width)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
@pytest.mark.parametrize(("halts", "epsilon_each"), [(1, 0.5), (4, 0.3), (30, 0.05)])
@pytest.mark.parametrize("distance", [0.3, 1.0])
def test_delta_is_that_of_all_responses_and_gaussians_together(
    epsilon, halts, epsilon_each, distance
):
    expected = delta_of_both(epsilon, halts, epsilon_each, distance)
    assert restarts_delta(epsilon, halts, epsilon_each, distance) == pytest.approx(
        expected, rel=1e-4, abs=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("halts", "epsilon_each"), [(1, 0.5), (7, 0.2), (40, 0.05)])
def test_without_histograms_it_is_the_composition_of_pure_privacy(epsilon, halts, epsilon_each):
    ours, theirs = responses(halts, epsilon_each)
    expected = float(np.sum(np.maximum(ours - math.exp(epsilon) * theirs, 0)))
    assert restarts_delta(epsilon, halts, epsilon_each, 0.0) == pytest.approx(
        expected, rel=1e-9, abs=1e-15
    )


def test_distances_that_vanish_lead_to_the_composition_of_pure_privacy():
    alone = restarts_delta(0.4, 7, 0.2, 0.0)
    assert restarts_delta(0.4, 7, 0.2, 1e-6) == pytest.approx(alone, rel=1e-5, abs=0)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("halts", [1, 50])
def test_questions_that_tell_nothing_leave_the_histograms_alone(epsilon, halts):
    expected = gaussian_delta(epsilon, 0.8)
    assert restarts_delta(epsilon, halts, 1e-9, 0.8) == pytest.approx(expected, rel=1e-6, abs=0)


def test_one_run_keeps_its_own_epsilon_with_nothing_left_for_delta():
    assert restarts_delta(0.5, 1, 0.5, 0.0) == pytest.approx(0, abs=1e-15)
    assert restarts_delta(0.49, 1, 0.5, 0.0) > 1e-3


@pytest.mark.parametrize(("guarantee", "cells"), [(GUARANTEE, 2), (ADD_REMOVE, 1)])
class TestHistogramEachStep:
    def test_all_steps_together_are_private_and_use_what_they_may(self, guarantee, cells):
        planned = plan_histograms(guarantee, WORKLOAD)
        delta = guarantee.delta - guarantee.delta / 4
        distance = math.sqrt(cells * WORKLOAD.period_steps) / planned.deviation
        assert 0.99 * delta < gaussian_delta(guarantee.epsilon, distance) <= delta

    def test_lone_items_stay_within_the_key_set_part_of_delta(self, guarantee, cells):
        planned = plan_histograms(guarantee, WORKLOAD)
        passes = normal_tail((planned.threshold - 1) / planned.deviation)
        assert WORKLOAD.period_steps * passes <= guarantee.delta / 4

    def test_a_set_of_the_reach_is_missed_with_the_planned_probability(self, guarantee, cells):
        planned = plan_histograms(guarantee, WORKLOAD)
        missed = normal_tail((planned.reach - planned.threshold) / planned.deviation)
        assert missed == pytest.approx(WORKLOAD.miss_tail, rel=1e-3, abs=0)


def test_a_replaced_user_costs_a_histogram_the_square_root_of_two():
    replaced, added = (plan_histograms(g, WORKLOAD) for g in (GUARANTEE, ADD_REMOVE))
    assert replaced.deviation == pytest.approx(math.sqrt(2) * added.deviation, rel=1e-9)


def difference_of_noises(epsilon):
    """Pr[ν - ρ = z] of the noise of a question and that of the threshold."""
    return np.convolve(laplace(4 / epsilon), laplace(2 / epsilon))[REACH : 3 * REACH + 1]


@pytest.mark.parametrize(("guarantee", "cells"), [(GUARANTEE, 2), (ADD_REMOVE, 1)])
class TestRestarts:
    def test_all_runs_and_histograms_together_are_private_and_use_what_they_may(
        self, guarantee, cells
    ):
        planned = plan_restarts(guarantee, WORKLOAD, HALTS, IGNORED)
        delta = guarantee.delta - guarantee.delta / 4
        distance = math.sqrt(cells * HALTS) / planned.histogram.deviation
        spent = restarts_delta(guarantee.epsilon, HALTS, planned.epsilon, distance)
        assert 0.95 * delta < spent <= delta

    def test_lone_items_stay_within_the_key_set_part_of_delta(self, guarantee, cells):
        histogram = plan_restarts(guarantee, WORKLOAD, HALTS, IGNORED).histogram
        passes = normal_tail((histogram.threshold - 1) / histogram.deviation)
        assert HALTS * passes <= guarantee.delta / 4

    def test_ignored_weights_cause_no_halt_with_the_planned_probability(self, guarantee, cells):
        planned = plan_restarts(guarantee, WORKLOAD, HALTS, IGNORED)
        law = difference_of_noises(planned.epsilon)
        halts = law[REACH + planned.threshold - IGNORED :].sum()
        assert WORKLOAD.period_steps * halts <= WORKLOAD.beta / 4
        assert WORKLOAD.period_steps * (halts + law[REACH + planned.threshold - IGNORED - 1]) > (
            WORKLOAD.beta / 4
        )

    def test_a_set_of_the_reach_causes_a_halt_and_is_found_by_the_histogram(self, guarantee, cells):
        planned = plan_restarts(guarantee, WORKLOAD, HALTS, IGNORED)
        weight = math.ceil(planned.reach)
        law = difference_of_noises(planned.epsilon)
        overlooked = law[: REACH + planned.threshold - weight].sum()
        histogram = planned.histogram
        missed = normal_tail((weight - histogram.threshold) / histogram.deviation)
        assert HALTS * overlooked <= WORKLOAD.beta / 4
        assert HALTS * missed <= WORKLOAD.beta / 8


def test_more_halts_reach_less():
    few, many = (plan_restarts(GUARANTEE, WORKLOAD, halts, IGNORED).reach for halts in (5, 80))
    assert few < many
