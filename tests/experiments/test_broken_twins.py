"""Monitors with one defect each, which an attack must detect.

A twin differs from the product in a single respect. The attack that finds it out proves,
with a doubt of 1e-8, that the promise is broken. The product itself, attacked in the same
way, must pass: a false alarm has a probability of at most 1e-8 a case.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from streamer.experiments.attacks import (
    Attack,
    before_and_after,
    fixed_question,
    lone_item,
    reading_estimates,
    replaced_history,
    side_by_side,
    until_spent,
)
from streamer.experiments.audit import play
from streamer.monitors.counting import Counting
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.perturbation import Perturbation
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Domain, Neighbours
from streamer.privacy.threshold import Plan, Workload, plan

pytestmark = pytest.mark.slow

DOUBT = 1e-8
TRIALS = 100_000


def planned(contributions=1, delta=0.01, steps=30, neighbours=Neighbours.ADD_REMOVE):
    guarantee = Guarantee(1.0, delta, contributions, neighbours)
    return plan(guarantee, Workload(steps, 1000, 0.05))


def low_threshold(domain):
    """Five above nothing, with noise of scale 4: items that one user holds often pass."""
    calibration = calibrate(Guarantee(1.0, 0.01, 1, Neighbours.ADD_REMOVE))
    return Plan(Workload(4, 2 * TRIALS, 0.05, domain), calibration, threshold=6)


def asking_with(noise):
    """Deciding with noise of another kind, made from the plan's calibration."""
    return lambda: Deciding(lambda plan: NoisyThreshold(plan, noise(plan.calibration)))


def share_of_the_noise(share):
    def noise(calibration):
        return Perturbation(replace(calibration, noise_scale=share * calibration.noise_scale))

    return asking_with(noise)


class NobodyIsCharged(Counting):
    def charge(self, counted, decision):
        return counted.holdings.users[:0]


class EveryOtherChargeIsLost(Counting):
    """As after a crash between publishing a decision and keeping its charges."""

    crashed = False

    def charge(self, counted, decision):
        self.crashed = not self.crashed
        if self.crashed:
            return counted.holdings.users[:0]
        return super().charge(counted, decision)


class UsersCountTwice(Counting):
    def count(self, step, holdings):
        counted = super().count(step, holdings)
        tally = replace(counted.tally, holders=2 * counted.tally.holders)
        return replace(counted, tally=tally)


class ExhaustedUsersStillCount(Counting):
    def count(self, step, holdings):
        return replace(
            super().count(step, holdings), tally=Counting(10**6).count(step, holdings).tally
        )


class TrueCountsArePublished(Deciding):
    """The noise decides, but the estimate is the count itself."""

    def decide(self, tally):
        decision = super().decide(tally)
        truth = tally.holders[np.isin(tally.items, decision.items)]
        return replace(decision, estimates=truth)


class NoiseOfTheFirstStep:
    """Draws once for every item and repeats itself in each step."""

    def __init__(self, calibration):
        self._noise = Perturbation(calibration)
        self._drawn = np.empty(0, dtype=np.int64)

    def draw(self, size):
        missing = max(0, size - len(self._drawn))
        self._drawn = np.append(self._drawn, self._noise.draw(missing))
        return self._drawn[:size]


class OneNoiseForAll:
    def __init__(self, calibration):
        self._noise = Perturbation(calibration)

    def draw(self, size):
        return np.repeat(self._noise.draw(1), size)


class OnlyHeldItems(NoisyThreshold):
    def _with_unheld(self, decision, tally, resting):
        return decision


@dataclass(frozen=True)
class Case:
    """What is broken, how it is planned, and the attack that finds it out.

    A twin is the product's monitor with another counting, or another deciding.
    """

    name: str
    plan: Callable[[], Plan]
    attack: Callable
    counting: Callable[[], Counting] = Counting
    deciding: Callable[[], Deciding] = Deciding

    trials: int = TRIALS

    def found(self):
        return self.found_with(self.counting, self.deciding)

    def found_with(self, counting=Counting, deciding=Deciding):
        plan = self.plan()

        def start():
            return HeavyHitterMonitor(plan, counting=counting(), deciding=deciding())

        return play(Attack("", self.attack, self.trials), start, DOUBT)


def replaced():
    return planned(neighbours=Neighbours.REPLACE)


def many_contributions():
    return planned(contributions=10, delta=0.1, steps=40)


@cache
def usual():
    """The settings of the service, where δ is far too small to be measured."""
    guarantee = Guarantee(1.0, 1e-6, 10)
    return plan(guarantee, Workload(1440, 100_000, 0.05, users=1_000_000))


def low_declared():
    return low_threshold(Domain.DECLARED)


HALF_THE_NOISE, MOST_OF_THE_NOISE = share_of_the_noise(0.5), share_of_the_noise(0.8)
CASES = [
    Case("half the noise", planned, until_spent, deciding=HALF_THE_NOISE),
    Case("half the noise, replaced", replaced, replaced_history, deciding=HALF_THE_NOISE),
    Case("half the noise, usual", usual, replaced_history, deciding=HALF_THE_NOISE),
    Case(
        *("0.8 of the noise, usual", usual, replaced_history),
        deciding=MOST_OF_THE_NOISE,
        trials=400_000,
    ),
    Case("nobody is charged", planned, fixed_question, NobodyIsCharged),
    Case("every other charge lost", many_contributions, fixed_question, EveryOtherChargeIsLost),
    Case("users count twice", planned, until_spent, UsersCountTwice),
    Case("users count twice, replaced", replaced, replaced_history, UsersCountTwice),
    Case("exhausted users still count", planned, fixed_question, ExhaustedUsersStillCount),
    Case("true counts published", planned, reading_estimates, deciding=TrueCountsArePublished),
    Case("noise reused", planned, before_and_after, deciding=asking_with(NoiseOfTheFirstStep)),
    Case("items share noise", planned, side_by_side, deciding=asking_with(OneNoiseForAll)),
    Case("unheld skipped", low_declared, lone_item, deciding=lambda: Deciding(OnlyHeldItems)),
]


def name(case):
    return case.name.replace(" ", "-")


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_attack_finds_out_the_twin(case):
    assert case.found().broken


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_product_withstands_the_same_attack(case):
    found = case.found_with()
    assert not found.broken
    assert found.epsilon_lost <= 1.0


@pytest.mark.parametrize("case", [case for case in CASES if case.plan is not usual], ids=name)
def test_one_point_is_enough_for_a_large_defect(case):
    assert case.found().epsilon_lost > 1.0


def test_a_threshold_too_low_for_the_key_set_is_found_out():
    assert Case("", lambda: low_threshold(Domain.OPEN), lone_item).found().broken


def test_the_planned_threshold_covers_the_key_set():
    assert not Case("", lambda: planned(steps=4), lone_item).found().broken
