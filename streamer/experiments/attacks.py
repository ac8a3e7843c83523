"""Adversaries who play the privacy game against a real monitor.

In each trial the adversary chooses everybody's data and must find out which of two worlds the
trial is in; the worlds differ in the history of a single user. Trials are independent, because
a monitor's noise is fresh per item and its counters are per user. So all trials are played at
once in one monitor, each with its own user and items.

An attack returns one number per trial; `confidence` measures how well that number
distinguishes the worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import Tally
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Plan

Scores = NDArray[np.float64]
Trials = NDArray[np.int64]
Start = Callable[[], HeavyHitterMonitor]
"""Creates the monitor under attack, a new one for each world."""

# Lone items are asked about in every step of a period, so there are fewer trials.
_MOST_LONE_QUESTIONS = 100_000_000


@dataclass(frozen=True, slots=True)
class Attack:
    """`play(game, world)` returns the scores of a game's trials in world 0 or 1."""

    name: str
    play: Callable[[Game, int], Scores]
    trials: int


@dataclass(frozen=True, slots=True)
class Answers:
    """What the adversary sees in a step, per item: whether it was reported, and f̂ if so."""

    above: NDArray[np.bool_]
    estimates: NDArray[np.int64]


class Game:
    """Trials played at once. User i belongs to trial i; the adversary adds other holders."""

    def __init__(self, monitor: HeavyHitterMonitor, trials: int) -> None:
        self.monitor = monitor
        self.plan: Plan = monitor.plan
        self.trials = trials
        self._step = 0

    @property
    def rounds_left(self) -> int:
        """Steps left in the budget period, which is the length of a game."""
        return self.plan.workload.period_steps - self._step

    def step(self, users: Trials, held: Trials, asked: Trials, others: int) -> Answers:
        """Play one step: these users hold these items; `others` more hold each item in `asked`.

        The others are different users in every step, so none of them is charged twice.
        """
        counted = self.monitor.count(self._step, users.astype(np.uint64), held)
        decision = self.monitor.decide(_with_others(counted.tally, asked, others))
        self.monitor.charge(counted, decision)
        self._step += 1
        size = 1 + max(asked.max(initial=0), decision.items.max(initial=0))
        above = np.zeros(size, dtype=np.bool_)
        estimates = np.zeros(size, dtype=np.int64)
        above[decision.items] = True
        estimates[decision.items] = decision.estimates
        return Answers(above, estimates)


