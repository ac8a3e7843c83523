"""Deciding: which items are asked about, with which noise, and what is reported.

The only owner of randomness. It sees tallies and never a user. Its only state between steps
is which items rest. That is a function of earlier decisions, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.declared import DeclaredItems
from streamer.monitors.perturbation import Noise, noise_of
from streamer.monitors.refresh import Refresh
from streamer.monitors.seam import Decision, Item, Items, Tally
from streamer.privacy.binomial import draw_binomial
from streamer.privacy.randomness import RandomBytes, secure_bytes
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan


class Questions(Protocol[Item]):
    """Asks about the items of a step under one plan."""

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        ...

    def ask(self, tally: Tally[Item], resting: Collection[Item]) -> Decision:
        """Ask about every item except the resting ones."""
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

    def ask(self, tally: Tally[Item], resting: Collection[Item] = ()) -> Decision:
        """Held items, each at its threshold, and declared items that nobody holds."""
        plan = self._plan
        places = self._declared.held(tally)
        asked = self._asked(tally, places, resting)
        items, is_declared = tally.items[asked], places[asked] >= 0
        thresholds = np.where(is_declared, self._declared_threshold, plan.threshold)
        estimates = tally.holders[asked] + self._noise.draw(len(items))
        above = estimates >= thresholds
        found = _Found(items[above], estimates[above], thresholds[above])
        if self.asks_unheld:
            found = found.with_more(self._unheld(tally, places, resting))
        return Decision(
            tally.step, found.items, found.estimates, plan.calibration.prices(found.excess)
        )

    def _asked(
        self, tally: Tally[Item], places: Items, resting: Collection[Item]
    ) -> NDArray[np.bool_]:
        """Which items of a tally are asked about."""
        numbers = tally.numbers
        asked = np.ones(len(tally.items), dtype=np.bool_)
        if self._plan.workload.domain is Domain.DECLARED:
            asked &= places >= 0
        asleep = [numbers[item] for item in resting if item in numbers]
        if asleep:
            asked &= ~np.isin(tally.items, asleep)
        return asked

    def _unheld(self, tally: Tally[Item], places: Items, resting: Collection[Item]) -> _Found:
        """The reports among declared items that nobody holds.

        Each passes with probability Pr[Z >= t], independently: their number is
        binomial, and which ones they are is uniform. Given that it passes, Z has the law
        of w >= t, whatever v̄ was, because t is not below the cap of v̄.
        """
        excluded = np.union1d(places[places >= 0], self._declared.places(resting))
        unheld = len(self._declared) - len(excluded)
        number = draw_binomial(unheld, self._unheld_passes, self._random_bytes)
        threshold = self._declared_threshold
        chosen = self._declared.draw(number, excluded, self._random_bytes)
        return _Found(
            self._declared.numbers(chosen, tally.numbers),
            self._noise.draw_at_least(threshold, number),
            np.full(number, threshold, dtype=np.int64),
        )


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
        self._refresh: Refresh[Item] = Refresh()
        self._decided: int | None = None

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        return self._questions is not None and self._questions.asks_unheld

    def begin(self, plan: Plan, refresh_steps: int = 1, declared: Sequence[Item] = ()) -> None:
        """Start a budget period with its plan and declared items. Resting items keep resting."""
        self._questions = self._make_questions(plan, declared)
        self._refresh.steps = refresh_steps

    def restore(self, decided: int, resting: Mapping[Item, int]) -> None:
        """Restore the last decided step, and the step in which each resting item is asked again."""
        self._decided = decided
        self._refresh.restore(resting)

    def decide(self, tally: Tally[Item]) -> Decision:
        """What is reported in the tally's step, which must be later than all decided steps."""
        if self._questions is None:
            raise MonitorError("no budget period has begun: nothing can be decided")
        step = tally.step
        if self._decided is not None and step <= self._decided:
            raise MonitorError(
                f"step {step} cannot follow step {self._decided}: no step is decided twice"
            )
        # Set before any noise is drawn: even after a failure, this step is never asked again.
        self._decided = step
        decision = self._questions.ask(tally, self._refresh.resting(step))
        self._refresh.note(step, tally.numbers.names(decision.items))
        return decision
