"""The noise that a monitor adds to a count: w + min(v, Δ₁), fresh for every question."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.calibration import Calibration
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import RandomBytes, secure_bytes


class Noise(Protocol):
    """`size` independent draws of Z, as integers."""

    def draw(self, size: int) -> NDArray[np.int64]: ...


class Perturbation:
    """Z = w + v̄ with the calibrated scales, in units of 1/`resolution` of a user."""

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
        """Fresh noise for `size` questions."""
        noise = self._large.draw(size)
        noise += np.minimum(self._small.draw(size), self._cap)
        return noise
