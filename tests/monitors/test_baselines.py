"""The two techniques that the monitor is compared with."""

import math

import numpy as np
import pytest

from streamer.monitors import baselines
from streamer.monitors.baselines import RestartedAboveThreshold, StepHistogram
from streamer.monitors.seam import OwnNumbers, Tally
from streamer.privacy.baseline_plans import HistogramPlan, RestartPlan
from streamer.privacy.randomness import SeededBytes
from tests.monitors.chance import implausible, implausible_law

CELLS = 200_000
SILENT = HistogramPlan(deviation=0.0, threshold=10.0, reach=10.0)


def tally(**holders):
    """Items by letter: a is 0, b is 1 and so on."""
    items = np.array([ord(letter) - ord("a") for letter in holders], dtype=np.int64)
    return Tally(0, items, np.array(list(holders.values()), dtype=np.int64), OwnNumbers())


def normal_at_least(bound):
    return math.erfc(bound / math.sqrt(2)) / 2


class TestStepHistogram:
    def test_cells_at_the_threshold_are_reported_with_their_counts(self):
        decision = StepHistogram(SILENT).decide(tally(a=9, b=10, c=30))
        assert decision.items.tolist() == [1, 2]
        assert decision.estimates.tolist() == [10, 30]

    def test_a_step_without_items_reports_nothing(self):
        assert StepHistogram(SILENT).decide(tally()).items.tolist() == []

    # False alarms: below one in a billion, here and in the two tests that follow.
    @pytest.mark.parametrize(("deviation", "weight"), [(3.0, 7), (8.0, 1), (8.0, 14)])
    def test_cells_are_reported_with_the_stated_probability(self, deviation, weight):
        histogram = StepHistogram(HistogramPlan(deviation, 10.0, 0.0))
        found = len(histogram.decide(self.many_cells_of(weight)).items)
        assert not implausible(found, CELLS, histogram.detection(weight))

    def test_half_the_stated_deviation_is_noticed(self):
        histogram = StepHistogram(HistogramPlan(4.0, 10.0, 0.0))
        promised = StepHistogram(HistogramPlan(8.0, 10.0, 0.0))
        found = len(histogram.decide(self.many_cells_of(1)).items)
        assert implausible(found, CELLS, promised.detection(1))

    def test_noise_is_gaussian_with_the_planned_deviation(self):
        assert not self.wrong_noise(StepHistogram(HistogramPlan(5.0, -1000.0, 0.0)))

    def test_noise_of_another_deviation_is_noticed(self):
        assert self.wrong_noise(StepHistogram(HistogramPlan(5.2, -1000.0, 0.0)))

    def test_the_noise_that_decides_is_the_noise_of_the_estimate(self):
        decision = StepHistogram(HistogramPlan(5.0, 10.0, 0.0)).decide(self.many_cells_of(9))
        assert 0 < len(decision.items) < CELLS
        assert decision.estimates.min() >= 10

    def test_each_step_has_noise_of_its_own(self):
        histogram = StepHistogram(HistogramPlan(5.0, -1000.0, 0.0))
        first, second = (histogram.decide(self.many_cells_of(0)) for _ in range(2))
        assert first.estimates.tolist() != second.estimates.tolist()

    def test_a_seed_repeats_the_noise(self):
        plan = HistogramPlan(5.0, -1000.0, 0.0)
        first, second = (
            StepHistogram(plan, SeededBytes(1)).decide(self.many_cells_of(0)) for _ in range(2)
        )
        assert first.estimates.tolist() == second.estimates.tolist()

    @staticmethod
    def many_cells_of(weight):
        return Tally(0, np.arange(CELLS), np.full(CELLS, weight), OwnNumbers())

    def wrong_noise(self, histogram):
        estimates = histogram.decide(self.many_cells_of(100)).estimates
        bounds = range(80, 121, 2)
        counts = [int(np.count_nonzero(estimates >= bound)) for bound in bounds]
        # An estimate is rounded: it is at least z if the noisy count is at least z - 1/2.
        law = [normal_at_least((bound - 0.5 - 100) / 5) for bound in bounds]
        return implausible_law(counts, CELLS, law)


class ScriptedRun:
    """Stands in for AboveThreshold: truthful, and it remembers every run and question."""

    def __init__(self):
        self.runs = []

    def __call__(self, epsilon, threshold, random_bytes):
        questions = []
        self.runs.append((epsilon, threshold, questions))
        return _Run(threshold, questions)


class _Run:
    def __init__(self, threshold, questions):
        self._threshold = threshold
        self._questions = questions

    def ask(self, value):
        assert not any(asked >= self._threshold for asked in self._questions), "asked after ⊤"
        self._questions.append(value)
        return value >= self._threshold


@pytest.fixture
def runs(monkeypatch):
    stand_in = ScriptedRun()
    monkeypatch.setattr(baselines, "AboveThreshold", stand_in)
    return stand_in.runs


def restarted(halts):
    return RestartedAboveThreshold(RestartPlan(halts, 0.25, 20, SILENT, 20.0))


class TestRestartedAboveThreshold:
    def test_a_step_below_the_threshold_is_not_looked_into(self, runs):
        assert restarted(halts=3).decide(tally(a=19, b=12)) is None

    def test_a_step_at_the_threshold_is_reported_by_its_histogram(self, runs):
        decision = restarted(halts=3).decide(tally(a=9, b=12, c=20))
        assert decision.items.tolist() == [1, 2]

    def test_the_question_is_about_the_largest_count(self, runs):
        restarted(halts=3).decide(tally(a=3, b=7, c=5))
        assert runs[0][2] == [7]

    def test_an_empty_step_is_asked_about_too(self, runs):
        assert restarted(halts=3).decide(tally()) is None
        assert runs[0][2] == [0]

    def test_one_run_goes_on_until_its_first_answer_above(self, runs):
        technique = restarted(halts=3)
        for weight in (1, 2, 20, 3, 25):
            technique.decide(tally(a=weight))
        assert [questions for _, _, questions in runs] == [[1, 2, 20], [3, 25], []]

    def test_every_run_has_the_planned_epsilon_and_threshold(self, runs):
        technique = restarted(halts=3)
        technique.decide(tally(a=20))
        assert [(epsilon, threshold) for epsilon, threshold, _ in runs] == [(0.25, 20)] * 2

    def test_when_its_halts_are_used_up_it_reports_and_asks_nothing_more(self, runs):
        technique = restarted(halts=2)
        decisions = [technique.decide(tally(a=50)) for _ in range(4)]
        assert [decision is None for decision in decisions] == [False, False, True, True]
        assert sum(len(questions) for _, _, questions in runs) == 2

    def test_a_restart_draws_a_new_noisy_threshold(self):
        plan = RestartPlan(1000, 0.1, 0, SILENT, 0.0)
        technique = RestartedAboveThreshold(plan)
        thresholds = set()
        for _ in range(100):
            thresholds.add(technique._run._noisy_threshold)
            technique.decide(tally(a=10**6))
        # With a scale of 20, 100 draws are 5 values or fewer with probability < 1e-60.
        assert len(thresholds) > 5
