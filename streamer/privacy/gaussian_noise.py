"""Discrete Gaussian noise, drawn in bulk with integers only.

The distribution: Pr[x] ∝ p(x) = e^(-x²/2σ²) on the integers, or the same above a bound. The
integers are divided into blocks of equal width, a power of two: 1 up to σ = 256, and σ is 128
to 256 blocks above that. A block has a rectangle, as high as its smallest p(x), and on it a
wedge, up to its largest. One table of cuts selects a rectangle or a wedge, and uniform bits a
place in the block. In a rectangle that is the result. In a wedge, which is rare, the place is
accepted with the share of the wedge that is under p there; otherwise the draw begins again. A
uniform 128-bit number is compared with the share. The share is nearly linear, so comparing
small integers is nearly always enough.

Distance from the ideal distribution, in total variation: below 2⁻¹⁰⁰ per draw. The proof is
in docs/privacy.md, 9.1.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.privacy.cut_table import PRECISE, CutTable
from streamer.privacy.gaussian_mass import FARTHEST, grid_step, reach, weights
from streamer.privacy.randomness import RandomBytes, secure_bytes

SMALLEST_SIGMA, LARGEST_SIGMA = 0.5, 1e6
"""The supported σ."""

# What is left out on each side has a probability of at most e⁻⁹⁰ < 2⁻¹²⁹.
_LOG_LEFT_OUT = 90
# How many bits of a wedge's uniform number are compared first.
_FIRST_BITS = 32


class DiscreteGaussian:
    """Integer noise of one σ. Every call reads fresh bytes and keeps none."""

    def __init__(self, sigma: float, random_bytes: RandomBytes = secure_bytes) -> None:
        if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
            raise SettingError(
                "noise scale",
                sigma,
                f"for Gaussian noise it must be from {SMALLEST_SIGMA:g} to {LARGEST_SIGMA:g}",
            )
        self.sigma = sigma
        self._least = -reach(sigma, 0, _LOG_LEFT_OUT)
        self._blocks = _blocks(sigma, self._least)
        self._random_bytes = random_bytes

    def draw(self, size: int) -> NDArray[np.int64]:
        """`size` independent draws."""
        return self._blocks.draw(size, self._random_bytes)

    def draw_at_least(self, bound: int, number: int) -> NDArray[np.int64]:
        """`number` draws conditioned on being at least `bound`, which is at most 40σ."""
        if bound > FARTHEST * self.sigma:
            raise ValueError(f"bound is {bound}: it must be at most {FARTHEST}·{self.sigma}")
        return _blocks(self.sigma, max(bound, self._least)).draw(number, self._random_bytes)


class _Blocks:
    """The law above `first`: block i begins at first + i·width."""

    def __init__(self, sigma: float, first: int) -> None:
        self._sigma = sigma
        self._first = first
        self._width = width = grid_step(sigma)
        count = -(-(reach(sigma, max(first, 0), _LOG_LEFT_OUT) - first) // width)
        starts = weights(sigma, first, width, count)
        # A symbol is twice the block's number, plus one for a wedge.
        if width == 1:
            self._table = CutTable(range(0, 2 * count, 2), starts)
            return
        ends = weights(sigma, first + width - 1, width, count)
        lows, highs = list(map(min, starts, ends)), list(map(max, starts, ends))
        # The largest p of a block is at one of its ends, or at 0.
        if first <= 0:
            highs[-first // width] = Decimal(1)
        wedges = list(map(PRECISE.subtract, highs, lows))
        self._table = CutTable([*range(0, 2 * count, 2), *range(1, 2 * count, 2)], [*lows, *wedges])
        self._slacks = self._slacks_of(highs, wedges)

    def draw(self, size: int, random_bytes: RandomBytes) -> NDArray[np.int64]:
        symbols = self._table.draw(size, random_bytes)
        drawn: NDArray[np.int64] = np.multiply(symbols >> 1, self._width, dtype=np.int64)
        drawn += self._first
        if self._width == 1:
            return drawn
        places = np.frombuffer(random_bytes(2 * size), dtype="<u2") & (self._width - 1)
        drawn += places
        wedges = np.flatnonzero(symbols & 1)
        if len(wedges):
            blocks = symbols[wedges].astype(np.int64) >> 1
            accepted = self._accept(blocks, places[wedges].astype(np.int64), random_bytes)
            refused = wedges[~accepted]
            if len(refused):
                drawn[refused] = self.draw(len(refused), random_bytes)
        return drawn

    def _accept(
        self, blocks: NDArray[np.int64], places: NDArray[np.int64], random_bytes: RandomBytes
    ) -> NDArray[np.bool_]:
        """Whether a uniform number is below the share of the wedge that is under p.

        The share is 0 at one end of the block and 1 at the other, and on the straight line
        between them up to the block's slack.
        """
        uniform = np.frombuffer(random_bytes(16 * len(blocks)), dtype="<u8").reshape(-1, 2)
        run = self._width - 1
        rise = np.where(self._first + blocks * self._width >= 0, run - places, places)
        first_bits = (uniform[:, 0] >> np.uint64(64 - _FIRST_BITS)).astype(np.int64)
        gaps = first_bits * run - (rise << _FIRST_BITS)
        accepted = gaps < 0
        for near in np.flatnonzero(np.abs(gaps) <= self._slacks[blocks]):
            number = int(uniform[near, 0]) << 64 | int(uniform[near, 1])
            accepted[near] = self._is_under(int(blocks[near]), int(places[near]), number)
        return accepted

    def _is_under(self, block: int, place: int, number: int) -> bool:
        """Whether number/2¹²⁸ is below (p(x) - p(far))/(p(near) - p(far)), to 50 digits."""
        start = self._first + block * self._width
        end = start + self._width - 1
        near, far = max(start, -end, 0), max(-start, end)
        with localcontext(PRECISE):
            double_variance = 2 * Decimal(self._sigma) ** 2
            height = ((far**2 - near**2) / double_variance).exp() - 1
            under = ((far**2 - (start + place) ** 2) / double_variance).exp() - 1
            return number * height < under * (1 << 128)

    def _slacks_of(self, highs: list[Decimal], wedges: list[Decimal]) -> NDArray[np.int64]:
        """How far from the line a uniform number must be to be decided by it, for each block.

        In a block p is off its secant by at most max|p″|·run²/8, p″(x) = p(x)·(x²/σ² - 1)/σ².
        """
        run = self._width - 1
        slacks = []
        with localcontext(PRECISE):
            variance = Decimal(self._sigma) ** 2
            for block, (high, wedge) in enumerate(zip(highs, wedges, strict=True)):
                start = self._first + block * self._width
                bend = max(abs(start**2 - variance), abs((start + run) ** 2 - variance))
                share = min(Decimal(1), high * bend * run**2 / (8 * variance**2 * wedge))
                # Rounded up, and one more for the bits that are not read yet.
                slacks.append(run * (int(share * (1 << _FIRST_BITS)) + 2))
        if self._first <= 0:
            # p may rise and fall in the block of 0: every number there is compared exactly.
            slacks[-self._first // self._width] = run * ((1 << _FIRST_BITS) + 2)
        return np.array(slacks, dtype=np.int64)


@lru_cache(maxsize=16)
def _blocks(sigma: float, first: int) -> _Blocks:
    return _Blocks(sigma, first)
