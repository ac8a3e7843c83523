"""The laws of the noise, added up term by term, to hold the product's draws against."""

import math

import numpy as np

from streamer.privacy.calibration import Calibration
from streamer.privacy.terms import Noise

REACH = 2000
"""Laws are lists of probabilities of the whole numbers from -REACH to REACH."""


def laplace(scale: float) -> np.ndarray:
    """Pr[w = z] of discrete Laplace noise."""
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-REACH, REACH + 1))


def capped_sum(scale: float, small_scale: float, cap: int) -> np.ndarray:
    """Pr[w + min(v, cap) = z]."""
    capped = laplace(small_scale)
    capped[REACH + cap] += capped[REACH + cap + 1 :].sum()
    capped[REACH + cap + 1 :] = 0
    return np.convolve(laplace(scale), capped)[REACH : 3 * REACH + 1]


def gaussian(sigma: float) -> np.ndarray:
    """Pr[w = z] of discrete Gaussian noise."""
    weights = np.exp(-(np.arange(-REACH, REACH + 1) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def monitor_noise(calibration: Calibration) -> np.ndarray:
    """Pr[Z = z] of a monitor's noise."""
    if calibration.noise is Noise.GAUSSIAN:
        return gaussian(calibration.noise_scale)
    return capped_sum(calibration.noise_scale, calibration.delta2, calibration.cap)


def at_least(law: np.ndarray, bound: int) -> float:
    return float(law[REACH + bound :].sum())
