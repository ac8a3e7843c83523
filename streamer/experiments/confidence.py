"""Lower confidence bounds on the privacy loss, from samples of both worlds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.entropy import coin_entropy
from streamer.privacy.search import least_point, smallest_true

_SHAVED = 1 - 1e-8
"""The search for a bound ends within 1e-9 of it, on the wrong side."""


def proven_epsilon(
    scores: NDArray[np.float64], others: NDArray[np.float64], delta: float, doubt: float
) -> float:
    """A lower bound on the ε between the two worlds, with confidence 1 - `doubt`.

    `scores` and `others` are one number per trial of each world. Any event E shows
    that ε >= log((Pr[E] - δ)/Pr'[E]). One half of the trials selects the event, "the
    score is at most c" or "at least c", in favour of either world; the other half, which
    is independent of the selection, measures it. 0 if nothing is proven.
    """
    half = min(len(scores), len(others)) // 2
    if half == 0:
        return 0.0
    best, event = 0.0, None
    for sign in (1.0, -1.0):
        for swap in (False, True):
            ours, theirs = (others, scores) if swap else (scores, others)
            for cut in candidate_cuts(sign * ours[:half]).tolist():
                bound = _bound(sign * ours[:half], sign * theirs[:half], cut, delta, doubt)
                if bound > best:
                    best, event = bound, (sign, swap, cut)
    if event is None:
        return 0.0
    sign, swap, cut = event
    ours, theirs = (others, scores) if swap else (scores, others)
    return max(0.0, _bound(sign * ours[half:], sign * theirs[half:], cut, delta, doubt))


def proven_excess(likely: int, unlikely: int, trials: int, epsilon: float, doubt: float) -> float:
    """A lower bound on Pr[E] - e^ε·Pr'[E], with confidence 1 - `doubt`.

    E happened `likely` times in the trials of one world and `unlikely` times in as many of the
    other. An excess is excluded if every pair of probabilities with at most this excess is too
    far from both shares together, which needs fewer trials than one bound for each share.
    """
    ours, theirs, factor = likely / trials, unlikely / trials, math.exp(epsilon)
    limit = _joint_distance(doubt) / trials

    def plausible(excess: float) -> bool:
        highest = (ours - excess) / factor
        if highest <= theirs:
            return True

        def distance(probability: float) -> float:
            there = min(1.0, factor * probability + excess)
            return coin_entropy(theirs, probability) + coin_entropy(ours, there)

        # Convex, and a pair outside this range is farther away than one at its ends.
        return distance(least_point(distance, theirs, highest, rounds=60)) <= limit

    return 0.0 if plausible(0.0) else smallest_true(plausible, 0.0, ours) * _SHAVED


def _joint_distance(doubt: float) -> float:
    """The sum of two distances, in nats, that has this probability.

    By Chernoff, n times the entropy distance between a share that is too high (or one that is
    too low) and its probability is at least x with probability at most e^-x. So two of them,
    from independent trials, are at least c together with probability at most (1 + c)·e^-c.
    """
    return smallest_true(lambda c: (1 + c) * math.exp(-c) <= doubt, 0.0, 1e3)


def upper_bound(successes: int, trials: int, doubt: float) -> float:
    """With confidence 1 - doubt, the success probability is at most this (Chernoff)."""
    share = successes / trials
    budget = math.log(1 / doubt) / trials
    return smallest_true(lambda p: coin_entropy(share, p) >= budget, share, 1.0)


def lower_bound(successes: int, trials: int, doubt: float) -> float:
    """With confidence 1 - doubt, the success probability is at least this."""
    return 1 - upper_bound(trials - successes, trials, doubt)


def _bound(
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
    cut: float,
    delta: float,
    doubt: float,
) -> float:
    trials = len(ours)
    likely = lower_bound(int(np.count_nonzero(ours <= cut)), trials, doubt / 2)
    unlikely = upper_bound(int(np.count_nonzero(theirs <= cut)), len(theirs), doubt / 2)
    return math.log((likely - delta) / unlikely) if likely > delta else 0.0


def candidate_cuts(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Candidates for the cut c of an event: at most 200 of the values that occur."""
    values = np.unique(scores)
    places = np.unique(np.linspace(0, len(values) - 1, 200).astype(int))
    return np.asarray(values[places])
