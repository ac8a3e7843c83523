"""Lower confidence bounds on the privacy loss, from samples of both worlds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.entropy import coin_entropy
from streamer.privacy.search import smallest_true


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
            for cut in _cuts(sign * ours[:half]):
                bound = _bound(sign * ours[:half], sign * theirs[:half], cut, delta, doubt)
                if bound > best:
                    best, event = bound, (sign, swap, cut)
    if event is None:
        return 0.0
    sign, swap, cut = event
    ours, theirs = (others, scores) if swap else (scores, others)
    return max(0.0, _bound(sign * ours[half:], sign * theirs[half:], cut, delta, doubt))


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


def _cuts(scores: NDArray[np.float64]) -> list[float]:
    """Candidates for the cut c: at most 200 of the values that occur."""
    values = np.unique(scores)
    places = np.unique(np.linspace(0, len(values) - 1, 200).astype(int))
    return [float(value) for value in values[places]]
