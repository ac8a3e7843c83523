"""The guarantee in words."""

from dataclasses import replace

import pytest

from streamer.privacy.terms import Attention, Method, Neighbours
from streamer.stream.publication import PublicSettings
from streamer.stream.timing import StepTiming
from streamer.web.promise import promise_to_come, sentence
from tests.stream.making import MINUTES, terms
from tests.web.making import new_stream

CHANGES = terms(
    epsilon=1.0,
    delta=1e-6,
    contributions=10,
    period_steps=1440,
    calibration=Method.HORIZON,
    attention=Attention.CHANGES,
)


def words_of(terms):
    return sentence(terms, terms.plan(), MINUTES)


def test_the_guarantee_is_one_sentence_with_all_four_numbers():
    day = terms(epsilon=1.0, delta=1e-6, contributions=10, period_steps=1440)
    assert words_of(day) == (
        "If everything one user did in 1 day were replaced by anything else, nothing shown here "
        "would become more than 2.72 times as likely or as unlikely, give or take an additive "
        "one in 1,000,000, and the user counts in at most 10 reports in that time."
    )


def test_where_loud_reports_cost_less_it_says_how_many_there_may_be():
    plan = CHANGES.plan()
    loud = plan.threshold + plan.calibration.loud_excess
    assert words_of(CHANGES).endswith(
        "the user counts in at most 10 reports that an item is there or gone, or 50 of "
        f"{loud} users or more, in that time."
    )


def test_neighbours_that_take_part_or_not_are_worded_as_such():
    words = words_of(terms(neighbours=Neighbours.ADD_REMOVE, contributions=1))
    assert words.startswith("If everything one user did in 100 minutes were removed, nothing ")
    assert "at most 1 report in" in words


@pytest.mark.parametrize(
    ("delta", "words"),
    [(1e-6, "one in 1,000,000,"), (0.25, "one in 4,"), (3e-7, "3e-07,"), (0.0015, "0.0015,")],
)
def test_delta_is_told_as_odds_where_they_are_whole(delta, words):
    assert f"give or take an additive {words}" in words_of(terms(delta=delta))


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.1, "1.11"), (0.5, "1.65"), (1.0, "2.72"), (5.0, "149"), (10.0, "22,100"), (40.0, "e^40")],
)
def test_the_factor_is_rounded_up_because_it_is_a_bound(epsilon, words):
    # At ε = 40 no noise is precise enough; the words do not depend on the plan.
    said = sentence(terms(epsilon=epsilon), terms().plan(), MINUTES)
    assert f"more than {words} times as" in said


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
    quick = terms(period_steps=100)
    words = sentence(quick, quick.plan(), StepTiming(250))
    assert "in 25 seconds were replaced by" in words


def test_it_says_what_is_counted_and_from_where_on():
    planned = terms(
        items_per_step=3,
        declared_items=("a", "b"),
        calibration=Method.HORIZON,
        attention=Attention.CHANGES,
        epsilon=1.0,
    )
    promise, plan = promise_to_come(PublicSettings(planned), MINUTES), planned.plan()
    assert (promise.noise, promise.items_per_step, promise.open_domain) == ("gaussian", 3, True)
    assert (promise.loud_price, promise.loud_excess) == (0.2, plan.calibration.loud_excess)
    assert (promise.declared_items, promise.declared_threshold) == (2, plan.declared_threshold)


def test_in_a_declared_domain_the_threshold_is_that_of_all_items():
    planned = terms(declared_items=("a", "b"), open_domain=False)
    promise = promise_to_come(PublicSettings(planned), MINUTES)
    assert promise.declared_threshold == promise.threshold == planned.plan().threshold
    assert not promise.open_domain


def test_without_declared_items_and_loud_reports_there_is_nothing_to_say():
    promise = promise_to_come(PublicSettings(terms()), MINUTES)
    assert (promise.loud_price, promise.loud_excess, promise.declared_threshold) == (1, None, None)


def test_with_changes_it_says_when_values_are_measured_and_when_an_item_is_gone():
    promise, plan = promise_to_come(PublicSettings(CHANGES), MINUTES), CHANGES.plan()
    assert promise.attention == "changes"
    assert (promise.exit_threshold, promise.value_every_steps) == (plan.exit_threshold, 60)
    own = replace(CHANGES, value_every_steps=15)
    assert promise_to_come(PublicSettings(own), MINUTES).value_every_steps == 15


def test_where_every_item_is_asked_for_its_value_there_is_neither():
    promise = promise_to_come(PublicSettings(terms()), MINUTES)
    assert promise.attention == "every_step"
    assert (promise.exit_threshold, promise.value_every_steps) == (None, None)
