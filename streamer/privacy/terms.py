"""The values of settings: kinds of neighbours, calibration, domain, noise and attention."""

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

    HORIZON = "horizon"
    """Gaussian noise and the loss of a period's questions (the default)."""
    EXACT = "exact"
    """Laplace noise and the exact loss of any number of counting queries."""
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


class Noise(StrEnum):
    """The law of the noise."""

    GAUSSIAN = "gaussian"
    """Discrete Gaussian; its scale is σ."""
    LAPLACE = "laplace"
    """Discrete Laplace w and a smaller, capped v; its scale is b, that of w."""


class Attention(StrEnum):
    """What is asked about an item, and what an answer costs its holders."""

    CHANGES = "changes"
    """New items for their value, public ones mostly whether they are still there; loud reports
    cost less."""
    EVERY_STEP = "every_step"
    """Every item for its value in every step, as in the paper; every report costs the same."""