def attacks_on(plan: Plan, trials: int) -> list[Attack]:
    """Every attack that the plan's notion of neighbours allows."""
    lone = max(1, min(trials, _MOST_LONE_QUESTIONS // plan.workload.period_steps))
    attacks = [
        Attack("fixed question at the threshold", fixed_question, trials),
        Attack("question until the budget is spent", until_spent, trials),
        Attack("reading the estimates", reading_estimates, trials),
        Attack("estimates before and after", before_and_after, trials),
        Attack("estimates side by side", side_by_side, trials),
        Attack("an item that one user alone holds", lone_item, lone),
    ]
    if plan.guarantee.neighbours is Neighbours.REPLACE:
        attacks.append(Attack("one history replaced by another", replaced_history, trials))
    return attacks


def fixed_question(game: Game, world: int) -> Scores:
    """Ask the same question at the threshold repeatedly; the score is the number of ⊤."""
    everyone = np.arange(game.trials)
    users = everyone if world else everyone[:0]
    score = np.zeros(game.trials)
    for _ in range(min(game.rounds_left, 8 * game.plan.guarantee.contributions + 64)):
        score += game.step(users, users, everyone, _just_below(game)).above[: game.trials]
    return score


def until_spent(game: Game, world: int) -> Scores:
    """Ask the same question until the k-th ⊤; the score is the number of ⊥ before it.

    With discrete noise, a question at the threshold is a randomized response at the full
    odds (except for v̄), so this attack almost reaches the bound of the exact calibration.
    """
    return _ask_until_spent(game, [world == 1])[0]


def replaced_history(game: Game, world: int) -> Scores:
    """The user holds item a in one world and b in the other; ask about both until spent."""
    first, second = _ask_until_spent(game, [world == 0, world == 1])
    return second - first


def reading_estimates(game: Game, world: int) -> Scores:
    """An item far above the threshold is reported with f̂ each time; sum up the deviations."""
    everyone = np.arange(game.trials)
    users = everyone if world else everyone[:0]
    others = _far_above(game)
    score = np.zeros(game.trials)
    for _ in range(min(game.rounds_left, 2 * game.plan.guarantee.contributions)):
        answers = game.step(users, users, everyone, others)
        # The log-likelihood ratio of Laplace noise: constant except between the two centres.
        score += np.clip(answers.estimates[: game.trials] - others - 0.5, -0.5, 0.5)
    return score


def before_and_after(game: Game, world: int) -> Scores:
    """How much the estimate of an unchanged item drops once the user no longer counts.

    Detects noise that is drawn once and reused in later steps.
    """
    everyone = np.arange(game.trials)
    users = everyone if world else everyone[:0]
    rounds = min(game.rounds_left, game.plan.guarantee.contributions + 1)
    estimates = [
        game.step(users, users, everyone, _far_above(game)).estimates[: game.trials]
        for _ in range(rounds)
    ]
    return (estimates[0] - estimates[-1]).astype(np.float64)


def side_by_side(game: Game, world: int) -> Scores:
    """How much an item's estimate exceeds that of another item, which the user never holds.

    Detects noise that several items share.
    """
    everyone = np.arange(game.trials)
    users = everyone if world else everyone[:0]
    both = np.arange(2 * game.trials)
    estimates = game.step(users, users, both, _far_above(game)).estimates
    held, other = estimates[: game.trials], estimates[game.trials : 2 * game.trials]
    return (held - other).astype(np.float64)


def lone_item(game: Game, world: int) -> Scores:
    """Whether an item that only the user holds is reported in any step of the period."""
    everyone = np.arange(game.trials)
    users = everyone if world else everyone[:0]
    seen = np.zeros(game.trials)
    for _ in range(game.rounds_left):
        above = game.step(users, users, everyone[:0], 0).above[: game.trials]
        seen[: len(above)] += above
    return seen


def noise_drawn(game: Game) -> Scores:
    """The noise of one answer per trial; infinite where the item is not even reported."""
    everyone, others = np.arange(game.trials), _far_above(game)
    answers = game.step(everyone[:0], everyone[:0], everyone, others)
    return np.where(answers.above, answers.estimates - others, np.inf)[: game.trials]


def _ask_until_spent(game: Game, present: list[bool]) -> list[Scores]:
    """Ask about one item per entry of `present`, each until its k-th ⊤ in its trial.

    In each world the user holds at most one of a trial's items per step. Returns the number
    of ⊥ per item and trial.
    """
    k = game.plan.guarantee.contributions
    kinds = len(present)
    tops = [np.zeros(game.trials) for _ in present]
    bottoms = [np.zeros(game.trials) for _ in present]
    trials = np.arange(game.trials)
    for _ in range(game.rounds_left):
        open_trials = [trials[count < k] for count in tops]
        if not any(len(playing) for playing in open_trials):
            break
        asked = [playing * kinds + kind for kind, playing in enumerate(open_trials)]
        holding = [kind for kind, here in enumerate(present) if here]
        users = np.concatenate([open_trials[kind] for kind in holding] or [trials[:0]])
        held = np.concatenate([asked[kind] for kind in holding] or [trials[:0]])
        answers = game.step(users, held, np.sort(np.concatenate(asked)), _just_below(game))
        for kind, playing in enumerate(open_trials):
            above = answers.above[asked[kind]]
            tops[kind][playing] += above
            bottoms[kind][playing] += ~above
    return bottoms


def _just_below(game: Game) -> int:
    """The number of others at which the one user makes the difference at the threshold."""
    return game.plan.threshold - 1


def _far_above(game: Game) -> int:
    """A number of others at which the item is reported nearly every time."""
    return game.plan.threshold + math.ceil(8 * game.plan.calibration.noise_scale)


def _with_others(tally: Tally[int], asked: Trials, others: int) -> Tally[int]:
    """The tally of all users: those of the trials, and `others` for each item in `asked`."""
    if not others:
        return tally
    size = 1 + max(asked.max(initial=0), tally.items.max(initial=0))
    holders = np.zeros(size, dtype=np.int64)
    holders[tally.items] = tally.holders
    holders[asked] += others
    held = np.flatnonzero(holders)
    return replace(tally, items=held, holders=holders[held])
