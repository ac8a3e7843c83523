"""Exact draws: a binomial number and a uniform one, from given bytes and from real ones."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy.binomial import draw_below, draw_binomial
from streamer.privacy.randomness import secure_bytes
from tests.monitors.chance import implausible_law

repeatable = settings(max_examples=60, deadline=None, derandomize=True, database=None)
BITS = 192
DRAWS = 20_000
PROBABILITIES = [Decimal("0.25"), Decimal("0.001"), Decimal("0.9"), Decimal("1e-30")]


class GivenBytes:
    """A source that gives these numbers, one for each call, and notes the calls."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)
        self.sizes = []

    def __call__(self, size):
        self.sizes.append(size)
        return self.numbers.pop(0).to_bytes(size, "little")


def shares_below(trials, probability):
    """Pr[successes <= n] for every n, as exact fractions."""
    p = Fraction(probability)
    masses = [math.comb(trials, n) * p**n * (1 - p) ** (trials - n) for n in range(trials + 1)]
    return [sum(masses[: n + 1]) for n in range(trials + 1)]


@pytest.mark.parametrize("probability", PROBABILITIES)
@repeatable
@given(trials=st.integers(0, 9), uniform=st.integers(0, 2**BITS - 1))
def test_a_uniform_number_is_inverted_exactly(probability, trials, uniform):
    drawn = draw_binomial(trials, probability, GivenBytes(uniform))
    share = Fraction(uniform, 2**BITS)
    expected = sum(below <= share for below in shares_below(trials, probability)[:-1])
    assert drawn == expected


@pytest.mark.parametrize("successes", range(5))
def test_each_number_begins_exactly_where_the_one_before_it_ends(successes):
    edge = math.ceil(shares_below(6, "0.25")[successes] * 2**BITS)
    before, after = GivenBytes(edge - 1), GivenBytes(edge)
    assert draw_binomial(6, Decimal("0.25"), before) == successes
    assert draw_binomial(6, Decimal("0.25"), after) == successes + 1


def test_it_never_counts_more_successes_than_trials():
    assert draw_binomial(3, Decimal("1e-40"), GivenBytes(2**BITS - 1)) <= 3


def test_it_ends_where_rounding_leaves_the_sum_of_all_probabilities_below_the_uniform_number():
    assert draw_binomial(300, Decimal("0.7"), GivenBytes(2**BITS - 1)) == 300


def test_no_trials_have_no_success():
    assert draw_binomial(0, Decimal("0.5"), GivenBytes(2**BITS - 1)) == 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999999, 1 - 1e-15])
def test_many_trials_of_a_rare_success_are_inverted_exactly(share):
    trials, probability = 10**12, Decimal("3e-12")
    drawn = draw_binomial(trials, probability, GivenBytes(int(Fraction(share) * 2**BITS)))
    with mpmath.workdps(60):
        p, below, number = mpmath.mpf("3e-12"), mpmath.mpf(0), -1
        while below <= share:
            number += 1
            below += mpmath.binomial(trials, number) * p**number * (1 - p) ** (trials - number)
    assert drawn == number


def counts_of(draw, values):
    drawn = [draw() for _ in range(DRAWS)]
    return [drawn.count(value) for value in range(values)]


def binomial_law(trials, probability):
    below = [0.0, *map(float, shares_below(trials, probability))]
    return [later - earlier for earlier, later in pairwise(below)]


# False alarms of the tests with real bytes: below one in a billion each.
def test_real_bytes_give_the_binomial_law():
    counts = counts_of(lambda: draw_binomial(5, Decimal("0.3")), 6)
    assert not implausible_law(counts, DRAWS, binomial_law(5, "0.3"))


def test_a_probability_that_is_a_tenth_too_large_is_noticed():
    counts = counts_of(lambda: draw_binomial(5, Decimal("0.33")), 6)
    assert implausible_law(counts, DRAWS, binomial_law(5, "0.3"))


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 256, 257, 1000])
def test_numbers_below_a_bound_are_uniform(bound):
    counts = counts_of(lambda: draw_below(bound), bound)
    assert sum(counts) == DRAWS
    assert not implausible_law(counts, DRAWS, [1 / bound] * bound)


def test_a_remainder_in_place_of_a_rejection_is_noticed():
    counts = counts_of(lambda: secure_bytes(1)[0] % 7 % 5, 5)
    assert implausible_law(counts, DRAWS, [1 / 5] * 5)


def test_a_number_that_is_too_large_is_thrown_away_and_drawn_again():
    source = GivenBytes(5, 7, 6, 2)
    assert draw_below(5, source) == 2
    assert len(source.sizes) == 4


@pytest.mark.parametrize(("bound", "size"), [(2, 1), (256, 1), (257, 2), (65536, 2), (65537, 3)])
def test_it_reads_no_more_bytes_than_the_bound_has(bound, size):
    source = GivenBytes(0)
    draw_below(bound, source)
    assert source.sizes == [size]


def test_bits_beyond_the_bound_are_ignored():
    assert draw_below(5, GivenBytes(0b11111_011)) == 3


def test_one_choice_needs_no_randomness():
    assert draw_below(1, GivenBytes(0)) == 0


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_that_leaves_nothing_to_choose_from_is_refused(bound):
    with pytest.raises(ValueError, match=f"no whole number from 0 to {bound - 1}"):
        draw_below(bound, GivenBytes(0))
