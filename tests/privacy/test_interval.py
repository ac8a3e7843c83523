"""Intervals hold the true count in 95% of all reports, whatever it is, by summation."""

import numpy as np
import pytest

from streamer.privacy.gaussian_law import GaussianLaw
from streamer.privacy.interval import Intervals
from streamer.privacy.laplace_law import LaplaceLaw

CASES = [
    (GaussianLaw(70.5), 452, 70),
    (GaussianLaw(2.0), 11, 2),
    (GaussianLaw(0.5), 3, 1),
    (LaplaceLaw(8.0, 0.5, 2), 170, 8),
]
every_case = pytest.mark.parametrize(("law", "threshold", "scale"), CASES, ids=str)


def reports(law, threshold, scale, count):
    """All estimates that a count can be reported with, and their probabilities."""
    estimates = np.arange(threshold, max(threshold, count) + 40 * scale)
    tails = np.exp(law.log_at_least(np.append(estimates, estimates[-1] + 1) - count))
    return estimates, (tails[:-1] - tails[1:]) / tails[0]


def coverage(law, threshold, scale, count, interval) -> float:
    estimates, masses = reports(law, threshold, scale, count)
    low, high = interval(estimates)
    return float(masses[(low <= count) & (count <= high)].sum())


def counts(threshold, scale):
    return sorted(
        {0, 1, threshold // 2, threshold - scale, threshold, threshold + 2 * scale, 3 * threshold}
    )


@pytest.mark.slow
@every_case
def test_the_true_count_is_inside_in_95_percent_of_the_reports(law, threshold, scale):
    intervals = Intervals(law, threshold)
    for count in counts(threshold, scale):
        assert coverage(law, threshold, scale, count, intervals.of) >= 0.95 - 1e-9


@pytest.mark.slow
@every_case
def test_far_above_the_threshold_the_interval_is_hardly_wider_than_needed(law, threshold, scale):
    far = 3 * threshold
    half = law.margin()
    low, high = Intervals(law, threshold).of(np.array([far]))
    assert high[0] - low[0] <= 2 * half + 2
    assert coverage(law, threshold, scale, far, Intervals(law, threshold).of) < 1


def test_a_margin_around_the_estimate_fails_close_to_the_threshold():
    """Why there are intervals: what is reported is what had upward noise."""
    law, threshold = GaussianLaw(70.5), 452

    def around(estimates):
        return estimates - law.margin(), estimates + law.margin()

    assert coverage(law, threshold, 70, 250, around) < 0.01
    assert coverage(law, threshold, 70, 382, around) < 0.87


@every_case
def test_intervals_rise_with_the_estimate_and_are_never_empty(law, threshold, scale):
    low, high = Intervals(law, threshold).of(np.arange(threshold, threshold + 5 * scale))
    assert np.all(low <= high)
    assert np.all(low >= 0)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)


@every_case
def test_both_ends_are_the_last_counts_that_are_not_ruled_out(law, threshold, scale):
    estimate = threshold + 3 * scale
    (low,), (high,) = Intervals(law, threshold).of(np.array([estimate]))

    def at_least(count, bound):
        return law.at_least(bound - count) / law.at_least(threshold - count)

    assert at_least(low, estimate) >= 0.025
    assert low == 0 or at_least(low - 1, estimate) < 0.025
    assert at_least(high, estimate + 1) <= 0.975 < at_least(high + 1, estimate + 1)


def test_equal_estimates_have_equal_intervals_in_the_given_order():
    low, high = Intervals(GaussianLaw(70.5), 452).of(np.array([600, 452, 600]))
    assert (low[0], high[0]) == (low[2], high[2])
    assert (low[0], high[0]) != (low[1], high[1])


def test_no_reports_have_no_intervals():
    low, high = Intervals(GaussianLaw(70.5), 452).of(np.array([], dtype=np.int64))
    assert len(low) == len(high) == 0
