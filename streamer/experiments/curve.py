"""The promised curve δ(ε′), and a test of two worlds against all of it.

A plan promises more than its one pair (ε, δ): for every ε′ it bounds the excess
Pr[E] - e^ε′·Pr'[E] of every event E in one world over the other, by the exact loss of its
noise at ε′ plus the key set's part of δ (docs/privacy.md, theorems 1 and 2). Close to ε′ = 0
the allowed excess is large enough to be measured with few trials, however small δ is, so that
is where too little noise shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.experiments.confidence import candidate_cuts, proven_excess, share_at_most
from streamer.privacy.threshold import Plan

Numbers = NDArray[np.float64]

_POINTS = 41
"""Values of ε′ that are tried, from 0 to 2·ε."""
_SUSPICIOUS = 4.0
"""Standard deviations above the promise from which on an excess looks like a broken promise."""
_CAUTION = 6.0
"""Standard deviations that a proof at a confidence like 1 - 1e-7 takes off what is measured."""


@dataclass(frozen=True, slots=True)
class Excess:
    """At ε′: the excess of one world over the other that is proven, and the one promised."""

    epsilon: float
    proven: float
    promised: float


@dataclass(frozen=True, slots=True)
class _Event:
    """That sign·score is at most the cut, in one world or the other, and the ε′ for it."""

    sign: float
    swapped: bool
    cut: float
    epsilon: float
    significance: float
    """Standard deviations by which the excess exceeds the promised one."""
    share: float
    """About the share of the promised excess that it can prove."""


@lru_cache(maxsize=1024)
def promised_delta(plan: Plan, epsilon: float) -> float:
    """δ(ε′): the largest excess over e^ε′ that the plan allows."""
    return min(1.0, plan.calibration.delta_at(epsilon) + plan.calibration.keys_delta)


def largest_excess(plan: Plan, scores: Numbers, others: Numbers, doubt: float) -> Excess:
    """Test the whole promised curve with one number per trial of each world.

    A quarter of the trials selects an event and an ε′: "the score is at most c" or "at least
    c", in favour of either world, whichever exceeds the promise most significantly; if none
    does, whichever is likely to prove most of what is promised. The other trials, which are
    independent of the selection, measure the excess. It is proven with confidence 1 - `doubt`.
    """
    trials = min(len(scores), len(others))
    selecting = trials // 4
    if selecting == 0:
        return Excess(0.0, 0.0, promised_delta(plan, 0.0))
    event = _most_telling(plan, scores[:selecting], others[:selecting])
    ours, theirs = (others, scores) if event.swapped else (scores, others)
    likely, unlikely = (
        int(np.count_nonzero(event.sign * world[selecting:trials] <= event.cut))
        for world in (ours, theirs)
    )
    proven = proven_excess(likely, unlikely, trials - selecting, event.epsilon, doubt)
    return Excess(event.epsilon, proven, promised_delta(plan, event.epsilon))


def _most_telling(plan: Plan, scores: Numbers, others: Numbers) -> _Event:
    epsilons = np.linspace(0.0, 2 * plan.guarantee.epsilon, _POINTS)
    promised = np.array([promised_delta(plan, epsilon) for epsilon in epsilons.tolist()])
    trials = len(scores)
    events = []
    for sign in (1.0, -1.0):
        for swapped, ours, theirs in ((False, scores, others), (True, others, scores)):
            cuts = candidate_cuts(sign * ours)
            likely, unlikely = (
                share_at_most(sign * world, cuts)[:, None] for world in (ours, theirs)
            )
            # One trial is added, so that an event that never happened has a variance too.
            variance = likely * (1 - likely) + np.exp(2 * epsilons) * (
                unlikely * (1 - unlikely) + 1 / trials
            )
            deviation = np.sqrt(variance / trials)
            excess = likely - np.exp(epsilons) * unlikely
            significance = (excess - promised) / deviation
            share = (excess - _CAUTION * deviation) / promised
            for measure in (significance, share):
                cut, place = np.unravel_index(np.argmax(measure), measure.shape)
                events.append(
                    _Event(
                        *(sign, swapped, float(cuts[cut]), float(epsilons[place])),
                        *(float(significance[cut, place]), float(share[cut, place])),
                    )
                )
    suspicious = max(events, key=lambda event: event.significance)
    if suspicious.significance > _SUSPICIOUS:
        return suspicious
    return max(events, key=lambda event: event.share)
