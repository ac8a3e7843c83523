"""The noise that a monitor adds to a count, fresh for every question."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.privacy import terms
from streamer.privacy.calibration import Calibration
from streamer.privacy.gaussian_noise import DiscreteGaussian
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import RandomBytes, secure_bytes


class Noise(Protocol):
    """Independent draws of Z, as integers."""

    def draw(self, size: int) -> NDArray[np.int64]:
        """`size` draws."""
        ...

    def draw_at_least(self, bound: int, number: int) -> NDArray[np.int64]:
        """`number` draws, given that each is at least a threshold of the calibration."""
        ...


def noise_of(
    calibration: Calibration, resolution: int = 1, random_bytes: RandomBytes = secure_bytes
) -> Noise:
    """The calibrated noise, in units of 1/`resolution` of a user."""
    if calibration.noise is terms.Noise.GAUSSIAN:
        return DiscreteGaussian(calibration.noise_scale * resolution, random_bytes)
    return CappedLaplace(calibration, resolution, random_bytes)


class CappedLaplace:
    """The paper's Z = w + v̄ with v̄ = min(v, Δ₁)."""

    def __init__(
        self,
        calibration: Calibration,
        resolution: int = 1,
        random_bytes: RandomBytes = secure_bytes,
    ) -> None:
        self._large = DiscreteLaplace(calibration.noise_scale * resolution, random_bytes)
        self._small = DiscreteLaplace(calibration.delta2 * resolution, random_bytes)
        self._cap = math.floor(calibration.delta1 * resolution)

    def draw(self, size: int) -> NDArray[np.int64]:
        noise = self._large.draw(size)
        noise += np.minimum(self._small.draw(size), self._cap)
        return noise

    def draw_at_least(self, bound: int, number: int) -> NDArray[np.int64]:
        """Given that it passes, Z - t is geometric, whatever v̄ was: t is not below its cap."""
        return self._large.draw_at_least(bound, number)
