"""Discrete Laplace noise, drawn in bulk with integers only.

The distribution: Pr[x] = (1-r)/(1+r)·r^|x| with r = e^(-1/scale). A draw is composed of
digits: the geometric distribution is memoryless, so the digits of the magnitude in base 256
are independent, each with its own small table of cuts. No floating-point number is used
between the random bits and the result.

Distance from the ideal distribution, in total variation: below 2⁻¹⁰⁰ per draw.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.privacy.cut_table import PRECISE, CutTable
from streamer.privacy.randomness import RandomBytes, secure_bytes

SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 1e15
"""The supported scales. The large noise w of a calibration is never below
`search.LEAST_CALIBRATED`; its small noise v, or the noise of AboveThreshold, may be."""

_BASE = 256
# The largest scale that needs only one table: 90 scales fit into 16-bit symbols.
_ONE_TABLE = 180.0
# The mass beyond 90 scales is e^-90, below 2⁻¹²⁹: the highest digit's table ends there.
_REACH = 90


class DiscreteLaplace:
    """Integer noise of one scale. Every call reads fresh bytes and keeps none."""

    def __init__(self, scale: float, random_bytes: RandomBytes = secure_bytes) -> None:
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise SettingError(
                "noise scale", scale, f"it must be from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}"
            )
        self.scale = scale
        self._lowest, *self._higher = _digit_tables(scale)
        self._random_bytes = random_bytes

    def draw(self, size: int) -> NDArray[np.int64]:
        """`size` independent draws."""
        # The lowest digit carries the sign: a negative one means -1 - digit.
        noise = self._lowest.draw(size, self._random_bytes).astype(np.int64)
        if not self._higher:
            return noise
        sign = noise >> 63
        magnitude = np.zeros_like(noise)
        for place, table in enumerate(self._higher, start=1):
            digits = table.draw(size, self._random_bytes)
            magnitude += np.multiply(digits, _BASE**place, dtype=np.int64)
        # (x ^ s) - s is x for s = 0 and -x for s = -1.
        magnitude ^= sign
        magnitude -= sign
        noise += magnitude
        return noise

    def draw_at_least(self, bound: int, number: int) -> NDArray[np.int64]:
        """`number` draws conditioned on being at least `bound`.

        A tail of the law has the law's own shape: above a bound that is not negative, the
        excess is that above 0. So less than half of all draws are discarded.
        """
        drawn = np.empty(0, dtype=np.int64)
        while len(drawn) < number:
            more = self.draw(2 * number + 16)
            drawn = np.concatenate((drawn, more[more >= min(bound, 0)]))
        return drawn[:number] + max(bound, 0)


@lru_cache(maxsize=64)
def _digit_tables(scale: float) -> tuple[CutTable, ...]:
    """The tables of all digits, starting with the lowest, signed one."""
    ratio = PRECISE.exp(PRECISE.divide(Decimal(-1), Decimal(scale)))
    ratios, scales = [ratio], [scale]
    while scales[-1] > _ONE_TABLE:
        ratios.append(PRECISE.power(ratios[-1], _BASE))
        scales.append(scales[-1] / _BASE)
    sizes = [_BASE] * (len(scales) - 1) + [math.ceil(_REACH * scales[-1]) + 1]
    lowest = _powers(ratio, sizes[0])
    # Pr[x < 0] = r·Pr[x >= 0], and both sides have the same geometric distribution.
    negative = [PRECISE.multiply(ratio, weight) for weight in lowest]
    signed = [*range(sizes[0]), *range(-1, -sizes[0] - 1, -1)]
    return (
        CutTable(signed, lowest + negative),
        *(
            CutTable(list(range(size)), _powers(ratio, size))
            for ratio, size in zip(ratios[1:], sizes[1:], strict=True)
        ),
    )


def _powers(ratio: Decimal, size: int) -> list[Decimal]:
    powers = [Decimal(1)]
    for _ in range(size - 1):
        powers.append(PRECISE.multiply(powers[-1], ratio))
    return powers
