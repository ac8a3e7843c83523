"""The best adaptive adversary against priced answers with Gaussian noise, by value iteration.

Independent of the accounting: no moments, no orders. A state is the log-likelihood ratio so far,
the questions and the units of budget that are left. In each round the adversary picks
the kind of question and the distance that are worth most to it. Ratios are rounded down to a
grid, so what is found is attained by an adversary, and a bound on δ must not be below it. If a
user is replaced, the questions about one history are asked before those about the other.
"""

import math

import numpy as np

from streamer.privacy.prices import FULL, Questions


class GaussianAdversary:
    def __init__(self, epsilon: float, sigma: float, kinds: Questions, reach: float = 12.0) -> None:
        # In units of 1/2σ² the ratio of a report's likelihoods is an odd integer.
        self._unit = 1 / (2 * sigma**2)
        self._low = -round(4 / self._unit)
        places = np.arange(self._low, round(reach / self._unit))
        self._stop = np.maximum(0.0, -np.expm1(epsilon - places * self._unit))
        self._kinds, self._loud = kinds, math.ceil(sigma)
        span = math.ceil(7 * sigma)
        self._numbers = np.arange(-span, span + 1)
        self._distances = np.arange(-span + 1, span)
        mass = np.exp(-((np.arange(-2 * span, 2 * span + 1) / sigma) ** 2) / 2)
        self._mass, self._offset = mass / mass.sum(), 2 * span
        self._above = np.cumsum(self._mass[::-1])[::-1]

    def add_remove(self, charges: int, questions: int) -> float:
        return max(
            self._start(self._play(self._stop, charges, questions, present))
            for present in (True, False)
        )

    def replace(self, charges: int, questions: int) -> float:
        first = self._play(self._stop, charges, questions, True)
        return self._start(self._play(first, charges, questions, False))

    def _start(self, values: np.ndarray) -> float:
        return float(values[-self._low])

    def _play(self, after: np.ndarray, charges: int, questions: int, present: bool) -> np.ndarray:
        """What a ratio is worth before this many questions, given what it is worth after them."""
        budgets = range(0, charges * FULL + 1, math.gcd(FULL, self._kinds.loud))
        values = dict.fromkeys(budgets, after)
        for _ in range(questions):
            values = {
                left: self._asked(values, left, present) if left >= FULL else after
                for left in budgets
            }
        return values[charges * FULL]

    def _asked(self, values: dict[int, np.ndarray], left: int, present: bool) -> np.ndarray:
        """The best of no question and of all questions; `values[left]` is the game after it."""
        sign = 1 if present else -1
        full, loud = (self._reports(values[left - price], present) for price in self._prices())
        best = values[left]
        for place, d in enumerate(self._distances.tolist()):
            with_user, without = self._at_most(d - 2), self._at_most(d - 1)
            quiet = (with_user, without) if present else (without, with_user)
            beyond = min(place + self._loud, len(full) - 1)
            reports = full[place] - full[beyond] + loud[beyond]
            best = np.maximum(best, reports + self._answered(values[left], *quiet))
            if self._kinds.still_there:
                there = (1 - with_user, 1 - without)[::sign]
                gone = self._answered(values[left - FULL], *quiet)
                best = np.maximum(best, gone + self._answered(values[left], *there))
        return best

    def _prices(self) -> tuple[int, int]:
        return FULL, self._kinds.loud

    def _reports(self, values: np.ndarray, present: bool) -> np.ndarray:
        """For each distance d, all reports y >= d together."""
        sign = 1 if present else -1
        shift = 1 if present else 0
        tables = np.empty((len(self._distances) + 1, len(values)))
        tables[-1] = total = np.zeros_like(values)
        # Reports beyond the last distance are left out: that favours nobody but the defender.
        for place in range(len(self._distances) - 1, -1, -1):
            y = int(self._distances[place])
            total = total + self._mass[y - shift + self._offset] * self._moved(
                values, sign * (2 * y - 1)
            )
            tables[place] = total
        return tables

    def _answered(self, values: np.ndarray, likely: float, unlikely: float) -> np.ndarray:
        """An answer with these two probabilities."""
        if likely <= 0:
            return np.zeros_like(values)
        if unlikely <= 0:
            return np.full_like(values, likely)
        return likely * self._moved(values, math.floor(math.log(likely / unlikely) / self._unit))

    def _at_most(self, x: int) -> float:
        return float(self._above[-x + self._offset])

    def _moved(self, values: np.ndarray, by: int) -> np.ndarray:
        """values[place + by]; beyond the ends a value that is too low."""
        if by >= 0:
            return np.append(values[by:], np.full(min(by, len(values)), values[-1]))[: len(values)]
        return np.append(np.zeros(min(-by, len(values))), values[:by])[: len(values)]
