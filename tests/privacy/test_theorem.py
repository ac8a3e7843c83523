"""The paper's theorems with their constants: noise as large as the paper says, no larger."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.privacy import calibration as calibration_module
from streamer.privacy import theorem
from streamer.privacy.calibration import calibrate, exact_scale
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.renyi import fractional_scale
from streamer.privacy.terms import Method, Neighbours
from streamer.privacy.theorem import theorem_scales

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
repeatable = settings(max_examples=60, deadline=None, derandomize=True, database=None)

# Upper bounds on the scale of w from a coarse search (docs/privacy.md): never to be exceeded.
REFERENCE = [
    (1.0, 1e-6, 1, 32_727, 76_586),
    (1.0, 1e-6, 3, 43_813, 100_958),
    (1.0, 1e-6, 10, 84_907, 190_702),
    (1.0, 1e-6, 30, 213_136, 468_347),
    (1.0, 1e-6, 100, 713_769, 1_542_919),
    (0.5, 1e-8, 3, 116_032, 261_402),
]
TABLE = [
    (epsilon, delta, k, neighbours, scale)
    for epsilon, delta, k, *pair in REFERENCE
    for neighbours, scale in zip((ADD_REMOVE, REPLACE), pair, strict=True)
]


# The theorems themselves, written down again: what noise of Δ₂ = (1/ε̃)·log(1/δ̃) promises.


def direct_epsilon(delta2: float, delta: float, k: int) -> float:
    """ξ = 75(k+1)ε̃/log(1/δ̃) + 25ε̃ with δ̃ = δ/3."""
    log_delta = math.log(3 / delta)
    inner = log_delta / delta2
    return 75 * (k + 1) * inner / log_delta + 25 * inner


def composed_epsilon(delta2: float, delta: float, k: int, share: float) -> float:
    """Advanced composition of ℓ = ⌈k/log(1/δ̃)⌉ epochs, 3ℓδ̃ + δ̂ = δ, δ̂ = share·δ."""
    slack = share * delta
    epochs = 1
    while math.ceil(k / math.log(3 * epochs / (delta - slack))) > epochs:
        epochs += 1
    log_delta = math.log(3 * epochs / (delta - slack))
    inner = log_delta / delta2
    each = 75 * (log_delta + 1) * inner / log_delta + 25 * inner
    return math.sqrt(2 * epochs * math.log(1 / slack)) * each + epochs * each * math.expm1(each)


def promised_epsilon(delta2: float, delta: float, k: int) -> float:
    """The best ε that the theorems prove for this noise, on a fine grid of shares."""
    shares = [math.exp(-13.8 * i / 3000) * 0.999 for i in range(3001)]
    composed = min(composed_epsilon(delta2, delta, k, share) for share in shares)
    return min(direct_epsilon(delta2, delta, k), composed)


@pytest.mark.parametrize(("epsilon", "delta", "k", "neighbours", "scale"), TABLE)
def test_the_scale_is_not_above_the_reference_and_not_far_below(
    epsilon, delta, k, neighbours, scale
):
    found = calibrate(Guarantee(epsilon, delta, k, neighbours), Method.THEOREM).noise_scale
    assert round(found) <= scale
    assert found == pytest.approx(scale, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [(1.0, 1e-6, 1), (1.0, 1e-6, 100), (0.1, 1e-9, 1_000), (1.0, 1e-6, 5_000), (5.0, 1e-4, 700)],
)
def test_the_noise_is_what_the_theorems_ask_for_and_no_less(epsilon, delta, k):
    scales = theorem_scales(epsilon, delta, k, ADD_REMOVE)
    # The grid misses the best share by less than this.
    assert promised_epsilon(scales.delta2, delta, k) == pytest.approx(epsilon, rel=1e-3)
    assert promised_epsilon(0.99 * scales.delta2, delta, k) > epsilon


@repeatable
@given(
    st.floats(min_value=0.01, max_value=5.0),
    st.floats(min_value=-12.0, max_value=-4.0).map(lambda power: 10**power),
    st.integers(min_value=1, max_value=10_000),
    st.floats(min_value=0.001, max_value=0.9),
)
def test_epochs_compose_to_no_more_than_epsilon(epsilon, delta, k, share):
    target = theorem._Target(epsilon, delta, k)
    scales = theorem._composed_at(target, share)
    composed = composed_epsilon(scales.delta2, delta, k, share)
    assert composed <= epsilon
    assert composed == pytest.approx(epsilon, rel=1e-6)


@repeatable
@given(
    st.floats(min_value=0.01, max_value=5.0),
    st.floats(min_value=-12.0, max_value=-1.0).map(lambda power: 10**power),
    st.integers(min_value=1, max_value=10_000),
)
def test_the_direct_theorem_is_solved_for_epsilon(epsilon, delta, k):
    scales = theorem._direct(theorem._Target(epsilon, delta, k))
    assert direct_epsilon(scales.delta2, delta, k) == pytest.approx(epsilon, rel=1e-12)


def test_few_charges_take_the_direct_theorem_and_many_its_composition():
    few, many = theorem._Target(1.0, 1e-6, 3), theorem._Target(1.0, 1e-6, 10_000)
    assert theorem_scales(1.0, 1e-6, 3, ADD_REMOVE) == theorem._direct(few)
    composed = theorem_scales(1.0, 1e-6, 10_000, ADD_REMOVE)
    assert composed == theorem._composed(many)
    assert composed.delta1 < 0.5 * theorem._direct(many).delta1


@pytest.mark.parametrize(("epsilon", "delta", "k"), [(1.0, 1e-6, 3), (0.2, 1e-9, 200)])
def test_replacing_is_removing_and_adding(epsilon, delta, k):
    halves = theorem_scales(epsilon / 2, delta / (1 + math.exp(epsilon / 2)), k, ADD_REMOVE)
    assert theorem_scales(epsilon, delta, k, REPLACE) == halves


@pytest.mark.parametrize("neighbours", Neighbours)
def test_delta1_is_delta2_times_its_logarithm(neighbours):
    scales = theorem_scales(1.0, 1e-6, 10, neighbours)
    assert scales.delta1 == pytest.approx(scales.delta2 * math.log(scales.delta2), rel=1e-12)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("scale_of", [exact_scale, fractional_scale])
def test_the_calibration_takes_at_least_the_scales_that_are_proved_for_discrete_noise(
    neighbours, scale_of, monkeypatch
):
    """Whatever the theorem asks for: here, next to nothing."""
    small = theorem.TheoremScales(delta1=0.01, delta2=0.01)
    monkeypatch.setattr(calibration_module, "theorem_scales", lambda *_: small)
    found = calibrate.__wrapped__(Guarantee(1.0, 1e-6, 10, neighbours), Method.THEOREM)
    assert found.noise_scale >= scale_of(1.0, 1e-6, 10, neighbours)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_calibration_takes_both_scales_from_the_theorem(neighbours):
    calibration = calibrate(Guarantee(1.0, 1e-6, 10, neighbours), Method.THEOREM)
    scales = theorem_scales(1.0, 1e-6 * (1 - 1e-9), 10, neighbours)
    assert calibration.delta2 == scales.delta2
    assert 10 * scales.delta1 <= calibration.noise_scale <= 10 * scales.delta1 + 2e-6


def test_more_charges_need_more_noise():
    noise = [theorem_scales(1.0, 1e-6, k, REPLACE).delta1 for k in (1, 2, 10, 100, 1_000, 10_000)]
    assert noise == sorted(set(noise))


def test_a_guarantee_so_loose_that_the_proof_does_not_hold_is_refused():
    with pytest.raises(SettingError) as caught:
        calibrate(Guarantee(100.0, 0.999, 1, ADD_REMOVE), Method.THEOREM)
    assert caught.value.setting == "epsilon"
    assert "theorem" in str(caught.value)
    assert "= 1.77 " in str(caught.value)


def test_the_proof_holds_from_2_on():
    assert theorem._scales(inner=1.0, log_delta=2.0).delta2 == 2.0
    with pytest.raises(SettingError, match="epsilon"):
        theorem._scales(inner=1.0, log_delta=math.nextafter(2.0, 0.0))
