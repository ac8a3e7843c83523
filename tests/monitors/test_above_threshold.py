"""AboveThreshold: what it compares, when it stops, and the law of its answers."""

import math

import numpy as np
import pytest

from streamer.errors import MonitorError, SettingError
from streamer.monitors import above_threshold
from streamer.monitors.above_threshold import AboveThreshold
from streamer.privacy.noise import DiscreteLaplace
from tests.monitors.chance import implausible_law
from tests.monitors.laws import REACH, laplace

PLAYS = 20_000


class Script:
    """Stands in for DiscreteLaplace: the same given numbers for every scale, in order."""

    def __init__(self, numbers):
        self.numbers = list(numbers)
        self.scales = []

    def __call__(self, scale, random_bytes):
        self.scales.append(scale)
        return self

    def draw(self, size):
        drawn, self.numbers = self.numbers[:size], self.numbers[size:]
        return np.array(drawn)


@pytest.fixture
def script(monkeypatch):
    def install(*numbers):
        noise = Script(numbers)
        monkeypatch.setattr(above_threshold, "DiscreteLaplace", noise)
        return noise

    return install


def test_a_noisy_value_at_the_noisy_threshold_is_above(script):
    script(3, -2)
    assert AboveThreshold(1.0, threshold=10).ask(15)


def test_a_noisy_value_one_below_the_noisy_threshold_is_not(script):
    script(3, -3)
    assert not AboveThreshold(1.0, threshold=10).ask(15)


def test_the_noisy_threshold_stays_while_each_question_has_noise_of_its_own(script):
    script(5, 4, -4, 0)
    monitor = AboveThreshold(1.0, threshold=10)
    assert [monitor.ask(value) for value in (10, 18, 15)] == [False, False, True]


def test_questions_get_twice_the_noise_of_the_threshold(script):
    noise = script(0)
    AboveThreshold(0.5, threshold=10)
    assert sorted(noise.scales) == [4.0, 8.0]


def test_multiples_of_a_fraction_are_compared_exactly(script):
    noise = script(0, 0, 0)
    monitor = AboveThreshold(1.0, threshold=2.5, resolution=4)
    assert sorted(noise.scales) == [8.0, 16.0]
    assert [monitor.ask(2.25), monitor.ask(2.5)] == [False, True]


def test_it_goes_on_after_any_number_of_answers_below(script):
    script(*[0] * 101)
    monitor = AboveThreshold(1.0, threshold=10)
    assert not any(monitor.ask(9) for _ in range(100))
    assert not monitor.halted


def test_it_must_not_be_asked_again_after_an_answer_above(script):
    script(0, 0, 0)
    monitor = AboveThreshold(1.0, threshold=10)
    monitor.ask(10)
    assert monitor.halted
    with pytest.raises(MonitorError, match="must not be asked again"):
        monitor.ask(0)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, "1"])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon):
    with pytest.raises(SettingError, match="epsilon"):
        AboveThreshold(epsilon, threshold=10)


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(SettingError, match="threshold"):
        AboveThreshold(1.0, threshold)


@pytest.mark.parametrize("resolution", [0, -4, 0.5, True, 2**32 + 1])
def test_a_resolution_that_is_no_whole_number_in_range_is_refused(resolution):
    with pytest.raises(SettingError, match="resolution"):
        AboveThreshold(1.0, threshold=10, resolution=resolution)


@pytest.mark.parametrize(("value", "above"), [(2, False), (3, True)])
def test_a_threshold_between_two_values_is_reached_by_the_greater_one(script, value, above):
    script(0, 0)
    assert AboveThreshold(1.0, threshold=2.5).ask(value) is above


# Rounded, a change of 1 in the query could become a change of 2.
@pytest.mark.parametrize(("resolution", "value"), [(1, 0.5), (4, 2.3), (4, 0.125)])
def test_a_value_that_is_no_multiple_of_the_fraction_is_refused(script, resolution, value):
    noise = script(0, 0)
    monitor = AboveThreshold(1.0, threshold=10, resolution=resolution)
    with pytest.raises(MonitorError, match=f"{value} is not a multiple of 1/{resolution}"):
        monitor.ask(value)
    assert noise.numbers == [0]
    assert not monitor.halted


def law_of_the_first_above(epsilon: float, threshold: int, values: list[int]) -> list[float]:
    """The probability that each question is the first one answered ⊤, and that none is."""
    below = np.cumsum(laplace(4 / epsilon))
    shifts = np.arange(-400, 401)
    remaining = laplace(2 / epsilon)[REACH + shifts]
    law = []
    for value in values:
        passed_over = below[REACH + threshold + shifts - value - 1]
        law.append(float(np.sum(remaining * (1 - passed_over))))
        remaining = remaining * passed_over
    return [*law, float(np.sum(remaining))]


def firsts_above(start, values: list[int]) -> list[int]:
    """How often each question was the first one answered ⊤, and how often none was."""
    counts = [0] * (len(values) + 1)
    for _ in range(PLAYS):
        monitor = start()
        first = next((place for place, value in enumerate(values) if monitor.ask(value)), -1)
        counts[first] += 1
    return counts


class FreshThresholdEachTime(AboveThreshold):
    def ask(self, value):
        self._noisy_threshold = 5 + int(DiscreteLaplace(2.0).draw(1)[0])
        return super().ask(value)


@pytest.mark.slow
# False alarms: below one in a billion.
def test_the_first_answer_above_has_its_exact_law():
    counts = firsts_above(lambda: AboveThreshold(1.0, threshold=5), [3, 3, 6, 3])
    assert not implausible_law(counts, PLAYS, law_of_the_first_above(1.0, 5, [3, 3, 6, 3]))


@pytest.mark.slow
def test_a_threshold_with_fresh_noise_for_every_question_is_noticed():
    counts = firsts_above(lambda: FreshThresholdEachTime(1.0, threshold=5), [3, 3, 6, 3])
    assert implausible_law(counts, PLAYS, law_of_the_first_above(1.0, 5, [3, 3, 6, 3]))


@pytest.mark.slow
def test_twice_the_promised_epsilon_is_noticed():
    counts = firsts_above(lambda: AboveThreshold(2.0, threshold=5), [3, 3, 6, 3])
    assert implausible_law(counts, PLAYS, law_of_the_first_above(1.0, 5, [3, 3, 6, 3]))
