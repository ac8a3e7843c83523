"""δ(ε) of the monitor, against three computations that share no code with it.

`true_delta` sums the two negative binomial laws with 60 digits. The value iterations
play every adaptive adversary of the game itself, without the theorem that reduces it to
those laws. The explicit convolutions check the pair of processes and their composition.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.privacy import loss
from streamer.privacy.loss import CUT, charge_delta, total_epsilon
from streamer.privacy.terms import Neighbours

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
repeatable = settings(max_examples=80, deadline=None, derandomize=True, database=None)


# 1. Sums of 60 digits


def true_delta(epsilon: float, scale: float, k: int, neighbours: Neighbours) -> mpmath.mpf:
    """δ(ε) to more than 20 digits; every term that is added is positive."""
    with mpmath.workdps(60):
        odds = 1 / mpmath.mpf(scale)
        epsilon = mpmath.mpf(epsilon)
        likely, unlikely = 1 / (1 + mpmath.exp(-odds)), 1 / (1 + mpmath.exp(odds))
        present = negative_binomial(k, likely, unlikely)
        absent = negative_binomial(k, unlikely, likely)
        if neighbours is ADD_REMOVE:
            return max(
                mpmath.fsum(mass * gain(epsilon, (k - n) * odds) for n, mass in enumerate(present)),
                mpmath.fsum(mass * gain(epsilon, (n - k) * odds) for n, mass in enumerate(absent)),
            )
        return replaced_delta(epsilon, odds, present, absent)


def gain(epsilon: mpmath.mpf, loss: mpmath.mpf) -> mpmath.mpf:
    return -mpmath.expm1(epsilon - loss) if loss > epsilon else mpmath.mpf(0)


def negative_binomial(k: int, success: mpmath.mpf, failure: mpmath.mpf) -> list[mpmath.mpf]:
    """Pr[n failures before the k-th success], up to where the terms are below 1e-45."""
    masses = [success**k]
    while len(masses) <= k * failure / success or masses[-1] > 1e-45:
        n = len(masses)
        masses.append(masses[-1] * failure * (n + k - 1) / n)
    return masses


def replaced_delta(
    epsilon: mpmath.mpf,
    odds: mpmath.mpf,
    present: list[mpmath.mpf],
    absent: list[mpmath.mpf],
) -> mpmath.mpf:
    """Σ_{a,b} Pr[n_A=a]·Pr[n_B=b]·[1 - e^(ε-(b-a)·odds)]₊, the inner sum from tables."""
    tails = [mpmath.mpf(0)] * (len(absent) + 1)
    tilted = list(tails)
    for b in reversed(range(len(absent))):
        tails[b] = tails[b + 1] + absent[b]
        tilted[b] = tilted[b + 1] + absent[b] * mpmath.exp(-b * odds)
    gap = int(mpmath.floor(epsilon / odds)) + 1
    return mpmath.fsum(
        mass * (tails[a + gap] - mpmath.exp(epsilon + a * odds) * tilted[a + gap])
        for a, mass in enumerate(present)
        if a + gap < len(absent)
    )


USUAL = [
    (1.0, 15.7384, 1),
    (1.0, 20.9695, 3),
    (1.0, 5.0, 3),
    (0.05, 400.0, 7),
    (0.5, 53.0606, 3),
    (3.0, 12.0, 40),
    (10.0, 3.0, 5),
    (20.0, 1.7, 2),
    (1.0, 86.3504, 100),
    (1.0, 267.8, 1000),
]


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "scale", "k"), USUAL)
def test_delta_agrees_with_sums_of_60_digits_and_is_never_below_them(epsilon, scale, k, neighbours):
    truth = true_delta(epsilon, scale, k, neighbours)
    delta = charge_delta(epsilon, scale, k, neighbours)
    assert truth <= delta
    assert delta == pytest.approx(float(truth), rel=1e-8, abs=0)


@pytest.mark.slow
def test_delta_of_the_most_contributions_agrees_with_sums_of_60_digits():
    truth = true_delta(1.0, 845.13, 10_000, REPLACE)
    assert charge_delta(1.0, 845.13, 10_000, REPLACE) == pytest.approx(
        float(truth), rel=1e-8, abs=0
    )


@pytest.mark.parametrize("k", [1, 10, 100])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-5, 1e-8, 1e-12])
def test_delta_is_never_below_the_truth_where_two_close_probabilities_are_subtracted(epsilon, k):
    for scale in (multiple / epsilon for multiple in (2.0, 5.0, 10.0, 20.0)):
        assert charge_delta(epsilon, scale, k, REPLACE) >= true_delta(epsilon, scale, k, REPLACE)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "scale", "k"), [(60.0, 20.9695, 3), (30.0, 400.0, 7)])
def test_what_the_sums_leave_out_is_part_of_every_delta(epsilon, scale, k, neighbours):
    # A loss of ε takes so many ⊥ that its true probability is far below the cut.
    assert true_delta(epsilon, scale, k, neighbours) < 1e-6 * CUT
    assert charge_delta(epsilon, scale, k, neighbours) == pytest.approx(4e-24, rel=1e-6, abs=0)


@pytest.mark.parametrize(("epsilon", "scale", "k"), USUAL[:3])
def test_a_hundred_billionth_is_added_for_rounding(epsilon, scale, k):
    truth = true_delta(epsilon, scale, k, ADD_REMOVE)
    more = charge_delta(epsilon, scale, k, ADD_REMOVE) / truth - 1
    assert float(more) == pytest.approx(1e-11, rel=0.1, abs=0)


def mass_beyond(n: int, k: int, success: float, step: int) -> mpmath.mpf:
    """The mass of NB(k, success) from n on, upwards (step 1) or downwards (step -1)."""
    with mpmath.workdps(60):
        success, total = mpmath.mpf(success), mpmath.mpf(0)
        mass = mpmath.binomial(n + k - 1, n) * success**k * (1 - success) ** n
        # Terms fall faster and faster away from the mean: what follows the last is negligible.
        while mass > 1e-12 * total:
            total += mass
            n += step
            if n < 0:
                break
            larger = max(n, n - step)
            ratio = (1 - success) * (larger + k - 1) / larger
            mass *= ratio if step > 0 else 1 / ratio
        return total


WINDOWS = [(1, 1.0), (1, 400.0), (2, 0.2), (3, 20.9695), (30, 49.42), (1000, 267.8), (9000, 0.5)]


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize(("k", "scale"), WINDOWS)
def test_the_window_leaves_out_less_than_the_cut_on_either_side_and_is_hardly_wider(
    k, scale, present
):
    success = 1 / (1 + math.exp(-1 / scale if present else 1 / scale))
    mean = k * (1 - success) / success
    first, last = loss._window(k, success)
    assert mass_beyond(last + 1, k, success, 1) <= CUT
    # Chernoff's bound is a few digits above the truth: less than a tenth of the way to the mean.
    assert mass_beyond(last - math.ceil((last - mean) / 10), k, success, 1) > CUT
    if first > 0:
        assert mass_beyond(first - 1, k, success, -1) <= CUT
    assert mass_beyond(first + math.ceil((mean - first) / 10), k, success, -1) > CUT


def test_windows_begin_at_0_and_beyond_it():
    begins = {loss._window(k, 1 / (1 + math.exp(-1 / scale)))[0] > 0 for k, scale in WINDOWS}
    assert begins == {True, False}


# 2. Every adaptive adversary, by value iteration


def payoff(epsilon: float, odds: float, reach: int) -> np.ndarray:
    """What an adversary gets for stopping with a log-likelihood of -reach..reach odds."""
    return np.maximum(
        0.0, -np.expm1(np.minimum(0.0, epsilon - np.arange(-reach, reach + 1) * odds))
    )


def moved(values: np.ndarray, by: int) -> np.ndarray:
    """The values at positions shifted by so much; beyond the reach they no longer change."""
    places = np.arange(len(values)) + by
    return values[np.clip(places, 0, len(values) - 1)]


def settled(least: np.ndarray, better) -> np.ndarray:
    """The fixed point of a growing iteration."""
    values = least
    while True:
        new = np.maximum(least, better(values))
        if np.max(new - values) < 1e-16:
            return new
        values = new


def best_add_remove_adversary(
    epsilon: float, scale: float, k: int, *, silent_answers: bool = True, reach: int = 300
) -> float:
    """The largest δ of any adversary against one user who is there, or is not.

    The adversary stops, or asks one of two randomized responses with odds e^(1/scale):
    between ⊤ and ⊥, where ⊤ alone spends budget, or between two kinds of ⊤.
    """
    odds = 1 / scale
    likely = 1 / (1 + math.exp(-odds))
    stop = payoff(epsilon, odds, reach)
    worlds = []
    # Probabilities are those of the first world: the user is there, or the user is not.
    for top, direction in ((likely, 1), (1 - likely, -1)):
        spent = stop
        for _ in range(k):
            two_tops = likely * moved(spent, 1) + (1 - likely) * moved(spent, -1)
            least = np.maximum(stop, two_tops)

            def top_or_silence(values, spent=spent, top=top, direction=direction):
                return top * moved(spent, direction) + (1 - top) * moved(values, -direction)

            spent = settled(least, top_or_silence) if silent_answers else least
        worlds.append(float(spent[reach]))
    return max(worlds)


def best_replace_adversary(
    epsilon: float, scale: float, k: int, *, first_world: int = 0, reach: int = 200
) -> float:
    """The largest δ of any adversary against a user whose history is one of two.

    There is a budget for either history, and the adversary chooses which to ask about.
    """
    odds = 1 / scale
    likely = 1 / (1 + math.exp(-odds))
    stop = payoff(epsilon, odds, reach)
    # The history that is the true one says ⊤ more often, and its ⊤ speaks for this world.
    tops = [(likely, 1), (1 - likely, -1)]
    if first_world == 1:
        tops.reverse()
    values = {}
    for left in sorted(itertools.product(range(k + 1), repeat=2), key=sum):
        spent = [
            (values[left[0] - 1, left[1]] if left[0] else None),
            (values[left[0], left[1] - 1] if left[1] else None),
        ]
        asked = [(after, *top) for after, top in zip(spent, tops, strict=True) if after is not None]
        least = stop
        for after, _, _ in asked:
            least = np.maximum(least, likely * moved(after, 1) + (1 - likely) * moved(after, -1))

        def any_question(current, asked=asked, least=least):
            best = least
            for after, top, direction in asked:
                silence = moved(current, -direction)
                best = np.maximum(best, top * moved(after, direction) + (1 - top) * silence)
            return best

        values[left] = settled(least, any_question)
    return float(values[k, k][reach])


SMALL_GAMES = [(1.0, 2.0, 1), (1.0, 2.0, 2), (1.0, 3.0, 3), (0.5, 4.0, 2), (2.0, 1.5, 4)]


@pytest.mark.parametrize(("epsilon", "scale", "k"), [*SMALL_GAMES, (1.0, 6.0, 4)])
def test_the_best_adversary_against_a_user_who_may_be_absent_reaches_delta_exactly(
    epsilon, scale, k
):
    best = best_add_remove_adversary(epsilon, scale, k)
    assert charge_delta(epsilon, scale, k, ADD_REMOVE) == pytest.approx(best, rel=1e-9, abs=0)


@pytest.mark.parametrize("first_world", [0, 1])
@pytest.mark.parametrize(("epsilon", "scale", "k"), SMALL_GAMES[:4])
def test_the_best_adversary_against_a_replaced_user_reaches_delta_exactly(
    epsilon, scale, k, first_world
):
    best = best_replace_adversary(epsilon, scale, k, first_world=first_world)
    assert charge_delta(epsilon, scale, k, REPLACE) == pytest.approx(best, rel=1e-9, abs=0)


@pytest.mark.parametrize(("epsilon", "scale", "k"), SMALL_GAMES)
def test_accounting_that_forgets_what_a_silent_answer_tells_would_be_caught(epsilon, scale, k):
    # Without the free ⊥ the adversary has k randomized responses and no more.
    forgetful = best_add_remove_adversary(epsilon, scale, k, silent_answers=False)
    assert forgetful < 0.9 * charge_delta(epsilon, scale, k, ADD_REMOVE)


# 3. Explicit convolutions


def failures(k: int, success: float, size: int = 4000) -> np.ndarray:
    """Pr[n failures before the k-th success] for n below `size`, one at a time."""
    one = success * (1 - success) ** np.arange(size)
    masses = one
    for _ in range(k - 1):
        masses = np.convolve(masses, one)[:size]
    return masses


def losses(scale: float, k: int, neighbours: Neighbours) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each pair of worlds, the masses of the loss and its values in units of 1/scale."""
    likely = 1 / (1 + math.exp(-1 / scale))
    present, absent = failures(k, likely), failures(k, 1 - likely)
    if neighbours is REPLACE:
        masses = np.convolve(absent, present[::-1])
        return [(masses, np.arange(len(masses)) - (len(present) - 1))]
    numbers = np.arange(len(present))
    return [(present[::-1], (k - numbers)[::-1]), (absent, numbers - k)]


