"""What an answer tells an adversary: how much likelier it is if a user counts than if not.

An adversary knows everything but the one user, so also the distance d between the threshold and
the count of the others. No score separates two worlds better than the logarithm of the
likelihood ratio of all answers (Neyman and Pearson).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.law import NoiseLaw
from streamer.privacy.prices import FULL
from streamer.privacy.threshold import Plan

Ratios = NDArray[np.float64]

_FINENESS = 8
"""How many distances are tried per noise scale."""
_VALUES = 500
"""How many values of a report stand for all of them, if there are more."""
_WIDEST = 4.0
"""The largest distance that is tried, in noise scales. Farther away, reports are too rare."""


class Evidence:
    """Logarithms of likelihood ratios, "counts" over "does not count", at one distance."""

    def __init__(self, plan: Plan, distance: int) -> None:
        law = self._law = plan.law
        self.quiet = math.log(law.below(distance - 1) / law.below(distance))
        """Of an answer without a report."""

    def of_reports(self, noise: NDArray[np.int64]) -> Ratios:
        """Of reports, given by how much each exceeds the count of the others."""
        values, places = np.unique(noise, return_inverse=True)
        ratios = _log_mass(self._law, values - 1) - _log_mass(self._law, values)
        return np.asarray(ratios[places])


def telling_distance(plan: Plan, questions: int) -> int:
    """The distance at which a user's budget and this many questions tell most.

    Close to the threshold reports are frequent and use up the budget, far below it the questions
    run out first. What a question tells is the variance of its log-likelihood ratio, while the user
    does not count. A distance below 0 reads loud reports, if those cost less.
    """
    scale = plan.calibration.noise_scale
    most = int(_WIDEST * _FINENESS)
    distances = {round(scale * place / _FINENESS) for place in range(-most, most + 1)}
    return max(sorted(distances), key=lambda distance: _told(plan, distance, questions))


def expected_questions(plan: Plan, distance: int, most: int) -> float:
    """About how many questions at one distance it takes to spend a user's budget."""
    # The last report of a user is the one that leaves less than a full charge.
    reports = 1 + (plan.guarantee.contributions - 1) / _Reports(plan, distance).price
    return min(most, reports / plan.law.at_least(distance))


def _told(plan: Plan, distance: int, questions: int) -> float:
    """About what all questions at one distance tell together."""
    evidence, reports = Evidence(plan, distance), _Reports(plan, distance)
    told = float(reports.masses @ evidence.of_reports(distance + reports.excess) ** 2)
    told += plan.law.below(distance) * evidence.quiet**2
    return told * expected_questions(plan, distance, questions)


class _Reports:
    """By how much reports exceed the threshold, and how often, if the user does not count."""

    def __init__(self, plan: Plan, distance: int) -> None:
        reach = 2 * _WIDEST * plan.calibration.noise_scale
        self.excess = np.unique(np.rint(np.linspace(0, reach, _VALUES)).astype(np.int64))
        passing = np.exp(plan.law.log_at_least(distance + self.excess))
        self.masses = -np.diff(passing, append=0.0)
        prices = plan.calibration.prices(self.excess)
        self.price = float(self.masses @ prices) / FULL / float(passing[0])
        """What one of them costs on average."""


def _log_mass(law: NoiseLaw, values: NDArray[np.int64]) -> Ratios:
    log_from, log_above = law.log_at_least(values), law.log_at_least(values + 1)
    return np.asarray(log_from + np.log(-np.expm1(log_above - log_from)))
