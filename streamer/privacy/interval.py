"""Intervals for the count behind a reported estimate, given that it was reported.

Items whose noise was upward are the ones that reach the threshold, so an estimate ± margin
misses the truth far too often close to it. [low, high] are the counts s that the report does
not rule out: under s, at least 2.5% of all reports are this high or higher, and at least 2.5%
are this low or lower. Whatever the count is, it is outside in at most 5% of the steps in which
the item is reported (docs/privacy.md, 5.1). A function of the estimate and of public numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.law import NoiseLaw

Counts = NDArray[np.int64]


def interval(law: NoiseLaw, threshold: int, estimate: int) -> tuple[int, int]:
    """The interval of a single report. Most are kept from earlier ones: far above the threshold
    they all have the same shape."""
    beyond = max(0, estimate - threshold - _selecting(law))
    low, high = _near(law, threshold, estimate - beyond)
    return low + beyond, high + beyond


class Intervals:
    """The intervals of one plan's reports."""

    def __init__(self, law: NoiseLaw, threshold: int, confidence: float = 0.95) -> None:
        self._law = law
        self._threshold = threshold
        tail = (1 - confidence) / 2
        self._log_seldom, self._log_mostly = np.log(tail), np.log1p(-tail)
        # From a count this far above the estimate on, reports are mostly higher.
        self._reach = 1 + law.smallest_bound(tail / 2)

    def of(self, estimates: Counts) -> tuple[Counts, Counts]:
        """The least and the largest count for each estimate, which is at least the threshold."""
        different, places = np.unique(estimates, return_inverse=True)
        low = self._first_above(different, self._log_seldom)
        # Reports above the estimate: those of at least one more.
        high = self._first_above(different + 1, self._log_mostly) - 1
        # Where every count makes so low a report a rare one, the least count is left.
        return low[places], np.maximum(low, high)[places]

    def _first_above(self, estimates: Counts, log_share: float) -> Counts:
        """The least count s >= 0 for which Pr_s[f̂′ >= f̂ | f̂′ >= t] is at least the share.

        By bisection: the probability grows with s.
        """
        below = np.full_like(estimates, -1)
        above = estimates + self._reach
        while np.any(above - below > 1):
            middle = (below + above + 1) // 2
            passing = self._law.log_at_least(self._threshold - middle)
            reached = self._law.log_at_least(estimates - middle) - passing >= log_share
            below, above = np.where(reached, below, middle), np.where(reached, middle, above)
        return above


@lru_cache(maxsize=1 << 16)
def _near(law: NoiseLaw, threshold: int, estimate: int) -> tuple[int, int]:
    low, high = Intervals(law, threshold).of(np.array([estimate]))
    return int(low[0]), int(high[0])


@lru_cache(maxsize=64)
def _selecting(law: NoiseLaw) -> int:
    """How far above the threshold selection plays a part: beyond that, every count of an
    interval is reported almost surely."""
    return law.smallest_bound(0.025) - law.largest_bound(1e-9)
