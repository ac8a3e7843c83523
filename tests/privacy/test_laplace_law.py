"""The law of Z = w + min(v, cap), against an explicit convolution and against draws."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.laplace_law import LaplaceLaw
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import SeededBytes
from tests.privacy.test_noise import divergence

repeatable = settings(max_examples=150, deadline=None, derandomize=True, database=None)
FALSE_ALARM = 1e-9
DRAWS = 2_000_000

LAWS = [
    LaplaceLaw(20.97, 0.55, 2),
    LaplaceLaw(3.0, 1.5, 4),
    LaplaceLaw(5.0, 0.3, 0),
    LaplaceLaw(6.0, 5.0, 0),
    LaplaceLaw(1.5, 4.0, 3),
    LaplaceLaw(0.3, 0.05, 0),
    LaplaceLaw(10.0, 10.0, 7),
    LaplaceLaw(40.0, 3.0, 12),
]


class ExplicitLaw:
    """Every probability of Z, by adding up those of all pairs of w and v."""

    def __init__(self, law: LaplaceLaw) -> None:
        # Beyond this many scales there is less than e^-150 of either noise.
        large, small = math.ceil(150 * law.scale), math.ceil(150 * law.small_scale)
        capped = np.zeros(small + law.cap + 1)
        for value, mass in zip(
            range(-small, small + 1), laplace(law.small_scale, small), strict=True
        ):
            capped[min(value, law.cap) + small] += mass
        self.masses = np.convolve(laplace(law.scale, large), capped)
        self.least = -large - small
        self.downwards = np.cumsum(self.masses[::-1])[::-1]
        self.upwards = np.cumsum(self.masses)

    def at_least(self, bound: int) -> float:
        return float(self.downwards[bound - self.least])

    def below(self, bound: int) -> float:
        return float(self.upwards[bound - 1 - self.least])


def laplace(scale: float, reach: int) -> np.ndarray:
    """Pr[x] = (1-r)/(1+r)·r^|x| for x from -reach to reach."""
    ratio = math.exp(-1 / scale)
    places = np.abs(np.arange(-reach, reach + 1))
    return -math.expm1(-1 / scale) / (1 + ratio) * np.exp(-places / scale)


@pytest.fixture(params=LAWS, ids=lambda law: f"{law.scale}-{law.small_scale}-{law.cap}")
def law(request) -> LaplaceLaw:
    return request.param


@pytest.fixture
def explicit(law) -> ExplicitLaw:
    return ExplicitLaw(law)


def bounds_of(law: LaplaceLaw) -> list[int]:
    far = math.ceil(60 * law.scale)
    near = range(-law.cap - 25, law.cap + 26)
    return sorted({*near, *range(-far, far + 1, max(1, far // 40))})


# 1. Against the explicit law


def test_the_explicit_law_adds_up_to_1(explicit):
    assert math.fsum(explicit.masses) == pytest.approx(1.0, abs=1e-12)


def test_both_tails_agree_with_an_explicit_convolution(law, explicit):
    for bound in bounds_of(law):
        assert law.at_least(bound) == pytest.approx(explicit.at_least(bound), rel=1e-11, abs=0)
        assert law.below(bound) == pytest.approx(explicit.below(bound), rel=1e-11, abs=0)


@pytest.mark.parametrize("confidence", [0.0, 0.5, 0.95, 0.999999])
def test_the_margin_is_the_smallest_that_has_the_confidence(law, explicit, confidence):
    margin = law.margin(confidence)

    def outside(half: int) -> float:
        return explicit.below(-half) + explicit.at_least(half + 1)

    assert outside(margin) <= 1 - confidence + 1e-13
    assert margin == 0 or outside(margin - 1) > 1 - confidence


def test_the_usual_margin_is_that_of_95_percent(law):
    assert law.margin() == law.margin(0.95)


@pytest.mark.parametrize("probability", [0.9, 0.5, 0.01, 1e-9, 1e-20])
def test_the_smallest_bound_is_the_first_that_is_rare_enough(law, explicit, probability):
    bound = law.smallest_bound(probability)
    assert explicit.at_least(bound) <= probability < explicit.at_least(bound - 1)


@pytest.mark.parametrize("probability", [0.9, 0.5, 0.01, 1e-9, 1e-20])
def test_the_largest_bound_is_the_last_that_is_rare_enough_to_fall_below(
    law, explicit, probability
):
    bound = law.largest_bound(probability)
    assert explicit.below(bound) <= probability < explicit.below(bound + 1)


# 2. At least, not above


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.97, 1000.0])
@pytest.mark.parametrize("distance", [1, 2, 7, 300])
def test_the_tail_of_w_alone_includes_its_end(scale, distance):
    # A v of scale 0.001 is 0 but for a chance of e^-1000.
    ratio = math.exp(-1 / scale)
    alone = LaplaceLaw(scale, 1e-3, 0)
    assert alone.at_least(distance) == pytest.approx(
        ratio**distance / (1 + ratio), rel=1e-12, abs=0
    )
    assert alone.below(-distance) == pytest.approx(
        ratio ** (distance + 1) / (1 + ratio), rel=1e-12, abs=0
    )


def test_at_least_and_above_differ_by_the_probability_of_the_bound_itself(law, explicit):
    for bound in (0, 1, law.cap, law.cap + 5):
        mass = explicit.masses[bound - explicit.least]
        difference = law.at_least(bound) - law.at_least(bound + 1)
        assert difference == pytest.approx(mass, rel=1e-9, abs=0)
        assert mass > 0


# 3. All laws


laws = st.builds(
    LaplaceLaw,
    scale=st.floats(min_value=0.1, max_value=1e8),
    small_scale=st.floats(min_value=1e-3, max_value=1e7),
    cap=st.integers(min_value=0, max_value=10**6),
)
bounds = st.integers(min_value=-(10**9), max_value=10**9)


@repeatable
@given(laws, bounds)
def test_every_number_is_below_the_bound_or_at_least_the_bound(law, bound):
    assert law.at_least(bound) + law.below(bound) == pytest.approx(1.0, abs=1e-12)


@repeatable
@given(laws, bounds, st.integers(min_value=1, max_value=10**6))
def test_tails_grow_and_fall_with_the_bound(law, bound, more):
    rounding = 1 + 1e-12
    assert law.at_least(bound + more) <= law.at_least(bound) * rounding
    assert law.below(bound) <= law.below(bound + more) * rounding


@repeatable
@given(laws, st.floats(min_value=-30.0, max_value=-0.01).map(lambda power: 10**power))
def test_bounds_are_where_the_tails_cross_the_probability(law, probability):
    upper, lower = law.smallest_bound(probability), law.largest_bound(probability)
    assert law.at_least(upper) <= probability < law.at_least(upper - 1)
    assert law.below(lower) <= probability < law.below(lower + 1)


def test_a_law_takes_its_scales_and_its_cap_from_the_calibration():
    calibration = calibrate(Guarantee(1.0, 1e-6, 100))
    law = calibration.law
    assert (law.scale, law.small_scale) == (calibration.noise_scale, calibration.delta2)
    assert law.cap == calibration.cap == 8


# 4. Fifty digits


def precisely(law: LaplaceLaw, bound: int) -> mpmath.mpf:
    """Pr[Z >= bound], added up over every value of v̄ that has any weight."""
    large, small = 1 / mpmath.mpf(law.scale), 1 / mpmath.mpf(law.small_scale)
    r, s = mpmath.exp(-large), mpmath.exp(-small)
    reach = math.ceil(200 * law.small_scale)
    v = {value: (1 - s) / (1 + s) * s ** abs(value) for value in range(-reach, law.cap)}
    v[law.cap] = s**law.cap / (1 + s)
    return mpmath.fsum(mass * r ** (bound - value) / (1 + r) for value, mass in v.items())


PRECISE = [law for law in LAWS if law.small_scale != law.scale]


@pytest.mark.parametrize("law", PRECISE, ids=str)
@pytest.mark.parametrize("beyond", [0, 1, 40, 5000])
def test_the_precise_tail_has_fifty_digits(law, beyond):
    with mpmath.workdps(90):
        truth = precisely(law, law.cap + beyond)
        found = mpmath.mpf(str(law.precise_at_least(law.cap + beyond)))
        assert abs(found / truth - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("law", PRECISE, ids=str)
def test_the_precise_tail_agrees_with_the_quick_one(law):
    for bound in range(law.cap, law.cap + 30):
        assert float(law.precise_at_least(bound)) == pytest.approx(
            law.at_least(bound), rel=1e-12, abs=0
        )


def test_the_precise_tail_is_refused_below_the_cap():
    with pytest.raises(ValueError, match="bound is 3: it must be at least the cap 4"):
        LaplaceLaw(3.0, 1.5, 4).precise_at_least(3)


# 5. Against draws


def draws_of(law: LaplaceLaw, cap: float) -> np.ndarray:
    source = SeededBytes(8)
    w = DiscreteLaplace(law.scale, source).draw(DRAWS)
    v = DiscreteLaplace(law.small_scale, source).draw(DRAWS)
    return w + np.minimum(v, cap).astype(np.int64)


def disagrees(noise: np.ndarray, law: LaplaceLaw, *, above: bool = False) -> bool:
    """Whether some tail of the draws is not that of the law.

    Chernoff and a union over the bounds: a false alarm has probability FALSE_ALARM at
    most, one in a billion.
    """
    bounds = sorted({round(law.scale * c) + d for c in (-4, -1, 0, 1, 4) for d in (-1, 0, 1, 3)})
    limit = math.log(2 * len(bounds) / FALSE_ALARM)
    shares = [np.mean(noise > bound) if above else np.mean(noise >= bound) for bound in bounds]
    return any(
        DRAWS * divergence(float(share), law.at_least(bound)) > limit
        for share, bound in zip(shares, bounds, strict=True)
    )


def test_draws_of_w_plus_capped_v_have_the_tails_of_the_law(law):
    assert not disagrees(draws_of(law, law.cap), law)


# Laws whose v is above the cap in a few percent of all draws at least.
@pytest.mark.parametrize("law", [law for law in LAWS if law.cap + 1 < 4 * law.small_scale], ids=str)
def test_draws_without_the_cap_are_told_apart(law):
    assert disagrees(draws_of(law, math.inf), law)


def test_counting_above_for_at_least_is_told_apart(law):
    assert disagrees(draws_of(law, law.cap), law, above=True)
