"""Draws from a finite law, in bulk with integers only.

A table divides the interval [0, 2¹²⁸) in proportion to the weights of its symbols, and a
uniform 128-bit number selects one of the parts. The first 16 bits nearly always decide; only
undecided draws read more. No floating-point number is used between the random bits and the
result.

Rounding a cut moves less than 2⁻¹²⁸ from one symbol to its neighbour: the distance from the
law of the weights, in total variation, is below 2⁻¹²⁸ times the number of symbols.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.randomness import RandomBytes

# 60 digits are 199 bits; summing 2¹⁵ entries loses at most 15 of them.
PRECISE = Context(prec=60)
"""The arithmetic in which weights are computed."""

_UNDECIDED = np.iinfo(np.int16).min


class CutTable:
    """Maps each uniform 128-bit number to a symbol, an integer from -2¹⁵ + 1 to 2¹⁵ - 1."""

    def __init__(self, symbols: Sequence[int], weights: Sequence[Decimal]) -> None:
        self._symbols = np.array(symbols, dtype=np.int16)
        self._cuts = _cuts(weights)
        self._high_halves = np.array([cut >> 64 for cut in self._cuts], dtype=np.uint64)
        self._by_prefix = self._decide_prefixes()

    def draw(self, size: int, random_bytes: RandomBytes) -> NDArray[np.int16]:
        """`size` independent draws."""
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


def _cuts(weights: Sequence[Decimal]) -> list[int]:
    """Where one symbol ends and the next begins, in units of 2⁻¹²⁸."""
    sums = [Decimal(0)]
    for weight in weights:
        sums.append(PRECISE.add(sums[-1], weight))
    unit = PRECISE.divide(Decimal(1 << 128), sums[-1])
    # The weight of the last symbols may be below one unit: the cuts leave them one unit.
    most = (1 << 128) - 1
    return [min(most, int(PRECISE.multiply(end, unit))) for end in sums[1:-1]]
