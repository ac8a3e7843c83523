"""Discrete Laplace noise, drawn in bulk with integers only.

The distribution: Pr[x] = (1-r)/(1+r)·r^|x| with r = e^(-1/scale). A draw is composed of
digits: the geometric distribution is memoryless, so the digits of the magnitude in base 256
are independent, each with its own small table. A table divides the interval [0, 2¹²⁸) in
proportion to the digit's probabilities, and a uniform 128-bit number selects one of the
parts. The first 16 bits nearly always decide; only undecided draws read more. No
floating-point number is used between the random bits and the result.

Distance from the ideal distribution, in total variation: below 2⁻¹⁰⁰ per draw.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.privacy.randomness import RandomBytes, secure_bytes

SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 1e15
"""The supported scales. The large noise w of a calibration is never below
`search.LEAST_CALIBRATED`; its small noise v, or the noise of AboveThreshold, may be."""

_BASE = 256
# The largest scale that needs only one table: 90 scales fit into 16-bit symbols.
_ONE_TABLE = 180.0
# The mass beyond 90 scales is e^-90, below 2⁻¹²⁹: the highest digit's table ends there.
_REACH = 90
_UNDECIDED = np.iinfo(np.int16).min
# 60 digits are 199 bits; summing 2¹⁵ entries loses at most 15 of them.
_PRECISE = Context(prec=60)


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


class _DigitTable:
    """Maps each uniform 128-bit number to a symbol."""

    def __init__(self, symbols: list[int], weights: list[Decimal]) -> None:
        self._symbols = np.array(symbols, dtype=np.int16)
        self._cuts = _cuts(weights)
        self._high_halves = np.array([cut >> 64 for cut in self._cuts], dtype=np.uint64)
        self._by_prefix = self._decide_prefixes()

    def draw(self, size: int, random_bytes: RandomBytes) -> NDArray[np.int16]:
        prefixes = np.frombuffer(random_bytes(2 * size), dtype="<u2")
        drawn = np.take(self._by_prefix, prefixes)
        undecided = np.flatnonzero(drawn == _UNDECIDED)
        if len(undecided):
            drawn[undecided] = self._read_on(prefixes[undecided], random_bytes)
        return drawn

    def _read_on(
        self, prefixes: NDArray[np.uint16], random_bytes: RandomBytes
    ) -> NDArray[np.int16]:
        """Decide by the next 48 bits and, if those are equal to a cut, by the last 64."""
        more = np.frombuffer(random_bytes(16 * len(prefixes)), dtype="<u8").reshape(-1, 2)
        high = (prefixes.astype(np.uint64) << np.uint64(48)) | (more[:, 0] >> np.uint64(16))
        places = np.searchsorted(self._high_halves, high, side="left")
        ties = np.flatnonzero(np.append(self._high_halves, np.uint64(0))[places] == high)
        for tie in ties:
            places[tie] = bisect_right(self._cuts, int(high[tie]) << 64 | int(more[tie, 1]))
        return np.asarray(self._symbols[places])

    def _decide_prefixes(self) -> NDArray[np.int16]:
        """The symbol of each 16-bit prefix; undecided if a cut falls within it."""
        prefixes = np.arange(1 << 16)
        at_start = np.searchsorted([-(-cut >> 112) for cut in self._cuts], prefixes, "right")
        at_end = np.searchsorted([cut >> 112 for cut in self._cuts], prefixes, "right")
        return np.where(at_start == at_end, self._symbols[at_start], np.int16(_UNDECIDED))


def _cuts(weights: list[Decimal]) -> list[int]:
    """Where one symbol ends and the next begins, in units of 2⁻¹²⁸."""
    sums = [Decimal(0)]
    for weight in weights:
        sums.append(_PRECISE.add(sums[-1], weight))
    unit = _PRECISE.divide(Decimal(1 << 128), sums[-1])
    # The weight of the last symbols may be below one unit: the cuts leave them one unit.
    most = (1 << 128) - 1
    return [min(most, int(_PRECISE.multiply(end, unit))) for end in sums[1:-1]]


@lru_cache(maxsize=64)
def _digit_tables(scale: float) -> tuple[_DigitTable, ...]:
    """The tables of all digits, starting with the lowest, signed one."""
    ratio = _PRECISE.exp(_PRECISE.divide(Decimal(-1), Decimal(scale)))
    ratios, scales = [ratio], [scale]
    while scales[-1] > _ONE_TABLE:
        ratios.append(_PRECISE.power(ratios[-1], _BASE))
        scales.append(scales[-1] / _BASE)
    sizes = [_BASE] * (len(scales) - 1) + [math.ceil(_REACH * scales[-1]) + 1]
    lowest = _powers(ratio, sizes[0])
    # Pr[x < 0] = r·Pr[x >= 0], and both sides have the same geometric distribution.
    negative = [_PRECISE.multiply(ratio, weight) for weight in lowest]
    signed = [*range(sizes[0]), *range(-1, -sizes[0] - 1, -1)]
    return (
        _DigitTable(signed, lowest + negative),
        *(
            _DigitTable(list(range(size)), _powers(ratio, size))
            for ratio, size in zip(ratios[1:], sizes[1:], strict=True)
        ),
    )


def _powers(ratio: Decimal, size: int) -> list[Decimal]:
    powers = [Decimal(1)]
    for _ in range(size - 1):
        powers.append(_PRECISE.multiply(powers[-1], ratio))
    return powers
