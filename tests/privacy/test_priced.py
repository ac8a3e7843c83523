"""The least g of priced answers: conditions (A) and (B), evaluated again by their definition."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy import priced
from streamer.privacy.gaussian_sums import GaussianSums
from streamer.privacy.priced import Direction, Distances, Growth
from streamer.privacy.prices import CHANGES, FULL, LOUD, VALUES, Questions
from tests.privacy.precise_gaussian import PreciseGaussian

repeatable = settings(max_examples=60, deadline=None, derandomize=True, database=None)

LOUDLY = Questions(loud=LOUD)
# σ, α and H as calibrations find them, for rare and for frequent reports, and a tiny σ.
CASES = [
    (17.309, 19.2, 1.4),
    (70.498, 18.5, 0.27),
    (6.4, 7.3, 2.2),
    (0.5, 2.0, 4.0),
]
every_case = pytest.mark.parametrize(("sigma", "order", "rate"), CASES)
every_direction = pytest.mark.parametrize("direction", Direction)
every_kind = pytest.mark.parametrize("kinds", [VALUES, LOUDLY, CHANGES], ids=str)


def growth(sigma, order, direction, kinds) -> Growth:
    return Growth(Distances.grid(GaussianSums(sigma), order), order, direction, kinds)


class Answers:
    """The sums of (A) and (B) with 40 digits, from the masses of the noise alone."""

    def __init__(self, sigma, order, direction, kinds) -> None:
        self._law, self._order = PreciseGaussian(sigma), mpmath.mpf(order)
        self._present = direction is Direction.PRESENT
        self._kinds, self._loud = kinds, math.ceil(sigma)
        self._report = cache(lambda y: self._power(self._law.mass(y - 1), self._law.mass(y)))

    def largest(self, d: int, rate: float) -> mpmath.mpf:
        law, rate = self._law, mpmath.mpf(rate)
        quiet = self._power(law.at_most(d - 2), law.at_most(d - 1))
        sums = [quiet + self._reports(d, rate)]
        if self._kinds.still_there:
            there = self._power(law.at_least(d - 1), law.at_least(d))
            sums.append(quiet * mpmath.exp(-rate) + there)
        return max(sums)

    def _reports(self, d: int, rate: mpmath.mpf) -> mpmath.mpf:
        law, total, y = self._law, mpmath.mpf(0), d
        beyond = 14 * float(law.sigma) + float(self._order)
        quiet, loud = mpmath.exp(-rate), mpmath.exp(-rate * self._kinds.loud / FULL)
        # What is farther out than the law reaches has no weight.
        y = max(y, -round(beyond))
        while y <= max(d, 0) + beyond:
            total += self._report(y) * (loud if y - d >= self._loud else quiet)
            y += 1
        return total

    def _power(self, with_user: mpmath.mpf, without: mpmath.mpf) -> mpmath.mpf:
        first, second = (with_user, without) if self._present else (without, with_user)
        return first**self._order * second ** (1 - self._order)


@pytest.mark.slow
@every_case
@every_direction
@pytest.mark.parametrize("kinds", [LOUDLY, CHANGES], ids=str)
def test_no_distance_exceeds_the_bound_near_or_far(sigma, order, rate, direction, kinds):
    bound = growth(sigma, order, direction, kinds).bound(rate, 1e-9)
    far = [30, 60]
    places = [*np.linspace(-10, 10, 17), *far, *(-place for place in far)]
    with mpmath.workdps(40):
        answers = Answers(sigma, order, direction, kinds)
        most = mpmath.exp(mpmath.mpf(bound))
        for d in sorted({round(place * sigma) for place in places}):
            assert answers.largest(d, rate) <= most


@pytest.mark.slow
@every_case
@every_direction
@every_kind
def test_the_bound_is_reached(sigma, order, rate, direction, kinds):
    made = growth(sigma, order, direction, kinds)
    bound = made.bound(rate, 1e-9)
    reach = round(9 * sigma + order) + 5
    numbers = np.arange(-reach, reach + 1.0)
    points = Distances(GaussianSums(sigma), numbers)
    excess = made._parts(points, points).excess(rate)
    worst = int(numbers[int(excess.argmax())])
    with mpmath.workdps(40):
        reached = Answers(sigma, order, direction, kinds).largest(worst, rate) - 1
    assert math.expm1(bound) == pytest.approx(max(0.0, float(reached)), rel=1e-6, abs=3e-9)


@pytest.mark.slow
@every_direction
@every_kind
@repeatable
@given(
    st.floats(min_value=0.5, max_value=300.0),
    st.floats(min_value=0.01, max_value=6.0),
    st.floats(min_value=0.0, max_value=8.0),
)
def test_a_block_is_never_below_the_integers_in_it(direction, kinds, sigma, ratio, rate):
    order = 1 + ratio * sigma
    made = growth(sigma, order, direction, kinds)
    low = np.round(np.linspace(-8 * sigma, 8 * sigma, 40))
    width = max(1.0, round(sigma / 3))
    blocks, _ = made._block_bounds(low, low + width, rate)
    outer = made._parts(
        Distances(made._grid.sums, np.array([-np.inf, low[-1]])),
        Distances(made._grid.sums, np.array([low[0], np.inf])),
    ).excess(rate, 1e-11)

    def exact(numbers):
        points = Distances(made._grid.sums, numbers)
        return made._parts(points, points).excess(rate)

    for inside in (low, low + np.floor(width / 3), low + np.floor(width / 2), low + width):
        assert not np.any(exact(inside) > blocks)
    beyond = np.array([[0.0, 1.0, sigma, 20 * sigma]])
    assert np.all(exact(np.floor(low[0] - beyond)) <= outer[0])
    assert np.all(exact(np.ceil(low[-1] + beyond)) <= outer[1])


@every_direction
@every_kind
@pytest.mark.parametrize("sigma", [60.0, 3000.0])
def test_a_block_of_a_third_the_length_is_about_nine_times_as_close(sigma, direction, kinds):
    """So few blocks are enough, however close the sums are to 1."""
    made = growth(sigma, 1 + 0.3 * sigma, direction, kinds)
    middles = np.round(np.linspace(-2 * sigma, 5 * sigma, 30))

    def lost(half: float) -> np.ndarray:
        length = round(half * sigma)
        bounds, ends = made._block_bounds(middles - length, middles + length, 0.3)
        points = Distances(made._grid.sums, middles)
        return bounds - np.maximum(ends, made._parts(points, points).excess(0.3))

    assert lost(0.05).sum() < lost(0.15).sum() / 6


@every_direction
@pytest.mark.parametrize("kinds", [VALUES, CHANGES], ids=str)
@pytest.mark.parametrize("sigma", [20_000.0, 1e6])
def test_a_large_sigma_is_bounded_in_blocks_as_it_is_by_its_integers(sigma, direction, kinds):
    """In units of σ little changes: a smaller σ, integer by integer, has nearly this g."""
    small, rate = 4000.0, 0.3
    blocks, single = (
        growth(each, 1 + 0.26 * each, direction, kinds).bound(rate, 1e-7) for each in (sigma, small)
    )
    assert blocks == pytest.approx(single, rel=0.01)


@every_direction
@every_kind
def test_no_answer_reveals_more_than_the_noisy_count_itself(direction, kinds):
    sigma, order = 40.0, 12.0
    most = order * (order - 1) / (2 * sigma**2)
    made = growth(sigma, order, direction, kinds)
    assert made.bound(0.0, 1e-9) == pytest.approx(most, rel=1e-10)
    assert 0 <= made.bound(0.2, 1e-9) < most


@every_direction
@repeatable
@given(
    st.floats(min_value=0.0, max_value=6.0),
    st.floats(min_value=0.001, max_value=3.0),
    st.floats(min_value=2.0, max_value=150.0),
)
def test_g_falls_and_is_convex_in_the_rate(direction, rate, more, sigma):
    made = growth(sigma, 1 + 0.3 * sigma, direction, CHANGES)
    left, middle, right = (made.estimate(rate + place * more) for place in (0, 1, 2))
    assert right <= middle <= left
    assert middle <= (left + right) / 2 + 1e-12


@every_direction
def test_more_kinds_and_lower_prices_never_reveal_less(direction):
    values, loudly, changes = (
        growth(62.0, 19.0, direction, kinds).bound(0.3, 1e-9) for kinds in (VALUES, LOUDLY, CHANGES)
    )
    assert values <= loudly <= changes


@pytest.mark.parametrize(("first", "last", "rate"), [(-200, 60, 0.21), (100, 700, 0.02)])
def test_a_window_without_its_tails_would_be_caught(first, last, rate):
    """Where the grid ends too early on one side the sums are larger beyond; the bound knows."""
    narrow = Distances(GaussianSums(62.0), np.arange(float(first), float(last)))
    made = Growth(narrow, 19.0, Direction.PRESENT, VALUES)
    whole = growth(62.0, 19.0, Direction.PRESENT, VALUES)
    assert made.estimate(rate) < 0.7 * whole.estimate(rate)
    assert made.bound(rate, 1e-9) >= whole.estimate(rate)


def test_blocks_that_are_too_many_are_left_as_they_are(monkeypatch):
    exact = growth(5000.0, 1300.0, Direction.ABSENT, CHANGES).bound(0.25, 1e-8)
    monkeypatch.setattr(priced, "_MOST_BLOCKS", 10)
    assert growth(5000.0, 1300.0, Direction.ABSENT, CHANGES).bound(0.25, 1e-8) > exact
