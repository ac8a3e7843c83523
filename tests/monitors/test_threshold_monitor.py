"""ThresholdMonitor and its evolving form, followed line by line with noise written down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import MonitorError
from streamer.monitors.threshold_monitor import (
    FIXED_POINT,
    Answer,
    ThresholdMonitor,
    ThresholdMonitorEvolving,
)
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Attention, Method
from tests.monitors.scripted import NoNoise, ScriptedNoise

repeatable = settings(max_examples=100, deadline=None, derandomize=True, database=None)
COVERING_FRACTIONS = [Method.FRACTIONAL, Method.THEOREM]


HORIZON = 1_000


def calibrated(contributions=1, method=Method.EXACT):
    return calibrate(Guarantee(1.0, 1e-6, contributions), method, questions=HORIZON)


def evolving(users, threshold, noise, contributions=1, method=Method.EXACT):
    return ThresholdMonitorEvolving(
        users, calibrated(contributions, method), threshold, ScriptedNoise(noise)
    )


def weight(record):
    """The query of these tests: a record is its own weight."""
    return record


def test_a_noisy_value_below_the_threshold_is_answered_without_a_number():
    assert evolving(3, 5, [1]).ask([1, 1, 1], weight) == Answer(above=False, estimate=None)


def test_an_answer_below_charges_nobody():
    monitor = evolving(3, 5, [1])
    monitor.ask([1, 1, 1], weight)
    assert monitor.charges.tolist() == [0, 0, 0]
    assert monitor.active.all()


def test_a_noisy_value_at_the_threshold_is_above():
    assert evolving(3, 5, [2]).ask([1, 1, 1], weight).above


@pytest.mark.parametrize(("noise", "above"), [(1, False), (2, True)])
def test_a_threshold_between_two_whole_numbers_is_reached_by_the_greater_one(noise, above):
    assert evolving(3, 4.5, [noise]).ask([1, 1, 1], weight).above is above


@pytest.mark.parametrize("noise", [2, 3, 40])
def test_the_estimate_is_the_noisy_value_itself(noise):
    assert evolving(3, 5, [noise]).ask([1, 1, 1], weight).estimate == 3 + noise


def test_an_answer_above_charges_every_user_by_weight():
    monitor = evolving(3, 1, [0], contributions=2)
    monitor.ask([1, 0, 1], weight)
    assert monitor.charges.tolist() == [1, 0, 1]


def test_charges_add_up_over_answers():
    monitor = evolving(3, 1, [0, 0], contributions=3)
    monitor.ask([1, 0, 1], weight)
    monitor.ask([1, 1, 0], weight)
    assert monitor.charges.tolist() == [2, 1, 1]


def test_users_with_k_charges_no_longer_count():
    monitor = evolving(3, 2, [0, 0, 0], contributions=2)
    assert monitor.ask([1, 1, 0], weight).above
    assert monitor.ask([1, 1, 0], weight).above
    assert monitor.active.tolist() == [False, False, True]
    assert not monitor.ask([1, 1, 1], weight).above


def test_users_with_k_charges_are_not_charged_any_further():
    monitor = evolving(2, 0, [0, 0, 0], contributions=1)
    for _ in range(3):
        monitor.ask([1, 0], weight)
    assert monitor.charges.tolist() == [1, 0]


def test_the_estimate_leaves_exhausted_users_out():
    monitor = evolving(3, 1, [0, 7], contributions=1)
    monitor.ask([1, 0, 0], weight)
    assert monitor.ask([1, 1, 1], weight).estimate == 2 + 7


def test_it_never_halts():
    monitor = evolving(1, 1, [5] * 100)
    assert all(monitor.ask([1], weight).above for _ in range(100))


def test_every_question_draws_noise_of_its_own():
    noise = ScriptedNoise([0, 9, 0])
    monitor = ThresholdMonitorEvolving(2, calibrated(), 5, noise)
    assert [monitor.ask([0, 0], weight).above for _ in range(3)] == [False, True, False]
    assert noise.calls == [1, 1, 1]


def test_data_may_change_with_every_question():
    monitor = evolving(2, 2, [0, 0])
    assert not monitor.ask(["a", "b"], lambda record: record == "a").above
    assert monitor.ask(["a", "a"], lambda record: record == "a").above


@pytest.mark.parametrize("method", list(Method))
def test_without_a_script_the_calibrated_noise_is_drawn(method):
    monitor = ThresholdMonitorEvolving(1, calibrated(method=method), threshold=-(10**8))
    estimates = {monitor.ask([0], weight).estimate for _ in range(100)}
    # With a scale of 16 users or more, 100 draws are 5 values or fewer with probability < 1e-25.
    assert len(estimates) > 5


@repeatable
@given(
    data=st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=6),
    noise=st.lists(st.integers(-3, 3), min_size=6, max_size=6),
    contributions=st.integers(1, 3),
)
def test_answers_and_charges_are_those_of_the_paper(data, noise, contributions):
    monitor = evolving(4, 3, noise, contributions)
    charges = [0] * 4
    for step, shift in zip(data, noise, strict=False):
        noisy = sum(x for x, charge in zip(step, charges, strict=True) if charge < contributions)
        noisy += shift
        answer = monitor.ask(step, weight)
        assert answer == (Answer(True, noisy) if noisy >= 3 else Answer(False))
        if noisy >= 3:
            charges = [
                charge + (x if charge < contributions else 0)
                for x, charge in zip(step, charges, strict=True)
            ]
        assert monitor.charges.tolist() == charges


@pytest.mark.parametrize("method", COVERING_FRACTIONS)
@repeatable
@given(weights=st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_fractional_weights_add_up_exactly_once_they_are_fixed_points(method, weights):
    units = sum(round(weight * FIXED_POINT) for weight in weights)
    answer = evolving(6, 0, [0], method=method).ask(weights, weight)
    assert answer == Answer(True, units / FIXED_POINT)


@pytest.mark.parametrize("method", COVERING_FRACTIONS)
def test_one_unit_of_a_weight_decides_at_the_threshold(method):
    unit = 1 / FIXED_POINT
    assert not evolving(2, 1, [0], method=method).ask([0.5, 0.5 - unit], weight).above
    assert evolving(2, 1, [1], method=method).ask([0.5, 0.5 - unit], weight).above


@pytest.mark.parametrize("method", COVERING_FRACTIONS)
def test_fractional_weights_are_charged_as_they_are(method):
    monitor = evolving(2, 0, [0, 0], method=method)
    monitor.ask([0.75, 0.125], weight)
    monitor.ask([0.125, 0.125], weight)
    assert monitor.charges.tolist() == [0.875, 0.25]
    assert monitor.active.all()


@pytest.mark.parametrize("method", COVERING_FRACTIONS)
def test_the_last_fractional_charge_may_overshoot_and_is_the_last(method):
    monitor = evolving(1, 0, [0] * 3, method=method)
    for _ in range(3):
        monitor.ask([0.75], weight)
    assert monitor.charges.tolist() == [1.5]
    assert not monitor.active.any()


def test_noise_for_fractional_weights_is_in_the_same_units():
    # A scale of 22 users: 100 draws all within one user of 0 have probability < 1e-100.
    monitor = ThresholdMonitorEvolving(1, calibrated(method=Method.FRACTIONAL), -(10**6))
    estimates = [monitor.ask([0], weight).estimate for _ in range(100)]
    assert max(abs(estimate) for estimate in estimates) > 1
    assert any(estimate != round(estimate) for estimate in estimates)


def test_the_exact_calibration_refuses_fractional_weights():
    with pytest.raises(MonitorError, match="fractional or the theorem calibration"):
        evolving(2, 1, [0]).ask([1, 0.5], weight)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("wrong", [-0.001, 1.001, 2, float("nan"), float("inf")])
def test_weights_outside_0_to_1_are_refused(method, wrong):
    with pytest.raises(MonitorError, match="outside 0 to 1"):
        evolving(2, 1, [0], method=method).ask([1, wrong], weight)


@pytest.mark.parametrize("users", [0, 1, 3])
def test_data_of_another_number_of_users_are_refused(users):
    with pytest.raises(MonitorError, match=f"data have {users} users, the monitor has 2"):
        evolving(2, 1, [0]).ask([1] * users, weight)


def test_a_query_that_lumps_an_array_together_is_refused():
    with pytest.raises(MonitorError, match="the monitor has 2"):
        evolving(2, 1, [0]).ask(np.array([1, 1]), np.sum)


@pytest.mark.parametrize("wrong", [[1, 0.5], [1, 2], [1]])
def test_a_refused_question_charges_nobody_and_draws_no_noise(wrong):
    noise = ScriptedNoise([0])
    monitor = ThresholdMonitorEvolving(2, calibrated(), 0, noise)
    with pytest.raises(MonitorError):
        monitor.ask(wrong, weight)
    assert monitor.charges.tolist() == [0, 0]
    assert noise.calls == []


@repeatable
@given(
    data=st.lists(st.integers(0, 8), min_size=5, max_size=5),
    noise=st.integers(-FIXED_POINT, FIXED_POINT),
)
def test_arrays_and_plain_sequences_give_the_same(data, noise):
    answers, charges = [], []
    for records in (data, tuple(data), np.array(data)):
        monitor = evolving(5, 2, [noise], method=Method.FRACTIONAL)
        answers.append(monitor.ask(records, lambda record: record / 8))
        charges.append(monitor.charges.tolist())
    assert answers[0] == answers[1] == answers[2]
    assert charges[0] == charges[1] == charges[2]


class TestFixedDatabase:
    """ThresholdMonitor: the same about a database that stays."""

    def test_elements_with_k_charges_are_deleted(self):
        monitor = ThresholdMonitor([1, 2, 2, 3], calibrated(contributions=2), 1, NoNoise())
        remaining = [monitor.remaining]
        for _ in range(3):
            monitor.ask(lambda record: record == 2)
            remaining.append(monitor.remaining)
        assert remaining == [4, 4, 2, 2]

    def test_deleted_elements_no_longer_count(self):
        monitor = ThresholdMonitor([1, 2, 2, 3], calibrated(), 2, NoNoise())
        assert monitor.ask(lambda record: record == 2) == Answer(True, 2)
        assert monitor.ask(lambda record: record == 2) == Answer(False)
        assert monitor.ask(lambda record: record != 2) == Answer(True, 2)

    def test_an_answer_below_deletes_nothing(self):
        monitor = ThresholdMonitor([1, 2, 2, 3], calibrated(), 3, NoNoise())
        assert not monitor.ask(lambda record: record == 2).above
        assert monitor.remaining == 4

    def test_the_database_may_be_an_array(self):
        monitor = ThresholdMonitor(np.array([1, 2, 2, 3]), calibrated(), 2, NoNoise())
        assert monitor.ask(lambda records: records == 2) == Answer(True, 2)
        assert monitor.remaining == 2


class TestHorizon:
    """Gaussian noise, loud reports at a fifth of the price, and only so many questions."""

    CALIBRATION = calibrate(
        Guarantee(1.0, 1e-6, 2), Method.HORIZON, questions=30, attention=Attention.CHANGES
    )
    LOUD = CALIBRATION.loud_excess

    def monitor(self, *noise):
        return ThresholdMonitorEvolving(2, self.CALIBRATION, 1, ScriptedNoise(noise))

    def test_a_loud_report_charges_a_fifth(self):
        monitor = self.monitor(self.LOUD - 1, self.LOUD)
        monitor.ask([1, 0], weight)
        assert monitor.charges.tolist() == [1.0, 0.0]
        monitor.ask([0, 1], weight)
        assert monitor.charges.tolist() == [1.0, 0.2]

    def test_a_user_counts_only_while_a_full_charge_fits(self):
        """1.2 of 2 are spent: another full charge would be more than the budget."""
        monitor = self.monitor(self.LOUD, 0, 0)
        monitor.ask([1, 0], weight)
        monitor.ask([1, 0], weight)
        assert monitor.charges.tolist() == [1.2, 0.0]
        assert monitor.active.tolist() == [False, True]
        assert not monitor.ask([1, 0], weight).above

    def test_a_user_counts_in_no_more_questions_than_it_is_calibrated_for(self):
        monitor = self.monitor(*[-100] * 30, 0, 0)
        for _ in range(30):
            monitor.ask([1, 0], weight)  # these do not touch the second user
        assert monitor.active.tolist() == [False, True]
        assert not monitor.ask([1, 0], weight).above
        assert monitor.ask([0, 1], weight).above