def delta_of(pairs: list[tuple[np.ndarray, np.ndarray]], epsilon: float, scale: float) -> float:
    return max(
        float(np.sum(masses * np.maximum(0.0, -np.expm1(np.minimum(0, epsilon - places / scale)))))
        for masses, places in pairs
    )


def composed(masses: np.ndarray, places: np.ndarray, periods: int) -> tuple[np.ndarray, np.ndarray]:
    """The loss after this many independent periods."""
    # Keep only what has mass, so that the convolutions stay small.
    kept = np.flatnonzero(masses > 1e-40)
    masses, first = masses[kept[0] : kept[-1] + 1], int(places[kept[0]])
    total = masses
    for _ in range(periods - 1):
        total = np.convolve(total, masses)
    return total, np.arange(len(total)) + periods * first


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "scale", "k"), [*SMALL_GAMES, (1.0, 20.9695, 3)])
def test_delta_agrees_with_an_explicit_convolution_of_the_two_processes(
    epsilon, scale, k, neighbours
):
    explicit = delta_of(losses(scale, k, neighbours), epsilon, scale)
    assert charge_delta(epsilon, scale, k, neighbours) == pytest.approx(explicit, rel=1e-9, abs=0)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(
    ("delta", "scale", "k", "periods"),
    [(1e-3, 5.0, 1, 2), (1e-6, 20.9695, 3, 1), (1e-6, 16.0, 2, 3), (1e-4, 10.0, 1, 5)],
)
def test_the_total_epsilon_is_that_of_the_explicit_composition_of_periods(
    delta, scale, k, periods, neighbours
):
    pairs = [composed(*pair, periods) for pair in losses(scale, k, neighbours)]
    epsilon = total_epsilon(delta, scale, k, neighbours, periods)
    assert delta_of(pairs, epsilon, scale) <= delta
    assert delta_of(pairs, epsilon * (1 - 1e-6), scale) > delta


