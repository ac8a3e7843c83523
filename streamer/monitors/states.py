"""The states of an item, as they are published."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What became of an item in a step."""

    NEW = "new"
    """Reported, and not public before."""
    ONGOING = "ongoing"
    """Public before, and still there."""
    BACK = "back"
    """Reported again, after it was gone."""
    GONE = "gone"
    """No longer there. It is not public after this step."""
