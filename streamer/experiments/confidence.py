"""Lower confidence bounds on the privacy loss, from samples of both worlds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.entropy import coin_entropy
from streamer.privacy.search import least_point, smallest_true

_LARGEST = 100.0
"""No number of trials proves as large an ε."""
_CAUTION = 4.0
"""Standard deviations that a proof takes off each of two shares that are measured."""
_SHAVED = 1 - 1e-8
"""The search for a bound ends within 1e-9 of it, on the wrong side."""


def proven_epsilon(
    scores: NDArray[np.float64], others: NDArray[np.float64], delta: float, doubt: float
) -> float:
    """A lower bound on the ε between the two worlds, with confidence 1 - `doubt`.

    `scores` and `others` are one number per trial of each world. Any event E shows
    that ε >= log((Pr[E] - δ)/Pr'[E]). A quarter of the trials selects the event, "the
    score is at most c" or "at least c", in favour of either world; the others, which
    are independent of the selection, measure it. 0 if nothing is proven.
    """
    trials = min(len(scores), len(others))
    selecting = trials // 4
    measuring = trials - selecting
    best, event = 0.0, None
    for sign in (1.0, -1.0):
        for swap in (False, True):
            ours, theirs = (others, scores) if swap else (scores, others)
            cuts = candidate_cuts(sign * ours[:selecting])
            likely = share_at_most(sign * ours[:selecting], cuts)
            unlikely = share_at_most(sign * theirs[:selecting], cuts)
            bounds = _cautious_epsilon(likely, unlikely, delta, selecting)
            if bounds.max(initial=0.0) > best:
                best, event = bounds.max(), (sign, swap, cuts[np.argmax(bounds)])
    if event is None:
        return 0.0
    sign, swap, cut = event
    share, other = (
        np.count_nonzero(sign * world[selecting:trials] <= cut) / measuring
        for world in ((others, scores) if swap else (scores, others))
    )
    limit = _joint_distance(doubt) / measuring

    def plausible(epsilon: float) -> bool:
        return _distance(share, other, epsilon, delta) <= limit

    return 0.0 if plausible(0.0) else smallest_true(plausible, 0.0, _LARGEST) * _SHAVED


def proven_excess(likely: int, unlikely: int, trials: int, epsilon: float, doubt: float) -> float:
    """A lower bound on Pr[E] - e^ε·Pr'[E], with confidence 1 - `doubt`.

    E happened `likely` times in the trials of one world and `unlikely` times in as many of the
    other. An excess is excluded if every pair of probabilities with at most this excess is too
    far from both shares together, which needs fewer trials than one bound for each share.
    """
    shares, limit = (likely / trials, unlikely / trials), _joint_distance(doubt) / trials

    def plausible(excess: float) -> bool:
        return _distance(*shares, epsilon, excess) <= limit

    return 0.0 if plausible(0.0) else smallest_true(plausible, 0.0, shares[0]) * _SHAVED


def _distance(ours: float, theirs: float, epsilon: float, excess: float) -> float:
    """The least sum of the distances, in nats, of two shares from two probabilities of which one
    is at most e^ε times the other plus this excess."""
    factor = math.exp(epsilon)
    highest = (ours - excess) / factor
    if highest <= theirs:
        return 0.0

    def distance(probability: float) -> float:
        there = min(1.0, factor * probability + excess)
        return coin_entropy(theirs, probability) + coin_entropy(ours, there)

    # Convex, and a pair outside this range is farther away than one at its ends.
    return distance(least_point(distance, theirs, highest, rounds=60))


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


def _cautious_epsilon(
    likely: NDArray[np.float64], unlikely: NDArray[np.float64], delta: float, trials: int
) -> NDArray[np.float64]:
    """About the ε that events can prove which have these shares of the selecting trials.

    The caution is that of the selecting trials, which are fewer than the measuring ones: with
    less, a rare event would be selected that only happened to favour one world.
    """
    # Of a rare event the deviation is not normal: an event that never happened may have a
    # probability of some trials (Bernstein's bound).
    least = likely - _CAUTION * np.sqrt(likely * (1 - likely) / trials) - delta
    most = unlikely + _CAUTION * np.sqrt(unlikely * (1 - unlikely) / trials)
    most += _CAUTION**2 / 2 / trials
    return np.asarray(np.log(np.maximum(least, most) / most))


def share_at_most(scores: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each cut, the share of scores that are at most it."""
    return np.searchsorted(np.sort(scores), cuts, side="right") / len(scores)


def candidate_cuts(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Candidates for the cut c of an event: at most 200 of the values that occur."""
    values = np.unique(scores)
    places = np.unique(np.linspace(0, len(values) - 1, 200).astype(int))
    return np.asarray(values[places])
