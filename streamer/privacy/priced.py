"""What answers with prices reveal about a user (docs/privacy.md, theorem 4).

For an order α and a rate H, an answer that a user affects multiplies a potential by at most
e^g, whatever the distance d between the threshold and the count of the others. `Growth` has
the least such g: the logarithm of the largest of these sums over *all* integers d,

    value:        Σ_{y>=d} φ(y-1)^α φ(y)^(1-α) e^(-H·π(y-d))  +  F(d-2)^α F(d-1)^(1-α)
    still there?: F(d-2)^α F(d-1)^(1-α) e^(-H)                +  U(d-1)^α U(d)^(1-α)

or of the same sums with the two laws exchanged. Integers are bounded in blocks: the outermost two
are infinite, and have bounds for each part that rises or falls in d; in all others the change of a
whole sum is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from streamer.privacy.gaussian_sums import GaussianSums, Numbers
from streamer.privacy.priced_slopes import Block, Range
from streamer.privacy.prices import FULL, VALUES, Questions
from streamer.privacy.terms import Neighbours

# Above the relative error of each part of a sum (docs/privacy.md, 6.5).
ROUNDING = 1e-11
# Infinite blocks begin where what is left of a tail is below e^-42.
_TAIL = 42.0
_POINTS = 384
_MOST_BLOCKS = 1_000
"""With more blocks than this, they are not split further: the bound is then less close."""
_SPLIT = 8
"""Into how many blocks a block is split whose bound is too high."""


class Direction(Enum):
    """Which of the two laws has the power α."""

    PRESENT = "A"
    """That of a user who counts: (A)."""
    ABSENT = "B"
    """That of a user who does not: (B)."""


Way = tuple[Direction, ...]
"""The directions that are added up, for one order of the two worlds."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """What one user can be affected by: k charges, M questions, and their kinds."""

    charges: int
    questions: int
    neighbours: Neighbours
    kinds: Questions = VALUES

    def after(self, periods: int) -> Horizon:
        return replace(self, charges=periods * self.charges, questions=periods * self.questions)

    @property
    def ample(self) -> bool:
        """Whether no user can run out of charges by questions of the least price that a report
        has: then prices save nothing (docs/privacy.md, 6.4)."""
        return FULL * self.charges >= self.kinds.loud * self.questions

    @property
    def answers(self) -> int:
        """How many answers differ between two worlds: a replaced user has two histories."""
        return self.questions * (2 if self.neighbours == Neighbours.REPLACE else 1)

    @property
    def ways(self) -> tuple[Way, ...]:
        if self.neighbours == Neighbours.REPLACE:
            return ((Direction.PRESENT, Direction.ABSENT),)
        return ((Direction.PRESENT,), (Direction.ABSENT,))


class Distances:
    """What depends on σ and d alone, for many d: the laws of "quiet" and of "still there"."""

    def __init__(self, sums: GaussianSums, numbers: Numbers) -> None:
        self.sums = sums
        self.numbers = numbers
        self.log_quiet = sums.log_at_least(1 - numbers)
        """log F(d-1)"""
        self.log_quiet_step = sums.log_step(1 - numbers)
        """log F(d-2)/F(d-1); it rises in d."""
        self.log_there = sums.log_at_least(numbers - 1)
        """log U(d-1)"""
        self.log_there_step = sums.log_step(numbers - 1)
        """log U(d)/U(d-1); it falls in d."""

    @classmethod
    def grid(cls, sums: GaussianSums, largest_order: float) -> Distances:
        """Distances to begin with: for orders up to this one, the rest is in the tails."""
        log_factor = _log_factor(sums, largest_order)
        reach = largest_order + sums.sigma * math.sqrt(2 * (_TAIL + log_factor))
        return cls(sums, np.unique(np.round(np.linspace(-reach, reach, _POINTS))))


class Growth:
    """The least g for every H, at one σ, order α and direction."""

    def __init__(
        self, grid: Distances, order: float, direction: Direction, questions: Questions
    ) -> None:
        self._grid, self._order = grid, order
        self._direction, self._questions = direction, questions
        self._points = self._parts(grid, grid)
        self.largest_rate = _log_factor(grid.sums, order) + _TAIL
        """From this H on reports weigh nothing: a larger one has the same g."""

    def estimate(self, rate: float) -> float:
        """g for the distances of the grid alone: for searching, not a bound."""
        return math.log1p(max(0.0, float(self._points.excess(rate).max())))

    def bound(self, rate: float, precision: float) -> float:
        """g for all integers d: an upper bound, hardly more than `precision` above the least."""
        ends = self._grid.numbers
        reached = float(self._points.excess(rate).max())
        # Publishing all of s + w, for no price, reveals at most this; an answer is made of it.
        most = math.expm1(_log_factor(self._grid.sums, self._order)) * (1 + ROUNDING)
        if max(0.0, reached) + precision >= most:
            return math.log1p(most)
        outer = self._parts(
            self._distances(np.array([-np.inf, ends[-1] + 1])),
            self._distances(np.array([ends[0], np.inf])),
        )
        largest = max(0.0, float(np.minimum(outer.excess(rate, ROUNDING), most).max()))
        low, high = ends[:-1] + 1, ends[1:]
        while len(low):
            bounds, at_ends = self._block_bounds(low, high, rate)
            bounds = np.fmin(bounds, most)
            reached = max(reached, float(at_ends.max()))
            done = (low == high) | (bounds <= max(0.0, reached) + precision)
            done |= len(low) > _MOST_BLOCKS
            largest = max(largest, float(bounds[done].max(initial=0.0)))
            low, high = _split(low[~done], high[~done])
        return math.log1p(largest)

    def _block_bounds(self, low: Numbers, high: Numbers, rate: float) -> tuple[Numbers, Numbers]:
        """Bounds for all d of finite blocks, and the larger of the values at both ends."""
        at_low, at_high = (
            self._parts(each, each).sums(rate, ROUNDING)
            for each in (self._distances(low), self._distances(high))
        )
        bounds, at_ends = np.full_like(low, -np.inf), np.full_like(low, -np.inf)
        # In the far tails a change may be beyond all numbers: then it says nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            for first, last, change in zip(
                at_low, at_high, self._changes(low, high, rate), strict=True
            ):
                upward = first + (high - low) * np.maximum(0.0, change.most)
                downward = last + (high - low) * np.maximum(0.0, -change.least)
                bounds = np.maximum(bounds, np.fmin(upward, downward))
                at_ends = np.maximum(at_ends, np.maximum(first, last))
        return bounds, at_ends

    def _changes(self, low: Numbers, high: Numbers, rate: float) -> list[Range]:
        """By how much each sum changes from one d to the next within blocks."""
        sums, questions = self._grid.sums, self._questions
        power = self._order if self._direction is Direction.PRESENT else 1 - self._order
        full, less = _weights(questions, rate)
        block = Block(sums, low, high, ROUNDING)
        quiet = block.quiet(power)
        values = quiet + -block.reports(power).times(full)
        if less:
            values += -block.reports(power, math.ceil(sums.sigma)).times(less)
        changes = [values * block.mass]
        if questions.still_there:
            changes.append((quiet.times(full) + -block.there(1 - power)) * block.mass)
        return changes

    def _distances(self, numbers: Numbers) -> Distances:
        return Distances(self._grid.sums, numbers)

    def _parts(self, low: Distances, high: Distances) -> _Parts:
        """Upper bounds of the parts of the sums, for all d from `low` to `high`: an infinite block,
        or a single integer."""
        sums, order = low.sums, self._order
        log_factor = _log_factor(sums, order)
        if self._direction is Direction.PRESENT:
            first = low.numbers - order
            log_reports = log_factor + sums.log_tilted(first)
            log_quiet = high.log_quiet + order * high.log_quiet_step
            log_there = low.log_there - (order - 1) * high.log_there_step
            # All answers taken as one reveal less than all of them: the only bound in an infinite
            # block for the part that is not monotone.
            log_there = np.minimum(log_there, log_reports)
        else:
            first = low.numbers + order - 1
            log_reports = log_factor + sums.log_tilted(first)
            log_quiet = high.log_quiet - (order - 1) * low.log_quiet_step
            log_there = low.log_there + order * low.log_there_step
            if low is not high:
                log_all = log_factor + sums.log_tilted(2 - order - high.numbers)
                log_quiet = np.minimum(log_quiet, log_all)
        loud = np.zeros_like(log_reports)
        if self._questions.loud < FULL:
            loud = np.exp(log_factor + sums.log_tilted(first + math.ceil(sums.sigma)))
        return _Parts(self._questions, np.exp(log_reports), loud, log_quiet, log_there)


class _Parts:
    """The parts of both sums for many distances, without their prices."""

    def __init__(
        self,
        questions: Questions,
        reports: Numbers,
        loud: Numbers,
        log_quiet: Numbers,
        log_there: Numbers,
    ) -> None:
        self._questions = questions
        self._reports, self._loud = reports, loud
        # Less 1: these parts are close to 1 where it matters.
        self._quiet, self._there = np.expm1(log_quiet), np.expm1(log_there)
        # As it is: "gone" is far from 1 where it matters.
        self._gone = np.exp(log_quiet)

    def excess(self, rate: float, rounding: float = 0.0) -> Numbers:
        """By how much the larger of the two sums exceeds 1."""
        return np.asarray(np.maximum.reduce(self.sums(rate, rounding)))

    def sums(self, rate: float, rounding: float = 0.0) -> list[Numbers]:
        """By how much each sum exceeds 1."""
        full, less = _weights(self._questions, rate)
        reports = full * self._reports + less * self._loud
        sums = [reports * (1 + rounding) + self._quiet + rounding * np.abs(self._quiet)]
        if self._questions.still_there:
            gone = full * self._gone * (1 + rounding)
            sums.append(gone + self._there + rounding * np.abs(self._there))
        return sums


def _weights(questions: Questions, rate: float) -> tuple[float, float]:
    """What a report at the full price is multiplied by, and how much more a loud one is."""
    full = math.exp(-rate)
    return full, math.exp(-rate * questions.loud / FULL) - full


def _log_factor(sums: GaussianSums, order: float) -> float:
    """log of Σ_y φ(y-1)^α φ(y)^(1-α), or a little more if α is not whole."""
    return order * (order - 1) / (2 * sums.sigma**2)


def _split(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Each block of several integers as up to _SPLIT blocks."""
    sizes = high - low + 1
    edges = low[:, None] + np.floor(sizes[:, None] * np.arange(_SPLIT + 1) / _SPLIT)
    first, last = edges[:, :-1].ravel(), edges[:, 1:].ravel() - 1
    filled = first <= last
    return first[filled], last[filled]
