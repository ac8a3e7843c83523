"""Items that look as if they named a person or one single event.

Such items cannot become public, because hardly two users hold the same one; but they cost memory,
and they should not have been collected as items at all.
"""

from __future__ import annotations

import re
from enum import StrEnum

_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_MAIL = re.compile(r"[^\s@:/]+@[^\s@:/]+\.[a-z]{2,}(?![\w.])", re.IGNORECASE)
_DIGITS = re.compile(r"\d{7,}")


class Suspicion(StrEnum):
    """What an item seems to contain."""

    MAIL = "an e-mail address"
    UUID = "a UUID"
    DIGITS = "a long number"


def suspicion_of(item: str) -> Suspicion | None:
    for form, suspicion in (
        (_MAIL, Suspicion.MAIL),
        (_UUID, Suspicion.UUID),
        (_DIGITS, Suspicion.DIGITS),
    ):
        if form.search(item):
            return suspicion
    return None
