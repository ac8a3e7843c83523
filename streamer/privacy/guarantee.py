"""The parameters of the guarantee, validated once, when they are created.

Every other module of this package takes a `Guarantee` and relies on its ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import SettingError
from streamer.privacy.terms import Neighbours

# Above this ε the guarantee is empty: e^100 times more likely is no protection at all.
LARGEST_EPSILON = 100.0
# Far below any useful guarantee; smaller values are lost in floating-point rounding.
SMALLEST_EPSILON = 1e-9
# Sums over loss distributions are truncated at a mass below 1e-24, far below this δ.
SMALLEST_DELTA = 1e-15
MOST_CONTRIBUTIONS = 10_000


@dataclass(frozen=True, slots=True)
class Guarantee:
    """User-level (ε, δ)-differential privacy for one budget period.

    `contributions` is the paper's k: how many reports one user may count for before that
    user is ignored.
    """

    epsilon: float
    delta: float
    contributions: int
    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon, at_most=LARGEST_EPSILON)
        if self.epsilon < SMALLEST_EPSILON:
            raise SettingError("epsilon", self.epsilon, f"it must be at least {SMALLEST_EPSILON:g}")
        check_probability("delta", self.delta)
        if self.delta < SMALLEST_DELTA:
            raise SettingError(
                "delta", self.delta, f"it must be at least {SMALLEST_DELTA:g} and below 1"
            )
        check_whole("contributions", self.contributions, 1, MOST_CONTRIBUTIONS)
        if self.neighbours not in tuple(Neighbours):
            raise SettingError("neighbours", self.neighbours, "use replace or add-remove")
        # Callers may pass a plain string; the attribute is always the enum.
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))


def check_positive(setting: str, value: float, at_most: float = math.inf) -> None:
    """Reject anything but a finite number above 0 and at most `at_most`."""
    if not (_is_number(value) and 0 < value <= at_most and math.isfinite(value)):
        limit = "" if math.isinf(at_most) else f" and at most {at_most:,.10g}"
        raise SettingError(setting, value, f"it must be a number above 0{limit}")


def check_probability(setting: str, value: float) -> None:
    """Reject anything but a number strictly between 0 and 1."""
    if not (_is_number(value) and 0 < value < 1):
        raise SettingError(setting, value, "it must be above 0 and below 1")


def check_whole(setting: str, value: int, least: int, most: int) -> None:
    """Reject anything but a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingError(setting, value, f"it must be a whole number from {least:,} to {most:,}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
