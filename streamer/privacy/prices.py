"""What answers cost, in units: a fifth of a full charge.

A budget of k full charges is k·FULL units. A loud report costs 0.2 of a full charge, which is
no floating-point number: counted in whole units, no budget loses or gains anything to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

FULL = 5
"""A report, and the answer that an item is gone: one contribution."""
LOUD = 1
"""A report whose estimate exceeds the threshold by at least σ."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The kinds of questions that are paid for.

    `loud`: the price of a report whose estimate is at least ⌈σ⌉ above the threshold, in units.
    `still_there`: whether public items are also asked about without a value, where only the
    answer "gone" has a price.
    """

    loud: int = FULL
    still_there: bool = False


VALUES = Questions()
"""Every report at the full price, as in the paper."""
CHANGES = Questions(loud=LOUD, still_there=True)
"""Both kinds of questions, and loud reports at their own price."""
