"""The law of the noise between a true count and its estimate: what planning asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.search import first_integer


class NoiseLaw(ABC):
    """Probabilities of Z, an integer, all exact to a relative 1e-11 or better."""

    __slots__ = ()

    @property
    @abstractmethod
    def least_threshold(self) -> int:
        """The smallest threshold for which `precise_at_least` works."""

    @abstractmethod
    def at_least(self, bound: int) -> float:
        """Pr[Z >= bound]."""

    @abstractmethod
    def below(self, bound: int) -> float:
        """Pr[Z < bound]."""

    @abstractmethod
    def log_at_least(self, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """log Pr[Z >= bound] for many bounds."""

    @abstractmethod
    def precise_at_least(self, bound: int) -> Decimal:
        """Pr[Z >= bound] to 50 digits for bounds of at least `least_threshold`."""

    def margin(self, confidence: float = 0.95) -> int:
        """The smallest h with Pr[|Z| <= h] >= confidence."""
        return first_integer(
            lambda half: self.below(-half) + self.at_least(half + 1) <= 1 - confidence, least=0
        )

    def smallest_bound(self, probability: float) -> int:
        """The smallest integer z with Pr[Z >= z] <= probability."""
        return first_integer(lambda bound: self.at_least(bound) <= probability)

    def largest_bound(self, probability: float) -> int:
        """The largest integer z with Pr[Z < z] <= probability."""
        return -first_integer(lambda bound: self.below(-bound) <= probability)