@pytest.mark.parametrize("neighbours", Neighbours)
def test_composition_that_counts_one_period_too_few_would_be_caught(neighbours):
    pairs = [composed(*pair, 3) for pair in losses(16.0, 2, neighbours)]
    epsilon = total_epsilon(1e-6, 16.0, 2, neighbours, 2)
    assert delta_of(pairs, epsilon, 16.0) > 2 * 1e-6


# 4. Which way things go

epsilons = st.floats(min_value=0.01, max_value=20.0)
scales = st.floats(min_value=1.0, max_value=500.0)
contributions = st.integers(min_value=1, max_value=200)


@repeatable
@given(epsilons, scales, contributions, st.sampled_from(Neighbours), st.floats(1.01, 3.0))
def test_delta_falls_with_epsilon_and_with_noise_and_grows_with_contributions(
    epsilon, scale, k, neighbours, factor
):
    delta = charge_delta(epsilon, scale, k, neighbours)
    assert 0 < delta <= 1
    assert charge_delta(epsilon * factor, scale, k, neighbours) <= delta
    assert charge_delta(epsilon, scale * factor, k, neighbours) <= delta
    assert charge_delta(epsilon, scale, k + 1, neighbours) >= delta


@repeatable
@given(epsilons, scales, contributions)
def test_replacing_a_user_is_seen_no_less_than_removing_one(epsilon, scale, k):
    replaced = charge_delta(epsilon, scale, k, REPLACE)
    assert replaced >= charge_delta(epsilon, scale, k, ADD_REMOVE) * (1 - 1e-9)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("k", [5, 20])
def test_delta_is_a_probability_even_where_the_noise_is_far_too_small(k, neighbours):
    assert 0.99 < charge_delta(1e-9, 0.2, k, neighbours) <= 1.0


@repeatable
@given(
    st.floats(min_value=1e-12, max_value=0.1),
    scales,
    st.integers(min_value=1, max_value=20),
    st.sampled_from(Neighbours),
    st.integers(min_value=1, max_value=30),
)
def test_the_total_epsilon_keeps_the_total_delta_and_hardly_more(
    delta, scale, k, neighbours, periods
):
    epsilon = total_epsilon(delta, scale, k, neighbours, periods)
    assert charge_delta(epsilon, scale, k * periods, neighbours) <= delta
    below = epsilon * (1 - 1e-6)
    assert epsilon == 0 or charge_delta(below, scale, k * periods, neighbours) > delta
