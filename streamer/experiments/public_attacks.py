"""Adversaries against the rule that asks public items whether they are still there.

An item becomes public while the user does not hold it, so that costs nothing. From then on the
user holds it, in one of the worlds, and the adversary chooses how many others do: so many that
both kinds of questions are rare to be answered by a charge, and telling if they are.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from streamer.experiments.game import Answers, Attack, Game, Scores, Trials
from streamer.experiments.likelihood import Evidence
from streamer.monitors.attention import Pace, pace_of, value_is_due
from streamer.privacy.prices import FULL
from streamer.privacy.terms import Domain, Neighbours
from streamer.privacy.threshold import Plan

_NEVER = -1


def attacks_on_public_items(
    plan: Plan, distances: tuple[int, int], trials: int, rounds: int
) -> list[Attack]:
    """`distances`: between the threshold and the count of the others, for items that the user
    holds in world 0 and in world 1."""
    pace = Pace(
        plan.attention,
        value_every_steps=pace_of(plan).value_every_steps,
        most_public=2 * trials,
    )
    both = partial(weigh_both_kinds, distances=distances, rounds=rounds)
    return [
        Attack("both kinds of questions", both, trials, pace),
        Attack("both kinds, past the budget", partial(both, past=True), trials, pace),
        Attack("values out of turn", values_out_of_turn, trials, pace),
    ]


def weigh_both_kinds(
    game: Game, world: int, distances: tuple[int, int], rounds: int, past: bool = False
) -> Scores:
    """Hold a public item until it is gone or the budget is spent; the score is the logarithm of
    the likelihood ratio of all answers. `past`: hold it only in steps that ask whether it is still
    there, but also once the budget is spent."""
    present = world
    histories = list(enumerate(distances))
    if game.plan.guarantee.neighbours is Neighbours.ADD_REMOVE:
        histories, present = histories[1:], world if world else _NEVER
    watched = {place: _Watched(game, place, distance, past) for place, distance in histories}
    for _ in range(min(rounds, game.rounds_left)):
        for each in watched.values():
            each.choose(game.now)
        here = watched.get(present)
        none = np.empty(0, dtype=np.int64)
        answers = game.step(
            none if here is None else here.users,
            none if here is None else here.items[here.users],
            np.concatenate([each.items for each in watched.values()]),
            np.concatenate([each.others for each in watched.values()]),
        )
        for each in watched.values():
            each.note(game.now - 1, answers)
    *before, after = (each.score for each in watched.values())
    return np.asarray(after - sum(before))


def values_out_of_turn(game: Game, world: int) -> Scores:
    """How many values are published in steps in which none is due: the user holds a public item
    with many others in every other step.

    Detects a schedule that looks at counts.
    """
    items = _first_open(game.plan) + np.arange(game.trials)
    many = np.full(len(items), game.plan.threshold + _surely(game.plan))
    nobody = np.empty(0, dtype=np.int64)
    game.step(nobody, nobody, items, many)
    seen = np.zeros(len(items))
    most = pace_of(game.plan).value_every_steps
    for age in range(1, min(40, game.rounds_left + 1)):
        users = np.arange(game.trials if world and age % 2 else 0)
        answers = game.step(users, items[users], items, many)
        if not value_is_due(age, most):
            seen += answers.above[items]
    return seen


class _Watched:
    """One item of each trial, which the user holds in one of the worlds while it is public.

    What the user is charged there follows from the answers.
    """

    def __init__(self, game: Game, place: int, distance: int, past: bool) -> None:
        plan = self._plan = game.plan
        self._past = past
        self._most = pace_of(plan).value_every_steps
        self.items = _first_open(plan) + 2 * np.arange(game.trials) + place
        self._since = np.full(game.trials, _NEVER)
        self._units = np.zeros(game.trials, dtype=np.int64)
        self.score = np.zeros(game.trials)
        self._distance = distance
        self._value = Evidence(plan, distance)
        # "Gone" is to "still there?" what a report is to a value question, seen from above.
        exits = plan.exit_threshold_of(is_declared=False)
        self._check = Evidence(plan, -distance)
        self._is_there = math.log(plan.law.at_least(-distance - 1) / plan.law.at_least(-distance))
        self._exit_others = exits + distance
        self._publish_others = plan.threshold + _surely(plan)

    def choose(self, step: int) -> None:
        """Set `users`, who hold their items in this step, and the number of `others`."""
        plan = self._plan
        left = plan.guarantee.contributions * FULL - self._units >= FULL
        public = self._since != _NEVER
        due = np.array([value_is_due(age, self._most) for age in range(step + 2)])
        self._is_value: NDArray[np.bool_] = public & due[np.where(public, step - self._since, 0)]
        holding = public & (~self._is_value if self._past else left)
        self.users: Trials = np.flatnonzero(holding)
        self.others = np.where(
            self._is_value,
            plan.threshold - self._distance,
            np.where(public, self._exit_others, self._publish_others),
        )

    def note(self, step: int, answers: Answers) -> None:
        above, gone = answers.above[self.items], answers.gone[self.items]
        excess = answers.estimates[self.items] - self.others
        told = np.where(self._is_value, self._value.quiet, self._is_there)
        told[gone] = self._check.quiet
        # A value where none is due must not be: if there is one, it is read.
        told[above] = self._value.of_reports(excess[above])
        self.score[self.users] += told[self.users]
        prices = np.where(gone, FULL, 0)
        paid = above & self._is_value
        reported = answers.estimates[self.items] - self._plan.threshold
        prices[paid] = self._plan.calibration.prices(reported[paid])
        self._units[self.users] += prices[self.users]
        self._since[above & (self._since == _NEVER)] = step
        self._since[gone] = _NEVER


def _surely(plan: Plan) -> int:
    """So many users above the threshold are reported nearly every time."""
    return math.ceil(8 * plan.calibration.noise_scale)


def _first_open(plan: Plan) -> int:
    """The first item that is not declared, in an open domain."""
    return 0 if plan.workload.domain is Domain.DECLARED else plan.workload.declared
