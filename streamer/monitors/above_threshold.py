"""AboveThreshold, the classic sparse vector technique: it stops at its first ⊤."""

from __future__ import annotations

import math

from streamer.errors import MonitorError, SettingError
from streamer.privacy.guarantee import check_positive, check_whole
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import RandomBytes, secure_bytes

MOST_UNITS = 1 << 32


class AboveThreshold:
    """Answers whether queries of sensitivity 1 are above a threshold; (ε, 0)-private.

    t̂ = t + Lap(2/ε) once; each query gets Lap(4/ε); the first noisy value ≥ t̂ is
    answered ⊤ and halts the algorithm. The noisy value itself must never be published: it
    was compared with the same t̂ as every ⊥ before it.

    Query values are whole numbers, or multiples of 1/`resolution`.
    """

    def __init__(
        self,
        epsilon: float,
        threshold: float,
        resolution: int = 1,
        random_bytes: RandomBytes = secure_bytes,
    ) -> None:
        check_positive("epsilon", epsilon)
        check_whole("resolution", resolution, 1, MOST_UNITS)
        if not math.isfinite(threshold):
            raise SettingError("threshold", threshold, "it must be a number")
        self._resolution = resolution
        self._noise = DiscreteLaplace(4 / epsilon * resolution, random_bytes)
        shift = DiscreteLaplace(2 / epsilon * resolution, random_bytes).draw(1)
        self._noisy_threshold = math.ceil(threshold * resolution) + int(shift[0])
        self._halted = False

    @property
    def halted(self) -> bool:
        return self._halted

    def ask(self, value: float) -> bool:
        """Whether the query's value plus noise is at least the noisy threshold."""
        if self._halted:
            raise MonitorError("AboveThreshold has already answered ⊤ and must not be asked again")
        units = round(value * self._resolution)
        if units != value * self._resolution:
            # Rounding could make a change of 1 in the query a change of 2.
            raise MonitorError(f"{value} is not a multiple of 1/{self._resolution}")
        noisy = units + int(self._noise.draw(1)[0])
        self._halted = noisy >= self._noisy_threshold
        return self._halted
