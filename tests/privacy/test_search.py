"""The one-dimensional searches find what they promise, and on the safe side of it."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy.search import (
    LEAST_CALIBRATED,
    falling_root,
    first_integer,
    first_power_of_two,
    least_point,
    round_up,
    smallest_scale,
    smallest_true,
)

repeatable = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@repeatable
@given(st.floats(min_value=1e-6, max_value=1e6))
def test_smallest_true_answers_from_above_and_within_its_precision(limit):
    found = smallest_true(lambda x: x >= limit, 0.0, 2e6)
    assert limit <= found <= limit * (1 + 2e-9)


def test_smallest_true_is_as_precise_as_it_is_asked_to_be():
    asked = []

    def holds(x):
        asked.append(x)
        return x >= math.pi

    found = smallest_true(holds, 0.0, 8.0, precision=1e-3)
    assert math.pi <= found <= math.pi * (1 + 1.01e-3)
    assert len(asked) < 20


def test_smallest_true_is_the_lower_end_where_that_holds_already():
    assert smallest_true(lambda x: x >= 1, 2.0, 3.0) == 2.0


@pytest.mark.parametrize(("limit", "power"), [(0.1, 1.0), (1.0, 1.0), (1.1, 2.0), (5.0, 8.0)])
def test_first_power_of_two_is_the_first_that_holds_from_1_on(limit, power):
    assert first_power_of_two(lambda x: x >= limit) == power


@repeatable
@given(st.integers(min_value=-(10**18), max_value=10**18))
def test_first_integer_finds_the_turn_wherever_it_is(turn):
    assert first_integer(lambda z: z >= turn) == turn


@repeatable
@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=0, max_value=10**12))
def test_first_integer_is_never_below_the_least_and_never_asks_below_it(turn, least):
    def holds(z):
        assert z >= least
        return z >= turn

    assert first_integer(holds, least=least) == max(turn, least)


@repeatable
@given(st.floats(min_value=LEAST_CALIBRATED * 1.001, max_value=1e12))
def test_smallest_scale_answers_with_a_private_scale_next_to_the_limit(limit):
    found = smallest_scale(lambda scale: scale >= limit)
    assert limit <= found <= limit * (1 + 2e-9)


def test_a_scale_is_never_below_the_smallest_however_little_would_do():
    assert smallest_scale(lambda scale: True) == LEAST_CALIBRATED


def test_scales_below_the_smallest_are_not_even_asked_about():
    asked = []

    def private(scale):
        asked.append(scale)
        return True

    smallest_scale(private)
    assert min(asked) >= LEAST_CALIBRATED


@repeatable
@given(st.floats(min_value=-9.0, max_value=9.0))
def test_least_point_finds_the_bottom_of_one_valley(bottom):
    found = least_point(lambda x: (x - bottom) ** 2, -10.0, 10.0, rounds=40)
    assert found == pytest.approx(bottom, abs=1e-6)


@pytest.mark.parametrize(("slope", "end"), [(1.0, 2.0), (-1.0, 5.0)])
def test_least_point_comes_close_to_the_end_where_the_valley_lies_there(slope, end):
    assert least_point(lambda x: slope * x, 2.0, 5.0, rounds=40) == pytest.approx(end, abs=1e-6)


@pytest.mark.parametrize("rounds", [0, 9, 10])
@pytest.mark.parametrize("bottom", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_least_point_answers_with_the_cheapest_point_it_has_asked_about_in_a_valley(bottom, rounds):
    costs = {}

    def cost(x):
        costs[x] = abs(x - bottom)
        return costs[x]

    found = least_point(cost, 0.0, 1.0, rounds)
    assert costs[found] == min(costs.values())


class TestFallingRoot:
    @pytest.mark.parametrize("start", [-5.0, 0.0, 0.7, 9.0])
    def test_it_is_within_the_precision_and_not_above_0(self, start):
        def value(x):
            return math.exp(-x) - 0.5

        found = falling_root(value, start, (-20.0, 20.0), 1e-6)
        assert value(found) <= 0
        assert found - math.log(2) <= 1e-6

    def test_an_end_is_returned_where_there_is_no_root(self):
        assert falling_root(lambda x: 1 - x, 0.3, (-2.0, 0.5), 1e-6) == 0.5
        assert falling_root(lambda x: -1 - x, 0.3, (-0.5, 2.0), 1e-6) == -0.5

    def test_a_nearly_straight_line_takes_few_evaluations(self):
        asked = []

        def value(x):
            asked.append(x)
            return 3 - 2 * x + 0.01 * x**2

        falling_root(value, 1.0, (-9.0, 9.0), 1e-4)
        assert len(asked) < 12


@pytest.mark.parametrize("scale", [0.5, 31.3876411, 123456.7890124])
def test_a_scale_is_rounded_up_to_six_decimals(scale):
    rounded = round_up(scale)
    assert rounded == round(rounded, 6)
    assert scale <= rounded <= scale + 1.0001e-6
