"""Runs the paper's example through the monitor and the baselines.

Every method gets the same users, the same (ε, δ) and, for each family, the best
threshold for finding that family. The lone items (one user each, about a million times
a million questions) are not simulated one by one: each is reported independently with the
same probability, so the number of reports is drawn from the binomial distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.experiments.game import VALUES_ALONE
from streamer.experiments.paper_example import PaperExample
from streamer.monitors.baselines import RestartedAboveThreshold, StepHistogram
from streamer.monitors.counters import Charges
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import OwnNumbers, Tally
from streamer.privacy.baseline_plans import plan_histograms, plan_restarts
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import RandomBytes
from streamer.privacy.terms import Attention, Method
from streamer.privacy.threshold import Plan, plan

CONTRIBUTIONS = 3
"""k* of the example: every user is in one set of each of three families."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one method found of one family; averages over the trials.

    `reach`: the smallest set that the method is sure to find. `users_needed`: how many
    users it takes to have as many sets of that size.
    """

    method: str
    family: str
    size: int
    sets: int
    found: float
    false_reports: float
    threshold: float
    reach: int
    users_needed: int


@dataclass(frozen=True, slots=True)
class Reported:
    """The result of one step: whether its set was reported, and how many lone items were."""

    found: bool
    false_reports: int


class Contender(Protocol):
    """A method during a run: it is shown the steps in order."""

    def observe(self, members: NDArray[np.uint64]) -> Reported: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method: its threshold, the families it is tuned for, and how to start a run."""

    method: str
    families: tuple[int, ...]
    threshold: float
    reach: int
    start: Callable[[Dice], Contender]


@dataclass(frozen=True, slots=True)
class Dice:
    """The randomness of an experiment: bytes for the noise, a generator for the data."""

    random_bytes: RandomBytes
    rng: np.random.Generator

    @classmethod
    def of(cls, random_bytes: RandomBytes) -> Dice:
        seed = int.from_bytes(random_bytes(16))
        return cls(random_bytes, np.random.Generator(np.random.Philox(seed)))


