"""Lower confidence bounds on the loss: never more than was lost, and not much less."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest

from streamer.experiments.confidence import lower_bound, proven_epsilon, upper_bound

pytestmark = pytest.mark.slow

DOUBT = 1e-8
SAMPLES = 200_000
SEEDS = range(6)


def responses(odds, world, rng):
    """Randomized response: the truth with odds e^odds."""
    return (rng.random(SAMPLES) < 1 / (1 + math.exp(-odds if world else odds))).astype(float)


def shifted_laplace(odds, world, rng):
    return rng.laplace(world, 1 / odds, SAMPLES)


def repeated_until_top(odds, world, rng):
    """Failures before the first success of a randomized response: a loss without bound."""
    return rng.geometric(1 / (1 + math.exp(-odds if world else odds)), SAMPLES) - 1.0


def responses_epsilon(odds, delta):
    return math.log(math.exp(odds) - delta * (1 + math.exp(odds)))


def laplace_epsilon(odds, delta):
    return odds + 2 * math.log1p(-delta)


def repeated_epsilon(odds, delta):
    """The largest log((Pr[n >= c] - δ)/Pr'[n >= c]) and log((Pr'[n < c] - δ)/Pr[n < c])."""
    success = 1 / (1 + math.exp(-odds))
    lost = 0.0
    for edge in range(1, 200):
        ours, theirs = success**edge, (1 - success) ** edge
        for likely, unlikely in ((ours, theirs), (1 - theirs, 1 - ours)):
            if likely > delta:
                lost = max(lost, math.log((likely - delta) / unlikely))
    return lost


KNOWN = [
    pytest.param(partial(responses, 1.0), responses_epsilon(1.0, 0.0), 0.0, id="response"),
    pytest.param(partial(responses, 1.0), responses_epsilon(1.0, 0.1), 0.1, id="response, δ"),
    pytest.param(partial(shifted_laplace, 0.8), 0.8, 0.0, id="laplace"),
    pytest.param(partial(shifted_laplace, 0.8), laplace_epsilon(0.8, 0.05), 0.05, id="laplace, δ"),
    pytest.param(
        partial(repeated_until_top, 0.2), repeated_epsilon(0.2, 0.01), 0.01, id="until ⊤, δ"
    ),
]


def both_worlds(sample, seed):
    rng = np.random.default_rng(seed)
    return sample(0, rng), sample(1, rng)


def empirical_epsilon(scores, others, delta):
    """What the samples seem to show: chosen and measured on the same trials, without doubt."""
    best = 0.0
    scores, others = np.sort(scores), np.sort(others)
    for ours, theirs in ((scores, others), (others, scores), (-scores[::-1], -others[::-1])):
        for cut in ours[:: SAMPLES // 1000]:
            likely = np.searchsorted(ours, cut, "right") / SAMPLES
            unlikely = np.searchsorted(theirs, cut, "right") / SAMPLES
            if likely > delta and unlikely > 0:
                best = max(best, math.log((likely - delta) / unlikely))
    return best


# False alarms: at most DOUBT for each pair of samples, below one in a million for all.
@pytest.mark.parametrize(("sample", "truth", "delta"), KNOWN)
def test_what_is_proven_never_exceeds_what_is_lost(sample, truth, delta):
    proven = [proven_epsilon(*both_worlds(sample, seed), delta, DOUBT) for seed in SEEDS]
    assert max(proven) <= truth


@pytest.mark.parametrize(("sample", "truth", "delta"), KNOWN)
def test_most_of_what_is_lost_is_proven(sample, truth, delta):
    assert proven_epsilon(*both_worlds(sample, seed=1), delta, DOUBT) >= 0.6 * truth


@pytest.mark.parametrize(("sample", "truth", "delta"), KNOWN)
def test_without_doubt_more_would_be_claimed_than_is_lost(sample, truth, delta):
    claimed = [empirical_epsilon(*both_worlds(sample, seed), delta) for seed in SEEDS]
    assert max(claimed) > truth


def test_the_order_of_the_worlds_does_not_matter_much():
    scores, others = both_worlds(partial(repeated_until_top, 0.2), seed=1)
    one, other = (
        proven_epsilon(*pair, 0.01, DOUBT) for pair in ((scores, others), (others, scores))
    )
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("sample", [responses, shifted_laplace, repeated_until_top])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_equal_worlds_prove_nothing(sample, delta):
    rng = np.random.default_rng(1)
    scores, others = sample(0.5, 1, rng), sample(0.5, 1, rng)
    assert proven_epsilon(scores, others, delta, DOUBT) == 0


def test_worlds_that_share_no_score_prove_as_much_as_the_number_of_trials_allows():
    scores, others = np.zeros(SAMPLES), np.ones(SAMPLES)
    proven = proven_epsilon(scores, others, 0.0, DOUBT)
    assert (1 + 21.6) * math.exp(-21.6) == pytest.approx(DOUBT, rel=0.1)
    assert proven == pytest.approx(math.log(0.75 * SAMPLES / 21.6), rel=0.01)


def test_the_trials_that_choose_the_event_have_no_part_in_measuring_it():
    scores, others = np.zeros(SAMPLES), np.ones(SAMPLES)
    others[SAMPLES // 4 :] = 0.0
    assert proven_epsilon(scores, others, 0.0, DOUBT) == 0


def test_a_difference_that_delta_allows_proves_nothing():
    scores, others = np.zeros(SAMPLES), np.zeros(SAMPLES)
    others[::200] = 1.0
    assert proven_epsilon(scores, others, 0.0, DOUBT) > 0
    assert proven_epsilon(scores, others, 0.01, DOUBT) == 0


def tail_at_most(successes, trials, probability):
    """Pr[Binomial <= successes], term by term with 40 digits, the largest terms first."""
    if probability >= 1:
        return 0.0 if successes < trials else 1.0
    with mpmath.workdps(40):
        odds = (1 - mpmath.mpf(probability)) / probability
        term = mpmath.binomial(trials, successes) * mpmath.mpf(probability) ** successes
        term *= (1 - mpmath.mpf(probability)) ** (trials - successes)
        total = mpmath.mpf(0)
        for number in range(successes, -1, -1):
            total += term
            term *= odds * number / (trials - number + 1)
            if term < total * mpmath.mpf(10) ** -30:
                break
        return total


BINOMIALS = [(0, 100), (1, 100), (50, 100), (99, 100), (10, 100_000), (30_000, 100_000)]


@pytest.mark.parametrize(("successes", "trials"), BINOMIALS)
@pytest.mark.parametrize("doubt", [1e-2, 1e-8])
class TestBounds:
    def test_a_success_rate_above_the_upper_bound_is_as_unlikely_as_stated(
        self, successes, trials, doubt
    ):
        bound = upper_bound(successes, trials, doubt)
        assert tail_at_most(successes, trials, bound) <= doubt

    def test_a_success_rate_below_the_lower_bound_is_as_unlikely_as_stated(
        self, successes, trials, doubt
    ):
        bound = lower_bound(trials - successes, trials, doubt)
        # Pr[Binomial(p) >= n - s] is Pr[Binomial(1 - p) <= s].
        assert tail_at_most(successes, trials, 1 - bound) <= doubt

    def test_the_bounds_are_not_much_wider_than_the_exact_ones(self, successes, trials, doubt):
        share = successes / trials
        narrower = share + 0.6 * (upper_bound(successes, trials, doubt) - share)
        assert tail_at_most(successes, trials, narrower) > doubt

    def test_the_share_itself_lies_between_the_bounds(self, successes, trials, doubt):
        lower, upper = (bound(successes, trials, doubt) for bound in (lower_bound, upper_bound))
        assert 0 <= lower <= successes / trials <= upper <= 1


def test_no_success_at_all_puts_the_lower_bound_at_zero():
    assert lower_bound(0, 100, 1e-6) == 0


def test_success_every_time_puts_the_upper_bound_at_one():
    assert upper_bound(100, 100, 1e-6) == 1
