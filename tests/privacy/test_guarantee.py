"""The promise's parameters are checked where they are made, and refused with a sentence."""

import math

import pytest

from streamer.errors import SettingError, StreamerError
from streamer.privacy.guarantee import (
    LARGEST_EPSILON,
    MOST_CONTRIBUTIONS,
    SMALLEST_DELTA,
    Guarantee,
    check_positive,
    check_probability,
    check_whole,
)
from streamer.privacy.terms import Neighbours

GOOD = {"epsilon": 1.0, "delta": 1e-6, "contributions": 3, "neighbours": Neighbours.REPLACE}


def refusal(setting: str, value: object) -> SettingError:
    with pytest.raises(SettingError) as caught:
        Guarantee(**{**GOOD, setting: value})
    return caught.value


@pytest.mark.parametrize(
    "value", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, 100.5, True, "1", None]
)
def test_an_epsilon_that_is_no_number_above_0_and_at_most_100_is_refused(value):
    error = refusal("epsilon", value)
    assert error.setting == "epsilon"
    assert f"epsilon is {value}" in str(error)


@pytest.mark.parametrize(
    "value", [0, 0.0, 1, 1.0, -0.1, 1.5, math.nan, math.inf, True, "1e-6", None]
)
def test_a_delta_outside_the_open_unit_interval_is_refused(value):
    error = refusal("delta", value)
    assert error.setting == "delta"
    assert f"delta is {value}" in str(error)


@pytest.mark.parametrize("value", [1e-16, 9.9e-16, 5e-324])
def test_a_delta_too_small_to_compute_with_is_refused_with_the_smallest_one(value):
    error = refusal("delta", value)
    assert error.setting == "delta"
    assert str(value) in str(error)
    assert "1e-15" in str(error)


@pytest.mark.parametrize("value", [0, -3, 10_001, 2.0, 2.5, math.nan, True, False, "3", None])
def test_contributions_that_are_no_whole_number_in_range_are_refused(value):
    error = refusal("contributions", value)
    assert error.setting == "contributions"
    assert f"contributions is {value}" in str(error)
    assert "1 to 10,000" in str(error)


@pytest.mark.parametrize("value", ["add", "REPLACE", "", None, 1])
def test_unknown_neighbours_are_refused_with_the_known_ones(value):
    error = refusal("neighbours", value)
    assert error.setting == "neighbours"
    assert f"neighbours is {value}" in str(error)
    assert "replace or add-remove" in str(error)


def test_a_refusal_is_one_of_the_products_errors():
    assert isinstance(refusal("epsilon", -1), StreamerError)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epsilon", LARGEST_EPSILON),
        ("epsilon", 1),
        ("delta", SMALLEST_DELTA),
        ("delta", math.nextafter(1.0, 0.0)),
        ("contributions", 1),
        ("contributions", MOST_CONTRIBUTIONS),
    ],
)
def test_the_ends_of_the_ranges_are_allowed(setting, value):
    assert getattr(Guarantee(**{**GOOD, setting: value}), setting) == value


def test_replacing_a_user_is_what_is_protected_unless_said_otherwise():
    assert Guarantee(1.0, 1e-6, 3).neighbours is Neighbours.REPLACE


@pytest.mark.parametrize("name", ["replace", "add-remove"])
def test_neighbours_given_by_name_become_the_enum(name):
    guarantee = Guarantee(1.0, 1e-6, 3, name)
    assert type(guarantee.neighbours) is Neighbours
    assert guarantee == Guarantee(1.0, 1e-6, 3, Neighbours(name))


def test_a_guarantee_cannot_be_changed_after_the_check():
    with pytest.raises(AttributeError):
        Guarantee(1.0, 1e-6, 3).epsilon = 50.0


def test_a_positive_number_without_a_limit_may_be_large_but_not_infinite():
    check_positive("interval", 1e300)
    with pytest.raises(SettingError, match=r"interval is inf: it must be a number above 0$"):
        check_positive("interval", math.inf)


def test_a_positive_number_with_a_limit_is_refused_with_that_limit():
    with pytest.raises(SettingError, match="ratio is 7: it must be a number above 0 and at most 5"):
        check_positive("ratio", 7, at_most=5)


def test_a_probability_is_strictly_between_0_and_1():
    check_probability("beta", 0.5)
    with pytest.raises(SettingError, match="beta is 1"):
        check_probability("beta", 1)


def test_a_whole_number_has_both_ends_checked():
    check_whole("period", 2, 2, 5)
    check_whole("period", 5, 2, 5)
    for outside in (1, 6):
        with pytest.raises(SettingError, match=f"period is {outside}: .* from 2 to 5"):
            check_whole("period", outside, 2, 5)
