"""The adversaries: what each of them does, seen against a monitor without noise."""

from functools import partial

import numpy as np
import pytest

from streamer.experiments.attacks import (
    attacks_on,
    lone_items,
    noise_drawn,
    past_the_budget,
    read_intervals,
    weigh_answers,
    weigh_declared,
)
from streamer.experiments.game import Game
from streamer.experiments.likelihood import Evidence
from streamer.monitors.attention import Pace
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.scripted import NoNoise

TRIALS = 4


AT_THRESHOLD = partial(weigh_answers, distances=(1, 1))
PLAYED = [
    AT_THRESHOLD,
    partial(read_intervals, distances=(0, 0)),
    partial(weigh_declared, distances=(1, 1)),
    past_the_budget,
    lone_items,
]


def planned(
    contributions=2,
    threshold=5,
    period=12,
    neighbours=Neighbours.ADD_REMOVE,
    items_per_step=1,
    declared=0,
):
    guarantee = Guarantee(1.0, 0.01, contributions, neighbours)
    workload = Workload(period, 10, 0.05, items_per_step=items_per_step, declared=declared)
    declared_threshold = threshold - 2 if declared else None
    return Plan(workload, calibrate(guarantee), threshold, declared_threshold=declared_threshold)


def game(**settings):
    """Trials against a monitor that tells the truth."""
    plan = planned(**settings)
    truthful = Deciding(partial(NoisyThreshold, noise=NoNoise()))
    monitor = HeavyHitterMonitor(plan, Pace(), deciding=truthful)
    return Game(monitor, TRIALS)


def numbers(*values):
    return np.array(values, dtype=np.int64)


class TestGame:
    def test_an_item_has_its_user_and_the_others_as_holders(self):
        answers = game().step(numbers(1), numbers(1), numbers(0, 1), others=4)
        assert answers.above.tolist() == [False, True]
        assert answers.estimates[1] == 5

    def test_an_item_that_was_not_reported_has_no_estimate(self):
        answers = game().step(numbers(), numbers(), numbers(0, 1), others=4)
        assert answers.estimates.tolist() == [0, 0]

    def test_the_user_of_a_trial_is_charged_and_at_last_silent(self):
        attacked = game(contributions=2)
        above = [
            bool(attacked.step(numbers(0), numbers(0), numbers(0), others=4).above[0])
            for _ in range(4)
        ]
        assert above == [True, True, False, False]

    def test_the_others_are_new_in_every_step_and_never_silent(self):
        attacked = game(contributions=1)
        for _ in range(4):
            assert attacked.step(numbers(), numbers(), numbers(0), others=5).above[0]

    def test_trials_do_not_touch_each_other(self):
        attacked = game(contributions=1)
        attacked.step(numbers(0), numbers(0), numbers(0, 1), others=4)
        answers = attacked.step(numbers(0, 1), numbers(0, 1), numbers(0, 1), others=4)
        assert answers.above.tolist() == [False, True]

    def test_a_game_is_one_budget_period_long(self):
        attacked = game(period=3)
        rounds = []
        for _ in range(3):
            rounds.append(attacked.rounds_left)
            attacked.step(numbers(), numbers(), numbers(0), others=1)
        assert rounds == [3, 2, 1]
        assert attacked.rounds_left == 0


class TestScores:
    """Without noise a question at the threshold is reported exactly while the user counts."""

    @staticmethod
    def evidence(reports, quiet, contributions=2):
        evidence = Evidence(planned(contributions), distance=1)
        (report,) = evidence.of_reports(numbers(1))
        return pytest.approx([reports * report + quiet * evidence.quiet] * TRIALS)

    def test_answers_are_weighed_until_the_budget_is_spent(self):
        present = AT_THRESHOLD(game(contributions=2), world=1)
        assert present.tolist() == self.evidence(reports=2, quiet=0)

    def test_without_reports_they_are_weighed_to_the_end_of_the_period(self):
        absent = AT_THRESHOLD(game(period=7), world=0)
        assert absent.tolist() == self.evidence(reports=0, quiet=7)

    def test_as_many_items_as_count_are_asked_about_at_once(self):
        attacked = game(contributions=3, items_per_step=2, period=1)
        assert AT_THRESHOLD(attacked, world=1).tolist() == self.evidence(2, 0, contributions=3)

    def test_no_more_items_than_the_budget_pays_for(self):
        attacked = game(contributions=1, items_per_step=2, period=1)
        assert AT_THRESHOLD(attacked, world=1).tolist() == self.evidence(1, 0, contributions=1)

    def test_a_replaced_history_is_the_difference_of_two(self):
        scores = [
            AT_THRESHOLD(game(period=7, neighbours=Neighbours.REPLACE), world) for world in (0, 1)
        ]
        assert scores[0].tolist() == pytest.approx((-scores[1]).tolist())
        evidence = Evidence(planned(neighbours=Neighbours.REPLACE), distance=1)
        (report,) = evidence.of_reports(numbers(1))
        assert scores[1].tolist() == pytest.approx([2 * report - 7 * evidence.quiet] * TRIALS)

    def test_past_the_budget_every_item_is_weighed_in_every_step(self):
        attacked = game(contributions=1, items_per_step=2, period=3)
        scores = past_the_budget(attacked, world=1).tolist()
        assert scores == self.evidence(1, 5, contributions=1)

    def test_declared_items_are_asked_about_at_their_own_threshold(self):
        attacked = game(declared=2 * TRIALS, period=1)
        scores = weigh_declared(attacked, 1, distances=(1, 1)).tolist()
        assert scores == self.evidence(reports=1, quiet=0)

    def test_the_others_are_not_declared(self):
        attacked = game(declared=2 * TRIALS, period=1)
        assert AT_THRESHOLD(attacked, world=0).tolist() == self.evidence(reports=0, quiet=1)

    def test_intervals_are_read_where_something_is_reported(self):
        read = partial(read_intervals, distances=(0, 0))
        present, absent = (read(game(period=1), world) for world in (1, 0))
        assert np.all(present > absent)

    def test_lone_items_are_seen_where_the_threshold_lets_them_through(self):
        low = {"threshold": 1, "contributions": 3, "items_per_step": 2}
        assert lone_items(game(**low), world=1).tolist() == [3] * TRIALS
        assert lone_items(game(**low), world=0).tolist() == [0] * TRIALS

    def test_lone_items_are_not_seen_below_the_threshold(self):
        assert lone_items(game(threshold=2), world=1).tolist() == [0] * TRIALS

    def test_the_noise_is_what_the_estimates_differ_by_from_the_count(self):
        assert noise_drawn(game()).tolist() == [0] * TRIALS

    @pytest.mark.parametrize("attack", PLAYED)
    @pytest.mark.parametrize("world", [0, 1])
    def test_every_attack_scores_every_trial(self, attack, world):
        plan = planned(items_per_step=2, declared=4 * TRIALS)
        scores = attack(Game(HeavyHitterMonitor(plan, Pace()), TRIALS), world)
        assert scores.shape == (TRIALS,)
        assert np.all(np.isfinite(scores))


def names(plan, trials=100):
    return {attack.name for attack in attacks_on(plan, trials)}


def test_declared_items_are_attacked_where_there_are_some():
    assert names(planned(declared=4)) - names(planned()) == {"declared items"}


def test_long_periods_leave_fewer_trials_for_lone_items():
    attacks = {attack.name: attack for attack in attacks_on(planned(period=1_000_000), 5000)}
    assert attacks["items that one user alone holds"].trials == 15
    assert attacks["a question at the threshold"].trials == 5000
