"""The noise that a guarantee gets is enough, and hardly more than enough."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.privacy.calibration import calibrate, exact_scale
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.loss import charge_delta
from streamer.privacy.search import SCALE_STEP
from streamer.privacy.terms import Method, Neighbours
from tests.privacy.test_loss import true_delta

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
LAPLACE = [Method.EXACT, Method.THEOREM, Method.FRACTIONAL]
repeatable = settings(max_examples=40, deadline=None, derandomize=True, database=None)

# Scales of w that an independent computation found (docs/privacy.md).
REFERENCE = [
    (1.0, 1e-6, 1, 15.7384, 16.0677),
    (1.0, 1e-6, 3, 19.9131, 20.9695),
    (1.0, 1e-6, 10, 28.2634, 31.3820),
    (1.0, 1e-6, 30, 41.9161, 49.4199),
    (1.0, 1e-6, 100, 68.8309, 86.3504),
    (0.5, 1e-8, 3, 50.8391, 53.0606),
]
TABLE = [
    (Guarantee(epsilon, delta, k, neighbours), scale)
    for epsilon, delta, k, *pair in REFERENCE
    for neighbours, scale in zip((ADD_REMOVE, REPLACE), pair, strict=True)
]
REACHING = [
    Guarantee(0.05, 1e-9, 5, REPLACE),
    Guarantee(0.05, 1e-9, 5, ADD_REMOVE),
    Guarantee(4.0, 1e-12, 20, REPLACE),
    Guarantee(15.0, 1e-3, 2, ADD_REMOVE),
    Guarantee(1.0, 0.1, 1, REPLACE),
    Guarantee(1.0, 1e-6, 1_000, REPLACE),
    Guarantee(1.0, 1e-6, 1_000, ADD_REMOVE),
    Guarantee(1.0, 1e-6, 10_000, REPLACE),
    Guarantee(1.0, 1e-6, 1_000, ADD_REMOVE),
]


def short(value: object) -> str | None:
    if not isinstance(value, Guarantee):
        return None
    return f"{value.epsilon}-{value.delta}-{value.contributions}-{value.neighbours}"


def true_delta_at(guarantee: Guarantee, scale: float) -> float:
    return true_delta(guarantee.epsilon, scale, guarantee.contributions, guarantee.neighbours)


@pytest.mark.parametrize(("guarantee", "scale"), TABLE, ids=short)
def test_the_scale_is_the_reference_scale(guarantee, scale):
    assert calibrate(guarantee).noise_scale == pytest.approx(scale, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [row[0] for row in TABLE] + REACHING, ids=short)
def test_the_scale_is_private_and_a_thousandth_less_is_not(guarantee):
    scale = calibrate(guarantee).noise_scale
    assert true_delta_at(guarantee, scale) <= guarantee.delta
    assert true_delta_at(guarantee, 0.999 * scale) > guarantee.delta


epsilons = st.floats(min_value=0.02, max_value=20.0)
deltas = st.floats(min_value=-12.0, max_value=-1.0).map(lambda power: 10**power)
contributions = st.integers(min_value=1, max_value=300)
neighbouring = st.sampled_from(Neighbours)
factors = st.floats(min_value=1.01, max_value=4.0)


def scale_of(epsilon, delta, k, neighbours, method=Method.EXACT) -> float:
    return calibrate(Guarantee(epsilon, delta, k, neighbours), method).noise_scale


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, contributions, neighbouring, st.integers(min_value=1, max_value=50))
def test_more_contributions_need_more_noise(epsilon, delta, k, neighbours, more):
    assert scale_of(epsilon, delta, k + more, neighbours) > scale_of(epsilon, delta, k, neighbours)


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, contributions, neighbouring, factors)
def test_a_larger_epsilon_or_delta_needs_less_noise(epsilon, delta, k, neighbours, factor):
    scale = scale_of(epsilon, delta, k, neighbours)
    assert scale_of(epsilon * factor, delta, k, neighbours) < scale
    assert scale_of(epsilon, delta * factor, k, neighbours) < scale


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, contributions)
def test_replacing_a_user_needs_at_least_the_noise_of_removing_one(epsilon, delta, k):
    replaced, removed = (scale_of(epsilon, delta, k, each) for each in (REPLACE, ADD_REMOVE))
    assert replaced >= removed


@repeatable
@given(epsilons, deltas, contributions, neighbouring, st.floats(min_value=0.0, max_value=0.9))
def test_a_calibrated_scale_is_private_with_what_the_key_set_leaves(
    epsilon, delta, k, neighbours, share
):
    calibration = calibrate(Guarantee(epsilon, delta, k, neighbours), keys_delta=share * delta)
    loss = charge_delta(epsilon, calibration.noise_scale, k, neighbours)
    assert loss <= calibration.charge_delta


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("k", [1, 3, 30, 1_000, 10_000])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_other_analyses_never_need_less_noise_than_the_exact_one(epsilon, delta, k, neighbours):
    exact = scale_of(epsilon, delta, k, neighbours)
    fractional = scale_of(epsilon, delta, k, neighbours, Method.FRACTIONAL)
    theorem = scale_of(epsilon, delta, k, neighbours, Method.THEOREM)
    assert exact < fractional < theorem


@pytest.mark.parametrize("method", LAPLACE)
@pytest.mark.parametrize("keys_delta", [1e-9, 1e-7, 9e-7])
def test_the_key_sets_share_is_taken_from_delta_alone(method, keys_delta):
    shared = calibrate(Guarantee(1.0, 1e-6, 3), method, keys_delta).noise_scale
    rest = calibrate(Guarantee(1.0, 1e-6 - keys_delta, 3), method).noise_scale
    assert shared == pytest.approx(rest, rel=1e-7)


def test_a_key_set_that_cost_nothing_would_be_caught():
    shared = calibrate(Guarantee(1.0, 1e-6, 3), keys_delta=5e-7).noise_scale
    assert calibrate(Guarantee(1.0, 1e-6, 3)).noise_scale < 0.97 * shared


@pytest.mark.slow
@repeatable
@given(epsilons, deltas, contributions, neighbouring)
def test_scales_are_rounded_up_to_six_decimals(epsilon, delta, k, neighbours):
    scale = scale_of(epsilon, delta, k, neighbours)
    least = exact_scale(epsilon, delta * (1 - 1e-9), k, neighbours)
    assert scale == round(scale, 6)
    assert least <= scale <= least + 2 * SCALE_STEP


@repeatable
@given(epsilons, deltas, contributions, neighbouring)
def test_the_small_noise_keeps_the_papers_ratio(epsilon, delta, k, neighbours):
    inside = (k / epsilon) * math.log(k / delta)
    assume(inside > math.e)
    calibration = calibrate(Guarantee(epsilon, delta, k, neighbours))
    assert calibration.delta1 == calibration.noise_scale / 10
    assert calibration.delta1 / calibration.delta2 == pytest.approx(math.log(inside), rel=1e-12)


def test_the_small_noise_is_never_larger_than_its_cap_for_a_large_epsilon():
    calibration = calibrate(Guarantee(50.0, 1e-6, 1))
    assert calibration.delta2 == calibration.delta1


@pytest.mark.parametrize(
    ("guarantee", "cap"), [(Guarantee(1.0, 1e-6, 3), 2), (Guarantee(10.0, 1e-6, 1), 0)]
)
def test_the_cap_is_delta1_rounded_down(guarantee, cap):
    calibration = calibrate(guarantee)
    assert calibration.cap == cap
    assert cap <= calibration.delta1 < cap + 1


@pytest.mark.parametrize("keys_delta", [0.0, 1e-8, 9e-7])
def test_the_two_parts_of_delta_add_up_to_it(keys_delta):
    calibration = calibrate(Guarantee(1.0, 1e-6, 3), keys_delta=keys_delta)
    assert calibration.keys_delta == keys_delta
    assert calibration.charge_delta + keys_delta == pytest.approx(1e-6, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("method", "covers"),
    [(Method.EXACT, False), (Method.THEOREM, True), (Method.FRACTIONAL, True)],
)
def test_only_the_exact_analysis_is_for_whole_counts_alone(method, covers):
    assert calibrate(Guarantee(1.0, 1e-6, 3), method).fractional is covers


@pytest.mark.parametrize("method", LAPLACE)
def test_a_method_may_be_given_by_its_name(method):
    calibration = calibrate(Guarantee(2.0, 1e-5, 4), str(method.value))
    assert calibration.method is method
    assert calibration == calibrate(Guarantee(2.0, 1e-5, 4), method)


@pytest.mark.parametrize("method", ["renyi", "EXACT", "", None])
def test_an_unknown_method_is_refused_with_the_known_ones(method):
    with pytest.raises(SettingError) as caught:
        calibrate(Guarantee(1.0, 1e-6, 3), method)
    assert caught.value.setting == "calibration"
    assert f"calibration is {method}" in str(caught.value)
    assert "horizon, exact, theorem, fractional" in str(caught.value)


@pytest.mark.parametrize("keys_delta", [1e-6, 0.5, 1.0, -1e-9, math.nan])
def test_a_key_set_that_leaves_nothing_for_the_charges_is_refused(keys_delta):
    with pytest.raises(SettingError) as caught:
        calibrate(Guarantee(1.0, 1e-6, 3), keys_delta=keys_delta)
    assert caught.value.setting == "delta of the key set"
    assert f"delta of the key set is {keys_delta}" in str(caught.value)
