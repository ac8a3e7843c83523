"""The paper's monitors for single questions: ThresholdMonitor and its evolving form.

Both work on plain callables and sequences. The service asks one question per item and step,
with the vectorised form of the same algorithm, `heavy_hitters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamer.errors import MonitorError
from streamer.monitors.perturbation import Noise, noise_of
from streamer.privacy.calibration import Calibration
from streamer.privacy.prices import FULL

FIXED_POINT = 1 << 16
"""Fractional weights are counted in units of 1/65536, which makes sums exact."""

Query = Callable[[Any], Any]
"""f: maps one record to its weight in [0, 1], or a numpy array to an array of weights."""


@dataclass(frozen=True, slots=True)
class Answer:
    """⊤ with the noisy value f̂, or ⊥ without."""

    above: bool
    estimate: float | None = None


class ThresholdMonitorEvolving:
    """Answers "is the weight at least the threshold?" about users whose data change.

    The paper's TME (ε, δ, t, k): user j has a counter c(j), 0 at first. Each question f
    about the current data x₁ … xₙ gets f̂ = Σ_{j: c(j)<k} f(xⱼ) + w + v̄ with fresh
    w ~ Lap(10Δ₁), v ~ Lap(Δ₂), v̄ = min(v, Δ₁). If f̂ < t: ⊥. Otherwise ⊤, and
    c(j) += f(xⱼ) for every j. It never halts.

    With a horizon calibration the noise is Gaussian, loud reports charge less, and a user counts
    in as many questions as it was calibrated for.
    """

    def __init__(
        self,
        users: int,
        calibration: Calibration,
        threshold: float,
        noise: Noise | None = None,
    ) -> None:
        self._calibration = calibration
        self._units = FIXED_POINT if calibration.fractional else 1
        self._full = self._units * FULL
        limit = calibration.guarantee.contributions * self._full
        # A whole user counts while a full charge fits; a fraction of one may go beyond k.
        self._most = limit - 1 if calibration.fractional else limit - self._full
        self._threshold = math.ceil(threshold * self._units)
        self._noise = noise or noise_of(calibration, self._units)
        self._charges = np.zeros(users, dtype=np.int64)
        # How many questions touched each user, where that is limited.
        self._touches = np.zeros(users, dtype=np.int64)
        self._horizon = calibration.questions or None

    @property
    def charges(self) -> NDArray[np.float64]:
        """c(j) for every user."""
        return self._charges / self._full

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether c(j) < k, for every user, and the horizon is not reached."""
        active: NDArray[np.bool_] = self._charges <= self._most
        return active if self._horizon is None else active & (self._touches < self._horizon)

    def ask(self, data: Sequence[Any] | NDArray[Any], query: Query) -> Answer:
        """Ask one question about the data of all users, in their order."""
        weights = np.where(self.active, self._weigh(data, query), 0)
        noisy = int(weights.sum()) + int(self._noise.draw(1)[0])
        self._touches += weights > 0
        if noisy < self._threshold:
            return Answer(above=False)
        price = self._calibration.prices(np.array([noisy - self._threshold]))[0]
        self._charges += weights * int(price)
        return Answer(above=True, estimate=noisy / self._units)

    def _weigh(self, data: Sequence[Any] | NDArray[Any], query: Query) -> NDArray[np.int64]:
        values = query(data) if isinstance(data, np.ndarray) else [query(x) for x in data]
        weights = np.asarray(values, dtype=np.float64)
        if weights.shape != self._charges.shape:
            raise MonitorError(
                f"the data have {weights.size} users, the monitor has {self._charges.size}"
            )
        if not np.all((weights >= 0) & (weights <= 1)):
            raise MonitorError("a query returned a weight outside 0 to 1")
        if not self._calibration.fractional and not np.all((weights == 0) | (weights == 1)):
            raise MonitorError(
                "a query returned a weight between 0 and 1, which the "
                f"{self._calibration.method} calibration does not cover: use the fractional or "
                "the theorem calibration"
            )
        return np.rint(weights * self._units).astype(np.int64)


class ThresholdMonitor:
    """The paper's ThresholdMonitor (S, ε, δ, t, k): the same for a fixed database S.

    An element x whose counter reaches k is deleted from S, that is, it no longer counts.
    This is TME with data that never change.
    """

    def __init__(
        self,
        database: Sequence[Any] | NDArray[Any],
        calibration: Calibration,
        threshold: float,
        noise: Noise | None = None,
    ) -> None:
        self._database = database
        self._monitor = ThresholdMonitorEvolving(len(database), calibration, threshold, noise)

    @property
    def remaining(self) -> int:
        """How many elements of S are not yet deleted."""
        return int(self._monitor.active.sum())

    def ask(self, query: Query) -> Answer:
        return self._monitor.ask(self._database, query)
