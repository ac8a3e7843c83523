"""The words that a user chooses from: kinds of neighbours, of calibration, of domain."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """Which two databases must look alike."""

    REPLACE = "replace"
    """The whole history of one user is replaced by another (the evolving game)."""
    ADD_REMOVE = "add-remove"
    """One user takes part, or does not."""


class Method(StrEnum):
    """Which analysis the noise comes from."""

    EXACT = "exact"
    """The exact loss of counting queries (the default)."""
    THEOREM = "theorem"
    """The paper's theorems with their constants; also covers fractional queries."""
    FRACTIONAL = "fractional"
    """The Rényi bound, for queries with weights between 0 and 1."""


class Domain(StrEnum):
    """Which items are asked about in a step."""

    OPEN = "open"
    """Those that an active user holds; anything may be an item."""
    DECLARED = "declared"
    """All of a finite set that is known in advance, held or not."""
