"""Adversaries who play the privacy game against a real monitor.

An attack returns one number per trial; `confidence` measures how well that number
distinguishes the worlds. If a replaced history is to be hidden, the user holds items of its own
kind in each world, and the adversary asks about both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.experiments.game import Answers, Attack, Game, Scores
from streamer.experiments.likelihood import Evidence, Ratios, expected_questions, telling_distance
from streamer.experiments.public_attacks import attacks_on_public_items
from streamer.privacy.interval import Intervals
from streamer.privacy.prices import FULL
from streamer.privacy.terms import Attention, Domain, Neighbours
from streamer.privacy.threshold import Plan, Workload

_QUESTIONS_EACH = 150
"""With more questions in a trial there is not enough time for enough trials."""
# Attacks that ask many questions in a trial have fewer trials.
_MOST_QUESTIONS = 15_000_000
# What is public is tracked item by item, which takes longer.
_ROUNDS_PUBLIC = 50
_MOST_PUBLIC_QUESTIONS = 100_000


def attacks_on(plan: Plan, trials: int) -> list[Attack]:
    """Every attack on the plan's promise."""
    rare, far = _rare(plan), _far_above(plan)
    placed = [
        ("a question at the threshold", (1, 1), weigh_answers, trials),
        ("rare and telling reports", rare, weigh_answers, trials),
        ("reading the estimates", (far, far), weigh_answers, trials),
        # No more than the estimates tell, so a look is enough.
        ("reading the intervals", (0, 0), read_intervals, -(-trials // 4)),
    ]
    if plan.declared_threshold is not None:
        placed.append(("declared items", rare, weigh_declared, trials))
    both = 2 * plan.workload.items_per_step
    return [
        *(
            Attack(
                name,
                partial(play, distances=distances),
                _at_most(
                    wanted,
                    sum(expected_questions(plan, each, _QUESTIONS_EACH) for each in distances),
                ),
            )
            for name, distances, play, wanted in placed
        ),
        Attack("asking past the budget", past_the_budget, _at_most(trials, both * _past(plan))),
        Attack("estimates before and after", before_and_after, trials),
        Attack("estimates side by side", side_by_side, trials),
        Attack(
            "items that one user alone holds",
            lone_items,
            _at_most(trials, _counted(plan).questions),
        ),
        *_on_public_items(plan, trials),
    ]


def _on_public_items(plan: Plan, trials: int) -> list[Attack]:
    """Against the second kind of question, if there is one."""
    if plan.attention is not Attention.CHANGES:
        return []
    rounds = min(plan.workload.period_steps, _ROUNDS_PUBLIC)
    most = min(trials, _MOST_PUBLIC_QUESTIONS // rounds)
    return attacks_on_public_items(plan, _rare(plan), most, rounds)


def weigh_answers(game: Game, world: int, distances: tuple[int, int]) -> Scores:
    """Ask until the budget is spent, as many items at once as count; the score is the logarithm
    of the likelihood ratio of all answers.

    `distances`: between the threshold and the count of the others, for items that the user holds
    in world 0 and in world 1.
    """
    place = game.plan.threshold, _first_open(game.plan)
    return _difference(game, world, [_Asked(d, *place) for d in distances], _patience(game.plan))


def weigh_declared(game: Game, world: int, distances: tuple[int, int]) -> Scores:
    """The same with declared items, which have a threshold of their own."""
    threshold = game.plan.threshold_of(is_declared=True)
    asked = [_Asked(distance, threshold, first_item=0) for distance in distances]
    return _difference(game, world, asked, _patience(game.plan))


def read_intervals(game: Game, world: int, distances: tuple[int, int]) -> Scores:
    """The same, by the intervals that are published instead of the estimates."""
    place = game.plan.threshold, _first_open(game.plan)
    asked = [_Asked(distance, *place, reading=_IntervalReading) for distance in distances]
    return _difference(game, world, asked, _patience(game.plan))


def past_the_budget(game: Game, world: int) -> Scores:
    """Hold as many items as count in a step, in every step, also once the budget is spent."""
    asked = _Asked(1, game.plan.threshold, _first_open(game.plan), past_the_budget=True)
    return _difference(game, world, [asked, asked], _past(game.plan))


def before_and_after(game: Game, world: int) -> Scores:
    """How much the estimate of an unchanged item drops once the user no longer counts.

    Detects noise that is drawn once and reused in later steps.
    """
    items = _first_open(game.plan) + np.arange(game.trials)
    users = np.arange(game.trials if world else 0)
    others = game.plan.threshold - _far_above(game.plan)
    rounds = min(game.rounds_left, game.plan.guarantee.contributions + 1)
    estimates = [
        game.step(users, items[users], items, others).estimates[items] for _ in range(rounds)
    ]
    return (estimates[0] - estimates[-1]).astype(np.float64)


def side_by_side(game: Game, world: int) -> Scores:
    """How much an item's estimate exceeds that of another item, which the user never holds.

    Detects noise that several items share.
    """
    items = _first_open(game.plan) + np.arange(2 * game.trials)
    users = np.arange(game.trials if world else 0)
    others = game.plan.threshold - _far_above(game.plan)
    estimates = game.step(users, items[users], items, others).estimates[items]
    return (estimates[: game.trials] - estimates[game.trials :]).astype(np.float64)


def lone_items(game: Game, world: int) -> Scores:
    """How many reports there are of items that only the user holds, in all steps of the period."""
    at_once = game.plan.workload.items_per_step
    users = np.repeat(np.arange(game.trials if world else 0), at_once)
    held = _first_open(game.plan) + np.arange(len(users))
    every = _first_open(game.plan) + np.arange(game.trials * at_once)
    seen = np.zeros(len(every))
    for _ in range(game.rounds_left):
        above = game.step(users, held, every[:0], 0).above
        known = every[every < len(above)]
        seen[: len(known)] += above[known]
    return np.asarray(seen.reshape(-1, at_once).sum(axis=1))


def noise_drawn(game: Game) -> Scores:
    """The noise of one answer per trial; infinite where the item is not even reported."""
    items = _first_open(game.plan) + np.arange(game.trials)
    others = game.plan.threshold - _far_above(game.plan)
    answers = game.step(items[:0], items[:0], items, others)
    return np.where(answers.above, answers.estimates - others, np.inf)[items]


class _Reading(Protocol):
    """What answers at one distance say, as a part of the score."""

    quiet: float

    def of_reports(self, noise: NDArray[np.int64]) -> Ratios: ...


class _IntervalReading:
    """Reads where [low, high] lies, not the estimate that it belongs to."""

    def __init__(self, plan: Plan, distance: int) -> None:
        self._others = plan.threshold - distance
        self._intervals = Intervals(plan.law, plan.threshold)
        self._variance = plan.calibration.noise_scale**2
        self.quiet = Evidence(plan, distance).quiet

    def of_reports(self, noise: NDArray[np.int64]) -> Ratios:
        low, high = self._intervals.of(self._others + noise)
        return ((low + high) / 2 - self._others) / self._variance


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where questions are placed, and how their answers are read."""

    distance: int
    threshold: int
    first_item: int
    past_the_budget: bool = False
    reading: Callable[[Plan, int], _Reading] = Evidence


class _History:
    """The items that the user holds in one of the worlds, in every trial.

    What the user is charged there follows from the answers, so the adversary knows how many of
    its items count.
    """

    def __init__(self, game: Game, asked: _Asked, place: int, histories: int) -> None:
        self._plan, self._asked = game.plan, asked
        self._reading = asked.reading(game.plan, asked.distance)
        self._trials = np.arange(game.trials)
        self._at_once = game.plan.workload.items_per_step
        self._first = asked.first_item + place * self._at_once
        self._stride = histories * self._at_once
        self._units = np.zeros(game.trials, dtype=np.int64)
        self.others = asked.threshold - asked.distance
        self.score = np.zeros(game.trials)

    def choose(self) -> None:
        """Set `users` and their `items` for the next step; none if the budget is spent."""
        left = (self._plan.guarantee.contributions * FULL - self._units) // FULL
        counting = np.clip(left, 0, self._at_once)
        if self._asked.past_the_budget:
            counting[:] = self._at_once
        self.users = np.repeat(self._trials, counting)
        firsts = np.repeat(np.cumsum(counting) - counting, counting)
        slots = np.arange(len(self.users)) - firsts
        self.items = self._first + self.users * self._stride + slots

    def note(self, answers: Answers) -> None:
        above, estimates = answers.above[self.items], answers.estimates[self.items]
        told = np.full(len(self.items), self._reading.quiet)
        told[above] = self._reading.of_reports(estimates[above] - self.others)
        self.score += np.bincount(self.users, told, len(self.score))
        prices = self._plan.calibration.prices(estimates[above] - self._asked.threshold)
        charged = np.bincount(self.users[above], prices, len(self.score))
        self._units += charged.astype(np.int64)


def _difference(game: Game, world: int, asked: Sequence[_Asked], rounds: int) -> Scores:
    """How much more the answers speak for world 1 than for world 0."""
    if game.plan.guarantee.neighbours is Neighbours.ADD_REMOVE:
        # In world 0 the user is not there.
        asked, present = asked[1:], world - 1
    else:
        present = world
    histories = [_History(game, each, place, len(asked)) for place, each in enumerate(asked)]
    for _ in range(rounds):
        for history in histories:
            history.choose()
        if not any(len(history.users) for history in histories):
            break
        here = histories[present : present + 1] if present >= 0 else []
        none = np.empty(0, dtype=np.int64)
        answers = game.step(
            np.concatenate([none, *(history.users for history in here)]),
            np.concatenate([none, *(history.items for history in here)]),
            np.concatenate([history.items for history in histories]),
            np.repeat([h.others for h in histories], [len(h.items) for h in histories]),
        )
        for history in histories:
            history.note(answers)
    *before, after = (history.score for history in histories)
    return after - sum(before)


def _rare(plan: Plan) -> tuple[int, int]:
    """Distances at which reports are rare and telling, if the adversary has time for them.

    Different ones for the two histories: one report, and that there is none of the other, then tell
    more together. Both are closer than where a question tells most, because the budget is then
    spent sooner, and more trials prove more.
    """
    telling = telling_distance(plan, min(_counted(plan).questions, _QUESTIONS_EACH))
    return telling // 2, 5 * telling // 6


def _patience(plan: Plan) -> int:
    """How many steps are played as long as the budget is not spent."""
    at_once = _counted(plan).items_per_step
    return min(plan.workload.period_steps, math.ceil(_QUESTIONS_EACH / at_once))


def _counted(plan: Plan) -> Workload:
    return plan.workload.within(plan.guarantee.contributions)


def _past(plan: Plan) -> int:
    """How many steps are played once the budget may be spent."""
    return min(plan.workload.period_steps, 8 * plan.guarantee.contributions + 64)


def _at_most(trials: int, questions: float) -> int:
    """As many trials with this many questions as an attack has time for."""
    return max(1, min(trials, int(_MOST_QUESTIONS // questions)))


def _first_open(plan: Plan) -> int:
    """The first item that is not declared, in an open domain."""
    return 0 if plan.workload.domain is Domain.DECLARED else plan.workload.declared


def _far_above(plan: Plan) -> int:
    """A distance at which items are reported nearly every time."""
    return -math.ceil(8 * plan.calibration.noise_scale)