def compare(
    example: PaperExample,
    guarantee: Guarantee,
    trials: int,
    random_bytes: RandomBytes,
    progress: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Run every method on the example; `progress` is called after each step of each run."""
    dice = Dice.of(random_bytes)
    candidates = enter(example, guarantee)
    found = np.zeros((len(candidates), len(example.families)))
    false_reports = np.zeros(len(candidates))
    for _ in range(trials):
        members = example.members(dice.rng)
        families = example.family_of_step()
        order = dice.rng.permutation(example.steps).tolist()
        for place, candidate in enumerate(candidates):
            contender = candidate.start(dice)
            for step in order:
                reported = contender.observe(members[step])
                found[place, families[step]] += reported.found
                false_reports[place] += reported.false_reports
                progress()
    return [
        Row(
            method=candidate.method,
            family=example.families[family].name,
            size=example.families[family].size,
            sets=example.families[family].sets,
            found=float(found[place, family]) / trials,
            false_reports=float(false_reports[place]) / trials,
            threshold=candidate.threshold,
            reach=candidate.reach,
            users_needed=candidate.reach * example.families[family].sets,
        )
        for place, candidate in enumerate(candidates)
        for family in candidate.families
    ]


def enter(example: PaperExample, guarantee: Guarantee) -> list[Candidate]:
    """All methods, at their best. The classic technique is tuned for each family separately."""
    every = tuple(range(len(example.families)))

    def monitor(name: str, method: Method, attention: Attention | None = None) -> Candidate:
        planned = plan(guarantee, example.workload, method, attention=attention)
        return _enter_monitor(f"monitor ({name})", example, planned)

    return [
        monitor("horizon", Method.HORIZON),
        monitor("every step", Method.HORIZON, Attention.EVERY_STEP),
        monitor("exact", Method.EXACT),
        *(_enter_restarts(example, guarantee, family) for family in every),
        _enter_histogram(example, guarantee),
        monitor("theorem", Method.THEOREM),
    ]


def _enter_monitor(method: str, example: PaperExample, planned: Plan) -> Candidate:
    def start(dice: Dice) -> Contender:
        deciding: Deciding[int] = Deciding(partial(NoisyThreshold, random_bytes=dice.random_bytes))
        # A set shares an item in one step only: what is public afterwards says nothing more.
        monitor = HeavyHitterMonitor(planned, VALUES_ALONE, deciding=deciding)
        return _Monitor(monitor, example.users, dice.rng)

    every = tuple(range(len(example.families)))
    return Candidate(method, every, planned.threshold, planned.guaranteed_weight, start)


def _enter_restarts(example: PaperExample, guarantee: Guarantee, family: int) -> Candidate:
    halts, ignored = example.halts(family), example.ignored(family)
    planned = plan_restarts(guarantee, example.workload, halts, ignored)

    def start(dice: Dice) -> Contender:
        technique = RestartedAboveThreshold(planned, dice.random_bytes)
        return _Restarted(technique, example.users, dice.rng)

    reach = math.ceil(planned.reach)
    return Candidate("classic sparse vector", (family,), planned.threshold, reach, start)


def _enter_histogram(example: PaperExample, guarantee: Guarantee) -> Candidate:
    planned = plan_histograms(guarantee, example.workload)

    def start(dice: Dice) -> Contender:
        return _Histogram(StepHistogram(planned, dice.random_bytes), example.users, dice.rng)

    every = tuple(range(len(example.families)))
    threshold, reach = round(planned.threshold, 1), math.ceil(planned.reach)
    return Candidate("histogram each step", every, threshold, reach, start)


class _Monitor:
    """The real monitor. Holders of lone items are charged as well, if those are reported."""

    def __init__(self, monitor: HeavyHitterMonitor, users: int, rng: np.random.Generator) -> None:
        self._monitor = monitor
        self._users = users
        self._rng = rng
        self._step = 0

    def observe(self, members: NDArray[np.uint64]) -> Reported:
        items = np.zeros(len(members), dtype=np.int64)
        counted = self._monitor.count(self._step, members, items)
        self._step += 1
        lone = self._users - self._monitor.counters.exhausted - int(counted.tally.holders.sum())
        decision = self._monitor.decide(counted.tally)
        self._monitor.charge(counted, decision)
        return Reported(len(decision.items) > 0, self._lone_reports(lone, members))

    def _lone_reports(self, lone: int, members: NDArray[np.uint64]) -> int:
        reported = int(self._rng.binomial(lone, self._monitor.plan.detection(1)))
        if reported:
            counters = self._monitor.counters
            everyone = np.arange(self._users, dtype=np.uint64)
            others = np.setdiff1d(everyone[counters.active(everyone)], members)
            charged = np.sort(self._rng.choice(others, reported, replace=False))
            counters.charge(Charges.full(charged))
        return reported


class _Restarted:
    def __init__(
        self, technique: RestartedAboveThreshold, users: int, rng: np.random.Generator
    ) -> None:
        self._technique = technique
        self._users = users
        self._rng = rng

    def observe(self, members: NDArray[np.uint64]) -> Reported:
        decision = self._technique.decide(_tally(members))
        if decision is None:
            return Reported(found=False, false_reports=0)
        lone = self._users - len(members)
        false_reports = self._rng.binomial(lone, self._technique.histogram.detection(1))
        return Reported(len(decision.items) > 0, int(false_reports))


class _Histogram:
    def __init__(self, histogram: StepHistogram, users: int, rng: np.random.Generator) -> None:
        self._histogram = histogram
        self._users = users
        self._rng = rng

    def observe(self, members: NDArray[np.uint64]) -> Reported:
        decision = self._histogram.decide(_tally(members))
        lone = self._users - len(members)
        false_reports = self._rng.binomial(lone, self._histogram.detection(1))
        return Reported(len(decision.items) > 0, int(false_reports))


def _tally(members: NDArray[np.uint64]) -> Tally[int]:
    """One item, held by all members; these methods ignore the step number."""
    return Tally(0, np.zeros(1, dtype=np.int64), np.array([len(members)]), OwnNumbers())
