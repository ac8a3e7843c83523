"""Deciding: which items are asked about, with which noise, and what is reported.

The only owner of randomness. It sees tallies and never a user. Its only state between steps
is which items are public or rest. That is a function of earlier decisions, so it costs no
privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.attention import Agenda, Pace, Rule, rule_of
from streamer.monitors.declared import DeclaredItems
from streamer.monitors.perturbation import Noise, noise_of
from streamer.monitors.seam import Decision, Hitter, Item, Items, Tally
from streamer.privacy.binomial import draw_binomial
from streamer.privacy.randomness import RandomBytes, secure_bytes
from streamer.privacy.terms import Attention, Domain
from streamer.privacy.threshold import Plan

_NOTHING_PUBLIC: Agenda[Any] = Agenda()


class Questions(Protocol[Item]):
    """Asks about the items of a step under one plan."""

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        ...

    def ask(self, tally: Tally[Item], agenda: Agenda[Item]) -> Decision:
        """Ask what is on the agenda, and for the values of all other items."""
        ...


MakeQuestions = Callable[[Plan, Sequence[Item]], Questions[Item]]
"""Creates the questions of a period from its plan and its declared items."""


class NoisyThreshold(Generic[Item]):
    """The real questions: is the count plus fresh noise at least the threshold?"""

    def __init__(
        self,
        plan: Plan,
        declared: Sequence[Item] = (),
        noise: Noise | None = None,
        random_bytes: RandomBytes = secure_bytes,
    ) -> None:
        self._plan = plan
        self._declared = DeclaredItems(declared)
        self._noise = noise or noise_of(plan.calibration, random_bytes=random_bytes)
        self._random_bytes = random_bytes
        self._declared_threshold = plan.threshold_of(is_declared=True)
        if declared:
            self._unheld_passes = plan.law.precise_at_least(self._declared_threshold)

    @property
    def asks_unheld(self) -> bool:
        return len(self._declared) > 0

    def ask(self, tally: Tally[Item], agenda: Agenda[Item] = _NOTHING_PUBLIC) -> Decision:
        """Held items and public ones, each at its threshold, and declared items that nobody
        holds."""
        places = self._declared.held(tally)
        quiet = self._quiet(tally, places, agenda)
        found = self._values(tally.items[quiet], tally.holders[quiet], places[quiet] >= 0)
        if agenda.values:
            found = found.with_more(
                self._values(*_public(tally, agenda.values), self._is_declared(agenda.values))
            )
        if self.asks_unheld:
            found = found.with_more(self._unheld(tally, places, agenda))
        prices = self._plan.calibration.prices(found.excess)
        gone = self._gone(tally, agenda.checks)
        return Decision(tally.step, found.items, found.estimates, prices, gone)

    def _values(
        self, items: Items, holders: NDArray[np.int64], is_declared: NDArray[np.bool_]
    ) -> _Found:
        """Ask for values. The answer is one only if it reaches the threshold."""
        thresholds = np.where(is_declared, self._declared_threshold, self._plan.threshold)
        estimates = holders + self._noise.draw(len(items))
        above = estimates >= thresholds
        return _Found(items[above], estimates[above], thresholds[above])

    def _gone(self, tally: Tally[Item], checks: Sequence[Item]) -> Items:
        """Ask public items whether they are still there. Their noisy counts go nowhere."""
        if not checks:
            return np.empty(0, dtype=np.int64)
        items, holders = _public(tally, checks)
        declared = self._is_declared(checks)
        exits = [self._plan.exit_threshold_of(each) for each in declared.tolist()]
        is_there = holders + self._noise.draw(len(items)) >= np.array(exits, dtype=np.int64)
        return np.sort(items[~is_there])

    def _quiet(self, tally: Tally[Item], places: Items, agenda: Agenda[Item]) -> NDArray[np.bool_]:
        """Which items of a tally are neither public nor resting, and can be reported."""
        numbers = tally.numbers
        quiet = np.ones(len(tally.items), dtype=np.bool_)
        if self._plan.workload.domain is Domain.DECLARED:
            quiet &= places >= 0
        others = [numbers[item] for item in agenda.named if item in numbers]
        if others:
            quiet &= ~np.isin(tally.items, others)
        return quiet

    def _is_declared(self, items: Sequence[Item]) -> NDArray[np.bool_]:
        return np.array([item in self._declared for item in items], dtype=np.bool_)

    def _unheld(self, tally: Tally[Item], places: Items, agenda: Agenda[Item]) -> _Found:
        """The reports among declared items that nobody holds and that are not public.

        Each passes with probability Pr[Z >= t], independently: their number is
        binomial, and which ones they are is uniform. Given that it passes, Z has the law
        of w >= t, whatever v̄ was, because t is not below the cap of v̄.
        """
        excluded = np.union1d(places[places >= 0], self._declared.places(agenda.named))
        unheld = len(self._declared) - len(excluded)
        number = draw_binomial(unheld, self._unheld_passes, self._random_bytes)
        threshold = self._declared_threshold
        chosen = self._declared.draw(number, excluded, self._random_bytes)
        return _Found(
            self._declared.numbers(chosen, tally.numbers),
            self._noise.draw_at_least(threshold, number),
            np.full(number, threshold, dtype=np.int64),
        )


def _public(tally: Tally[Item], items: Sequence[Item]) -> tuple[Items, NDArray[np.int64]]:
    """The numbers of public items in a step, and how many active users hold each: maybe none."""
    numbers = np.array([tally.numbers[item] for item in items], dtype=np.int64)
    holders = np.zeros(len(numbers), dtype=np.int64)
    _, there, places = np.intersect1d(numbers, tally.items, assume_unique=True, return_indices=True)
    holders[there] = tally.holders[places]
    return numbers, holders


@dataclass(frozen=True, slots=True)
class _Found:
    """Reported items, their estimates, and the thresholds that they were asked at."""

    items: Items
    estimates: NDArray[np.int64]
    thresholds: NDArray[np.int64]

    @property
    def excess(self) -> NDArray[np.int64]:
        return self.estimates - self.thresholds

    def with_more(self, more: _Found) -> _Found:
        """Both, in the order of items."""
        items = np.concatenate((self.items, more.items))
        order = np.argsort(items)
        return _Found(
            items[order],
            np.concatenate((self.estimates, more.estimates))[order],
            np.concatenate((self.thresholds, more.thresholds))[order],
        )


class Deciding(Generic[Item]):
    """Decides steps in order, each once."""

    def __init__(self, questions: MakeQuestions[Item] = NoisyThreshold) -> None:
        """`questions`: scripted in tests and experiments."""
        self._make_questions = questions
        self._questions: Questions[Item] | None = None
        self._rule: Rule[Item] = rule_of(Pace())
        self._decided: int | None = None
        self.public: tuple[Hitter[Item], ...] = ()
        """What the last decided step says about each public item, ordered by item."""

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        asks = self._questions is not None and self._questions.asks_unheld
        return asks or self._rule.asks_unheld

    def begin(self, plan: Plan, pace: Pace, declared: Sequence[Item] = ()) -> None:
        """Start a budget period with its plan, pace and declared items. Public items stay public,
        and resting ones keep resting, unless the rule of attention changes."""
        if pace.attention is Attention.CHANGES and plan.exit_threshold is None:
            raise MonitorError("the plan does not cover the question whether an item is there")
        self._questions = self._make_questions(plan, declared)
        self._take_up(pace)

    def restore(
        self, decided: int, past: Iterable[tuple[int, Pace, Sequence[Hitter[Item]]]]
    ) -> None:
        """Restore the last decided step, and what earlier steps said, in order: step, the pace of
        its period, and the hitters."""
        self._decided = decided
        pace = self._rule.pace
        for step, its_pace, hitters in past:
            self._take_up(its_pace)
            self._rule.restore(step, hitters)
        self._take_up(pace)

    def decide(self, tally: Tally[Item]) -> Decision:
        """The answers in the tally's step, which must be later than all decided steps."""
        if self._questions is None:
            raise MonitorError("no budget period has begun: nothing can be decided")
        step = tally.step
        if self._decided is not None and step <= self._decided:
            raise MonitorError(
                f"step {step} cannot follow step {self._decided}: no step is decided twice"
            )
        # Set before any noise is drawn: even after a failure, this step is never asked again.
        self._decided = step
        decision = self._questions.ask(tally, self._rule.agenda(step))
        names = tally.numbers.names
        reported = zip(names(decision.items), decision.estimates.tolist(), strict=True)
        self.public = self._rule.note(step, dict(reported), frozenset(names(decision.gone)))
        return decision

    def _take_up(self, pace: Pace) -> None:
        if self._rule.pace.attention is pace.attention:
            self._rule.pace = pace
        else:
            self._rule = rule_of(pace)
