"""How fast the parts of the sums in `priced` change from one distance to the next.

What rises and what falls with d nearly cancels where the sums are largest. Bounds that take each
part at its worst end of a block would need blocks of single integers there. The changes from d to
d+1 are all multiples of φ(d), and these multiples hardly vary within a block (docs/privacy.md,
6.3). A power p stands for both directions: α in (A), 1-α in (B).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer.privacy.gaussian_sums import GaussianSums, Numbers


@dataclass(frozen=True, slots=True)
class Range:
    """A number that is somewhere from `least` to `most`, for many blocks."""

    least: Numbers
    most: Numbers

    @classmethod
    def between(cls, one: Numbers, other: Numbers) -> Range:
        return cls(np.minimum(one, other), np.maximum(one, other))

    def __neg__(self) -> Range:
        return Range(-self.most, -self.least)

    def __add__(self, other: Range) -> Range:
        return Range(self.least + other.least, self.most + other.most)

    def __mul__(self, factor: Range) -> Range:
        """For a factor that is not negative."""
        return Range(
            self.least * np.where(self.least > 0, factor.least, factor.most),
            self.most * np.where(self.most > 0, factor.most, factor.least),
        )

    def times(self, factor: float) -> Range:
        """For a factor that is not negative."""
        return Range(factor * self.least, factor * self.most)

    def wider(self, errors: Numbers) -> Range:
        return Range(self.least - errors, self.most + errors)


class Block:
    """All d from l to h-1, for many blocks at once."""

    def __init__(self, sums: GaussianSums, low: Numbers, high: Numbers, rounding: float) -> None:
        self._sums, self._first, self._last = sums, low, high - 1
        self._farthest = np.maximum(np.abs(self._first), np.abs(self._last))
        self._rounding = rounding
        self._slopes = 1 / (2 * sums.sigma**2)

    @property
    def mass(self) -> Range:
        """φ(d)."""
        inside = (self._first < 0) & (self._last > 0)
        nearest = np.where(inside, 0.0, np.minimum(np.abs(self._first), np.abs(self._last)))
        ends = (np.exp(self._sums.log_mass(d)) for d in (self._farthest, nearest))
        return self._rounded(Range(*ends))

    def reports(self, power: float, beyond: int = 0) -> Range:
        """By how much the sum of reports from d + `beyond` on falls, as a multiple of φ(d)."""

        def multiple(d: Numbers) -> Numbers:
            exponents = power * (2 * (d + beyond) - 1) - beyond * (2 * d + beyond)
            return np.asarray(np.exp(self._slopes * exponents))

        return self._rounded(Range.between(multiple(self._first), multiple(self._last)))

    def quiet(self, power: float) -> Range:
        """By how much F(d-1)·ρ^p grows, ρ = F(d-2)/F(d-1), as a multiple of φ(d)."""
        first, last = self._first, self._last
        # λ(d) = log F(d-2)/F(d-1) rises in d, and 1-e^λ falls.
        at_first, after_first, at_last, after_last = (
            self._sums.log_step(1 - d) for d in (first, first + 1, last, last + 1)
        )
        # φ(d-1)/F(d-1), divided by the same one further and less 1.
        drop = Range(
            np.expm1(self._slopes * (2 * first - 1) - after_last),
            np.expm1(self._slopes * (2 * last - 1) - after_first),
        ).wider(self._rounding * (self._slopes * (1 + 2 * self._farthest) - after_first))
        least, most = np.maximum(0.0, drop.least), np.maximum(0.0, drop.most)
        least, most = least * np.exp(-at_last), most * np.exp(-at_first)
        low_chord = _chord(power, -np.expm1(after_last) * least)
        high_chord = _chord(power, -np.expm1(after_first) * most)
        if power > 0:
            bend = Range(low_chord * least, high_chord * most)
        else:
            bend = Range(low_chord * most, high_chord * least)
        bend = self._rounded(bend)
        ratios = Range.between(np.exp(power * at_first), np.exp(power * at_last))
        return self._rounded(Range(1 + bend.least, 1 + bend.most) * ratios)

    def there(self, power: float) -> Range:
        """By how much the same falls that is seen from the other side, at 2-d: U for F."""
        other = Block(self._sums, 1 - self._last, 2 - self._first, self._rounding)
        steps = (np.exp(self._slopes * (2 * d - 1)) for d in (self._first, self._last))
        return self._rounded(other.quiet(power) * Range(*steps))

    def _rounded(self, found: Range) -> Range:
        return found.wider(self._rounding * np.maximum(np.abs(found.least), np.abs(found.most)))


def _chord(power: float, places: Numbers) -> Numbers:
    """((1+z)^p - 1)/z, which rises in z >= 0 unless p is between 0 and 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.expm1(power * np.log1p(places)) / places
    return np.where(places > 0, slopes, power)
