"""The Gaussian mechanism against arithmetic of 60 digits."""

import mpmath
import pytest

from streamer.privacy.gaussian import gaussian_delta, normal_bound, normal_tail

EPSILONS = [-3.0, -0.1, 0.0, 0.01, 0.5, 1.0, 4.0, 20.0]
DISTANCES = [0.01, 0.1, 0.3, 1.0, 3.0, 10.0]
BOUNDS = [-10.0, -1.0, 0.0, 0.5, 3.0, 8.0, 25.0]


def precise_tail(bound):
    return mpmath.erfc(mpmath.mpf(bound) / mpmath.sqrt(2)) / 2


def precise_delta(epsilon, distance):
    epsilon, distance = mpmath.mpf(epsilon), mpmath.mpf(distance)
    likely = precise_tail(epsilon / distance - distance / 2)
    unlikely = precise_tail(epsilon / distance + distance / 2)
    return likely - mpmath.exp(epsilon) * unlikely


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_delta_agrees_with_60_digits(epsilon, distance):
    with mpmath.workdps(60):
        expected = float(precise_delta(epsilon, distance))
    # A difference of two close numbers: exact to a few units of 1e-16, not relatively.
    assert gaussian_delta(epsilon, distance) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0])
def test_delta_is_the_hockey_stick_of_two_gaussians(epsilon, distance):
    with mpmath.workdps(30):
        # The density ratio exceeds e^ε exactly from this point on.
        edge = mpmath.mpf(epsilon) / distance + mpmath.mpf(distance) / 2
        expected = mpmath.quad(
            lambda x: mpmath.npdf(x, distance) - mpmath.exp(epsilon) * mpmath.npdf(x),
            [edge, edge + 5, edge + 50],
        )
    assert gaussian_delta(epsilon, distance) == pytest.approx(float(expected), rel=1e-9, abs=0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.6321205588285577)])
def test_without_a_distance_only_a_negative_epsilon_costs(epsilon, delta):
    assert gaussian_delta(epsilon, 0) == pytest.approx(delta, rel=1e-12, abs=0)


@pytest.mark.parametrize("distance", [1e-3, 0.1, 1.0])
def test_delta_is_never_negative_where_it_vanishes(distance):
    assert gaussian_delta(600.0, distance) == 0


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_tail_agrees_with_60_digits(bound):
    with mpmath.workdps(60):
        expected = float(precise_tail(bound))
    assert normal_tail(bound) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("probability", [0.4, 0.05, 1e-6, 1e-12, 1e-100])
def test_the_bound_is_the_smallest_with_so_small_a_tail(probability):
    bound = normal_bound(probability)
    assert normal_tail(bound) <= probability
    assert normal_tail(bound * (1 - 1e-8)) > probability


@pytest.mark.parametrize("probability", [0.5, 0.9])
def test_the_bound_is_never_below_zero(probability):
    assert normal_bound(probability) == 0
