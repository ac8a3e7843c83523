"""The guarantee in words."""

import pytest

from streamer.privacy.terms import Neighbours
from streamer.stream.publication import PublicSettings
from streamer.stream.timing import StepTiming
from streamer.web.promise import promise_to_come, sentence
from tests.stream.making import MINUTES, terms
from tests.web.making import new_stream


def test_the_guarantee_is_one_sentence_with_all_four_numbers():
    day = terms(epsilon=1.0, delta=1e-6, contributions=10, period_steps=1440)
    assert sentence(day, MINUTES) == (
        "If everything one user did in 1 day were replaced by anything else, nothing shown here "
        "would become more than 2.72 times as likely or as unlikely, give or take an additive "
        "one in 1,000,000, and the user counts in at most 10 reports in that time."
    )


def test_neighbours_that_take_part_or_not_are_worded_as_such():
    words = sentence(terms(neighbours=Neighbours.ADD_REMOVE, contributions=1), MINUTES)
    assert words.startswith("If everything one user did in 100 minutes were removed, nothing ")
    assert "at most 1 report in" in words


@pytest.mark.parametrize(
    ("delta", "words"),
    [(1e-6, "one in 1,000,000,"), (0.25, "one in 4,"), (3e-7, "3e-07,"), (0.0015, "0.0015,")],
)
def test_delta_is_told_as_odds_where_they_are_whole(delta, words):
    assert f"give or take an additive {words}" in sentence(terms(delta=delta), MINUTES)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.1, "1.11"), (0.5, "1.65"), (1.0, "2.72"), (5.0, "149"), (10.0, "22,100"), (40.0, "e^40")],
)
def test_the_factor_is_rounded_up_because_it_is_a_bound(epsilon, words):
    assert f"more than {words} times as" in sentence(terms(epsilon=epsilon), MINUTES)


def test_the_promise_has_the_numbers_of_its_period():
    stream = new_stream(contributions=3, refresh_steps=2, period_steps=50, first=120)
    stream.step(a=100)
    promise, period = stream.board.promise, stream.period
    assert (promise.period, promise.first, promise.period_steps) == (2, 100, 50)
    assert (promise.threshold, promise.margin) == (period.plan.threshold, period.margin)
    assert promise.noise_scale == period.plan.calibration.noise_scale
    assert (promise.contributions, promise.refresh_steps, promise.step_seconds) == (3, 2, 1.0)


def test_it_says_how_many_items_of_single_users_are_expected_in_a_year():
    planned = terms(users=5_000, step_seconds=60.0)
    promise = promise_to_come(PublicSettings(planned), MINUTES)
    assert promise.users == 5_000
    assert promise.unique_items_per_year == planned.plan().unique_items_per_year < 1


def test_a_period_that_was_planned_without_users_says_no_number():
    promise = promise_to_come(PublicSettings(terms()), MINUTES)
    assert (promise.users, promise.unique_items_per_year) == (None, None)


def test_a_period_of_part_seconds_is_told():
    assert "in 25 seconds were replaced by" in sentence(terms(period_steps=100), StepTiming(250))
