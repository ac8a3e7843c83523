"""One-dimensional searches, shared by calibration and planning."""

from __future__ import annotations

import math
from collections.abc import Callable

LEAST_CALIBRATED = 0.1
"""The smallest noise scale b that a calibration returns, in users.

A smaller scale would be enough for very large ε, but its loss distribution spans k·e^(1/b)
numbers: 22,026·k at 0.1, and 485 million times k at 0.05. The sampler has its own limit
(`noise.SMALLEST_SCALE`).
"""
SCALE_STEP = 1e-6
"""Noise scales are rounded up to a multiple of this, so that printed scales are exact."""
_GOLDEN = (5**0.5 - 1) / 2


def smallest_true(
    holds: Callable[[float], bool], low: float, high: float, precision: float = 1e-9
) -> float:
    """The smallest x in [low, high] for which a monotone `holds` is true, approached from above.

    `holds(high)` must be true. The result satisfies `holds` and is within a relative
    `precision` of the smallest x.
    """
    if holds(low):
        return low
    while high - low > precision * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first_power_of_two(holds: Callable[[float], bool]) -> float:
    """The first of 1, 2, 4, … for which a monotone `holds` is true."""
    power = 1.0
    while not holds(power):
        power *= 2
    return power


def first_integer(holds: Callable[[int], bool], least: int | None = None) -> int:
    """The smallest integer, at least `least`, for which a monotone `holds` is true."""
    low = -1 if least is None else least - 1
    step = 1
    while least is None and holds(low):
        low, step = low - step, 2 * step
    high, step = low + 1, 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_scale(private: Callable[[float], bool]) -> float:
    """The smallest noise scale that is private, but at least LEAST_CALIBRATED.

    The bracket is found by doubling and halving from 1, because evaluating a scale that is
    far too small is by far the most expensive: its loss distribution is the widest.
    """
    high = first_power_of_two(private)
    low = high / 2
    while low >= LEAST_CALIBRATED and private(low):
        low, high = low / 2, low
    return smallest_true(private, max(low, LEAST_CALIBRATED), high)


def round_up(scale: float) -> float:
    """The scale as a multiple of SCALE_STEP."""
    return round(math.ceil(scale / SCALE_STEP) * SCALE_STEP, 6)


def falling_root(
    value: Callable[[float], float], start: float, ends: tuple[float, float], precision: float
) -> float:
    """A point at which a falling `value` is 0 or less, within `precision` of the first one.

    If there is no change of sign between the ends, the end that is closest to one. For a
    `value` that takes long to compute and is mostly nearly a straight line: false position,
    and bisection where that makes little progress.
    """
    left = right = start
    at_left = at_right = value(start)
    step = 0.1
    while at_right > 0 and right < ends[1]:
        left, at_left = right, at_right
        right, step = min(ends[1], right + step), 2 * step
        at_right = value(right)
    while at_left <= 0 and left > ends[0]:
        right, at_right = left, at_left
        left, step = max(ends[0], left - step), 2 * step
        at_left = value(left)
    if at_left <= 0 or at_right > 0:
        return left if at_left <= 0 else right
    halving = False
    while right - left > precision:
        aim = right - at_right * (right - left) / (at_right - at_left)
        if halving:
            aim = (left + right) / 2
        # Not closer to an end than half of the precision: so the bracket closes from both sides.
        aim = min(max(aim, left + precision / 2), right - precision / 2)
        at_aim = value(aim)
        halving = abs(at_aim) > abs(at_left if at_aim > 0 else at_right) / 2
        if at_aim > 0:
            left, at_left = aim, at_aim
        else:
            right, at_right = aim, at_aim
    return right


def least_point(cost: Callable[[float], float], low: float, high: float, rounds: int) -> float:
    """The point of least cost found by a golden-section search with `rounds` rounds.

    For a cost with one local minimum; with several it finds one of them, so callers use it
    only where every point of [low, high] is safe and a lower cost is merely better.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    cost_left, cost_right = cost(left), cost(right)
    for _ in range(rounds):
        if cost_left <= cost_right:
            high, right, cost_right = right, left, cost_left
            left = high - _GOLDEN * (high - low)
            cost_left = cost(left)
        else:
            low, left, cost_left = left, right, cost_right
            right = low + _GOLDEN * (high - low)
            cost_right = cost(right)
    return left if cost_left <= cost_right else right
