"""The monitor's noise Z = w + min(v, cap): its law, its units, its freshness."""

import numpy as np
import pytest

from streamer.monitors.perturbation import noise_of
from streamer.privacy.calibration import Calibration
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Method
from tests.monitors.chance import implausible_law
from tests.monitors.laws import REACH, capped_sum

DRAWS = 400_000
SEEN = np.arange(-30, 31)


def calibration(noise_scale: float, delta2: float) -> Calibration:
    return Calibration(Guarantee(1.0, 1e-6, 1), Method.FRACTIONAL, 0.0, noise_scale, delta2)


def wrong_law(draws: np.ndarray, law: np.ndarray) -> bool:
    """Whether Pr[Z <= z] is another at some z; false alarms: below one in a billion."""
    counts = [int(np.count_nonzero(draws <= z)) for z in SEEN]
    return implausible_law(counts, len(draws), np.cumsum(law)[REACH + SEEN])


@pytest.mark.parametrize(("scale", "small_scale", "cap"), [(4.0, 0.5, 0), (29.0, 7.0, 2)])
def test_noise_is_a_large_draw_plus_a_small_one_that_is_capped(scale, small_scale, cap):
    draws = noise_of(calibration(scale, small_scale)).draw(DRAWS)
    assert not wrong_law(draws, capped_sum(scale, small_scale, cap))


def test_a_cap_that_is_not_applied_is_noticed():
    uncapped = DiscreteLaplace(29.0).draw(DRAWS) + DiscreteLaplace(7.0).draw(DRAWS)
    assert wrong_law(uncapped, capped_sum(29.0, 7.0, 2))


def test_a_small_draw_that_is_forgotten_is_noticed():
    assert wrong_law(DiscreteLaplace(4.0).draw(DRAWS), capped_sum(4.0, 0.5, 0))


def test_in_fractions_of_a_user_both_scales_and_the_cap_grow_alike():
    draws = noise_of(calibration(6.0, 1.5), resolution=4).draw(DRAWS)
    assert not wrong_law(draws, capped_sum(24.0, 6.0, 2))


def test_noise_in_whole_users_is_noticed_where_fractions_were_asked_for():
    draws = noise_of(calibration(6.0, 1.5)).draw(DRAWS)
    assert wrong_law(draws, capped_sum(24.0, 6.0, 2))


def test_noise_comes_as_64_bit_integers_one_for_each_question():
    draws = noise_of(calibration(4.0, 0.5)).draw(17)
    assert draws.dtype == np.int64
    assert draws.shape == (17,)


def test_no_question_means_no_noise():
    assert noise_of(calibration(4.0, 0.5)).draw(0).shape == (0,)


def test_each_call_draws_anew():
    noise = noise_of(calibration(40.0, 5.0), random_bytes=SeededBytes(1))
    assert noise.draw(50).tolist() != noise.draw(50).tolist()


def test_a_seed_repeats_the_noise():
    first, second = (
        noise_of(calibration(40.0, 5.0), random_bytes=SeededBytes(1)).draw(50) for _ in "ab"
    )
    assert first.tolist() == second.tolist()
