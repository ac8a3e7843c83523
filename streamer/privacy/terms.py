"""The values of settings: kinds of neighbours, calibration and domain."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """Which two databases must be indistinguishable."""

    REPLACE = "replace"
    """The whole history of one user is replaced by another (the evolving game)."""
    ADD_REMOVE = "add-remove"
    """One user is added or removed."""


class Method(StrEnum):
    """Which analysis determines the noise."""

    EXACT = "exact"
    """The exact loss of counting queries (the default)."""
    THEOREM = "theorem"
    """The paper's theorems with their constants; also covers fractional queries."""
    FRACTIONAL = "fractional"
    """The Rényi bound, for queries with weights between 0 and 1."""


class Domain(StrEnum):
    """Which items are asked about in a step."""

    OPEN = "open"
    """The items that an active user holds; any text may be an item."""
    DECLARED = "declared"
    """All items of a finite set that is known in advance, held or not."""
