"""Monitors with one thing wrong, each of which an attack must find out.

A twin differs from the product in a single respect. The attack that finds it out proves,
with a doubt of 1e-8, that more than the promised ε is lost. The product itself, attacked
in the same way, must pass: a false alarm has a probability of at most 1e-8 a case.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from streamer.monitors.heavy_hitters import (
    Decider,
    Decision,
    HeavyHitterMonitor,
    Tally,
    count_holders,
)
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


class HalfTheNoise(HeavyHitterMonitor):
    def __init__(self, plan):
        scale = plan.calibration.noise_scale / 2
        noise = Perturbation(replace(plan.calibration, noise_scale=scale))
        super().__init__(plan, decider=Decider(plan, noise))


class NobodyIsCharged(HeavyHitterMonitor):
    def charge(self, decision, users, items):
        return users[:0]


class EveryOtherChargeIsLost(HeavyHitterMonitor):
    """As after a crash between publishing a decision and keeping its charges."""

    crashed = False

    def charge(self, decision, users, items):
        self.crashed = not self.crashed
        return users[:0] if self.crashed else super().charge(decision, users, items)


class UsersCountTwice(HeavyHitterMonitor):
    def count(self, users, items):
        tally = super().count(users, items)
        return Tally(tally.items, 2 * tally.holders)


class ExhaustedUsersStillCount(HeavyHitterMonitor):
    def count(self, users, items):
        return count_holders(items)


class TrueCountsArePublished(HeavyHitterMonitor):
    """The noise decides, but the estimate is the count itself."""

    def decide(self, tally):
        decision = super().decide(tally)
        return Decision(decision.items, tally.holders[np.isin(tally.items, decision.items)])


class NoiseOfTheFirstStep:
    """Draws once for every item and repeats itself in each step."""

    def __init__(self, calibration):
        self._noise = Perturbation(calibration)
        self._drawn = np.empty(0, dtype=np.int64)

    def draw(self, size):
        missing = max(0, size - len(self._drawn))
        self._drawn = np.append(self._drawn, self._noise.draw(missing))
        return self._drawn[:size]


class NoiseIsReused(HeavyHitterMonitor):
    def __init__(self, plan):
        super().__init__(plan, decider=Decider(plan, NoiseOfTheFirstStep(plan.calibration)))


class OneNoiseForAll:
    def __init__(self, calibration):
        self._noise = Perturbation(calibration)

    def draw(self, size):
        return np.repeat(self._noise.draw(1), size)


class ItemsShareTheirNoise(HeavyHitterMonitor):
    def __init__(self, plan):
        super().__init__(plan, decider=Decider(plan, OneNoiseForAll(plan.calibration)))


class OnlyHeldItems(Decider):
    def _with_unheld(self, decision, tally, resting):
        return decision


class UnheldItemsAreSkipped(HeavyHitterMonitor):
    def __init__(self, plan):
        super().__init__(plan, decider=OnlyHeldItems(plan))


@dataclass(frozen=True)
class Case:
    """What is broken, how it is planned, and the attack that finds it out."""

    twin: type[HeavyHitterMonitor]
    plan: Callable[[], Plan]
    attack: Callable

    def lost(self, start):
        attacked = self.plan()
        return play(Attack("", self.attack, TRIALS), lambda: start(attacked), DOUBT)


def replaced():
    return planned(neighbours=Neighbours.REPLACE)


def many_contributions():
    return planned(contributions=10, delta=0.1, steps=40)


def low_declared():
    return low_threshold(Domain.DECLARED)


CASES = [
    Case(HalfTheNoise, planned, until_spent),
    Case(HalfTheNoise, replaced, replaced_history),
    Case(NobodyIsCharged, planned, fixed_question),
    Case(EveryOtherChargeIsLost, many_contributions, fixed_question),
    Case(UsersCountTwice, planned, until_spent),
    Case(UsersCountTwice, replaced, replaced_history),
    Case(ExhaustedUsersStillCount, planned, fixed_question),
    Case(TrueCountsArePublished, planned, reading_estimates),
    Case(NoiseIsReused, planned, before_and_after),
    Case(ItemsShareTheirNoise, planned, side_by_side),
    Case(UnheldItemsAreSkipped, low_declared, lone_item),
]


def name(case):
    return f"{case.twin.__name__}-{case.attack.__name__}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_attack_finds_out_the_twin(case):
    assert case.lost(case.twin) > 1.0


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_product_withstands_the_same_attack(case):
    assert case.lost(HeavyHitterMonitor) <= 1.0


def test_a_threshold_too_low_for_the_key_set_is_found_out():
    case = Case(HeavyHitterMonitor, lambda: low_threshold(Domain.OPEN), lone_item)
    assert case.lost(HeavyHitterMonitor) > 1.0


def test_the_planned_threshold_covers_the_key_set():
    case = Case(HeavyHitterMonitor, lambda: planned(steps=4), lone_item)
    assert case.lost(HeavyHitterMonitor) <= 1.0
