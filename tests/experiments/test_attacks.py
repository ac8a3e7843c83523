"""The adversaries: what each of them does, seen against a monitor without noise."""

import numpy as np
import pytest

from streamer.experiments.attacks import (
    Game,
    attacks_on,
    fixed_question,
    lone_item,
    noise_drawn,
    reading_estimates,
    replaced_history,
    until_spent,
)
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.scripted import NoNoise

TRIALS = 4


def planned(contributions=2, threshold=5, period=12, neighbours=Neighbours.REPLACE):
    guarantee = Guarantee(1.0, 0.01, contributions, neighbours)
    return Plan(Workload(period, 10, 0.05), calibrate(guarantee), threshold)


def game(**settings):
    """Trials against a monitor that tells the truth."""
    plan = planned(**settings)
    monitor = HeavyHitterMonitor(
        plan, deciding=Deciding(lambda plan: NoisyThreshold(plan, noise=NoNoise()))
    )
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
    def test_a_fixed_question_counts_the_answers_above(self):
        assert fixed_question(game(contributions=2), world=1).tolist() == [2] * TRIALS
        assert fixed_question(game(contributions=2), world=0).tolist() == [0] * TRIALS

    def test_until_spent_counts_the_answers_below_before_the_last_above(self):
        assert until_spent(game(contributions=2), world=1).tolist() == [0] * TRIALS

    def test_until_spent_gives_up_at_the_end_of_the_period(self):
        assert until_spent(game(period=7), world=0).tolist() == [7] * TRIALS

    def test_a_replaced_history_is_the_difference_of_two_questions(self):
        """The item that the user holds is spent at once, the other one never."""
        assert replaced_history(game(period=7), world=0).tolist() == [7] * TRIALS
        assert replaced_history(game(period=7), world=1).tolist() == [-7] * TRIALS

    def test_reading_the_estimates_adds_up_their_deviations(self):
        """Two steps with the user and two after; one user is all the difference there is."""
        assert reading_estimates(game(contributions=2), world=1).tolist() == [0] * TRIALS
        assert reading_estimates(game(contributions=2), world=0).tolist() == [-2] * TRIALS

    def test_a_lone_item_is_seen_where_the_threshold_lets_it_through(self):
        assert lone_item(game(threshold=1, contributions=1), world=1).tolist() == [1] * TRIALS
        assert lone_item(game(threshold=1, contributions=1), world=0).tolist() == [0] * TRIALS

    def test_a_lone_item_is_not_seen_below_the_threshold(self):
        assert lone_item(game(threshold=2), world=1).tolist() == [0] * TRIALS

    def test_the_noise_is_what_the_estimates_differ_by_from_the_count(self):
        assert noise_drawn(game()).tolist() == [0] * TRIALS

    @pytest.mark.parametrize(
        "attack", [fixed_question, until_spent, replaced_history, reading_estimates, lone_item]
    )
    @pytest.mark.parametrize("world", [0, 1])
    def test_every_attack_scores_every_trial(self, attack, world):
        plan = planned()
        scores = attack(Game(HeavyHitterMonitor(plan), TRIALS), world)
        assert scores.shape == (TRIALS,)
        assert np.all(np.isfinite(scores))


def test_a_replaced_history_is_no_attack_on_an_add_remove_promise():
    replaced, added = (
        {attack.play for attack in attacks_on(planned(neighbours=neighbours), 100)}
        for neighbours in (Neighbours.REPLACE, Neighbours.ADD_REMOVE)
    )
    assert replaced - added == {replaced_history}


def test_long_periods_leave_fewer_trials_for_lone_items():
    attacks = {attack.play: attack for attack in attacks_on(planned(period=1_000_000), 5000)}
    assert attacks[lone_item].trials == 100
    assert attacks[until_spent].trials == 5000
