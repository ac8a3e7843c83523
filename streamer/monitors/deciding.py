"""Deciding: which items are asked about, with which noise, and what is reported.

The only owner of randomness. It sees tallies and never a user. Its only state between steps
is which items rest. That is a function of earlier decisions, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.perturbation import Noise, Perturbation
from streamer.monitors.refresh import Refresh
from streamer.monitors.seam import Decision, Item, Items, Tally
from streamer.privacy.binomial import draw_below, draw_binomial
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import RandomBytes, secure_bytes
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan


class Questions(Protocol[Item]):
    """Asks about the items of a tally under one plan."""

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        ...

    def ask(self, tally: Tally[Item], resting: Collection[int]) -> Decision:
        """Ask about every item except the resting ones, given by number."""
        ...


class NoisyThreshold(Generic[Item]):
    """The real questions: is the count plus fresh noise at least the threshold?"""

    def __init__(
        self, plan: Plan, noise: Noise | None = None, random_bytes: RandomBytes = secure_bytes
    ) -> None:
        self._plan = plan
        self._noise = noise or Perturbation(plan.calibration, random_bytes=random_bytes)
        self._large = DiscreteLaplace(plan.calibration.noise_scale, random_bytes)
        self._random_bytes = random_bytes
        if plan.workload.domain is Domain.DECLARED:
            self._unheld_passes = plan.law.precise_at_least(plan.threshold)

    @property
    def asks_unheld(self) -> bool:
        return self._plan.workload.domain is Domain.DECLARED

    def ask(self, tally: Tally[Item], resting: Collection[int] = ()) -> Decision:
        """In a declared domain, items that nobody holds are asked about as well."""
        declared = self.asks_unheld
        if declared and tally.items.max(initial=0) >= self._plan.workload.items:
            raise MonitorError(f"item {tally.items.max()} is not in the declared domain")
        items, holders = tally.items, tally.holders
        if resting:
            awake = ~np.isin(items, list(resting))
            items, holders = items[awake], holders[awake]
        estimates = holders + self._noise.draw(len(items))
        above = estimates >= self._plan.threshold
        decision = Decision(tally.step, items[above], estimates[above])
        return self._with_unheld(decision, tally, resting) if declared else decision

    def _with_unheld(
        self, decision: Decision, tally: Tally[Item], resting: Collection[int]
    ) -> Decision:
        """Add the reports among items that nobody holds.

        Each passes with probability Pr[Z >= t], independently: their number is
        binomial, and which ones they are is uniform. Given that it passes, Z - t is
        geometric, whatever v̄ was, because t is not below the cap of v̄.
        """
        resting_unheld = np.fromiter(resting, dtype=np.int64)
        if resting:
            resting_unheld = np.setdiff1d(resting_unheld, tally.items)
        unheld = self._plan.workload.items - len(tally.items) - len(resting_unheld)
        number = draw_binomial(unheld, self._unheld_passes, self._random_bytes)
        if number == 0:
            return decision
        unasked = np.concatenate((tally.items, resting_unheld))
        chosen = _draw_others(self._plan.workload.items, unasked, number, self._random_bytes)
        estimates = self._plan.threshold + _draw_geometric(self._large, number)
        items = np.concatenate((decision.items, chosen))
        order = np.argsort(items)
        return Decision(
            decision.step, items[order], np.concatenate((decision.estimates, estimates))[order]
        )


class Deciding(Generic[Item]):
    """Decides steps in order, each once."""

    def __init__(self, questions: Callable[[Plan], Questions[Item]] = NoisyThreshold) -> None:
        """`questions`: creates a plan's questions; scripted in tests and experiments."""
        self._make_questions = questions
        self._questions: Questions[Item] | None = None
        self._refresh: Refresh[Item] = Refresh()
        self._decided: int | None = None

    @property
    def asks_unheld(self) -> bool:
        """Whether something may be reported in a step in which nobody holds anything."""
        return self._questions is not None and self._questions.asks_unheld

    def begin(self, plan: Plan, refresh_steps: int = 1) -> None:
        """Start a budget period with its plan. Resting items keep resting."""
        self._questions = self._make_questions(plan)
        self._refresh.steps = refresh_steps

    def restore(self, decided: int, resting: Mapping[Item, int]) -> None:
        """Restore the last decided step, and the step in which each resting item is asked again."""
        self._decided = decided
        self._refresh.restore(resting)

    def decide(self, tally: Tally[Item]) -> Decision:
        """What is reported in the tally's step, which must be later than all decided steps."""
        if self._questions is None:
            raise MonitorError("no budget period has begun: nothing can be decided")
        step, numbers = tally.step, tally.numbers
        if self._decided is not None and step <= self._decided:
            raise MonitorError(
                f"step {step} cannot follow step {self._decided}: no step is decided twice"
            )
        # Set before any noise is drawn: even after a failure, this step is never asked again.
        self._decided = step
        resting = [numbers[item] for item in self._refresh.resting(step) if item in numbers]
        decision = self._questions.ask(tally, resting)
        self._refresh.note(step, numbers.names(decision.items))
        return decision


def _draw_others(domain: int, excluded: Items, number: int, random_bytes: RandomBytes) -> Items:
    """Distinct items of the domain, drawn uniformly from those not excluded."""
    others = np.setdiff1d(np.arange(domain), excluded)
    for place in range(number):
        pick = place + draw_below(len(others) - place, random_bytes)
        others[[place, pick]] = others[[pick, place]]
    return np.asarray(others[:number])


def _draw_geometric(noise: DiscreteLaplace, number: int) -> NDArray[np.int64]:
    """Draws conditioned on being non-negative, which more than half of all draws are."""
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < number:
        more = noise.draw(2 * number + 16)
        drawn = np.concatenate((drawn, more[more >= 0]))
    return drawn[:number]
