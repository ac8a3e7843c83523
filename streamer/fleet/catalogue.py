"""The items of a simulated fleet, numbered: background, named, then personal ones.

Columns contain the numbers; texts are generated on demand. Two different numbers never
have the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PERSONAL_ITEMS = 4
"""Number of items that belong to one user only, per user."""
PERSONAL_PREFIX = "url:/home/"

# Each contains the number of its item. Some need escapes or multi-byte characters.
_BACKGROUND = (
    "crash:NullPointerException:Cart.java:{}",
    "url:/products/{}",
    "error:HTTP-404:/static/img-{}.png",
    "version:7.{}",
    'search:größe "{}"',
    "error:E{}:disk\\cache",
    "search:運動靴 {}",
)


def user_name(user: int) -> str:
    return f"u-{user}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`background` items, most frequent first, and the `named` ones: of outbreaks, and lasting."""

    background: int
    named: tuple[str, ...]

    @property
    def shared(self) -> int:
        """Number of items that are not personal: their numbers come first."""
        return self.background + len(self.named)

    def text(self, item: int) -> str:
        if item < self.background:
            return _background_text(item)
        if item < self.shared:
            return self.named[item - self.background]
        user, page = divmod(item - self.shared, PERSONAL_ITEMS)
        return f"{PERSONAL_PREFIX}{user_name(user)}/page-{page}"

    def number(self, text: str) -> int:
        """The number of a named item."""
        return self.background + self.named.index(text)


def is_taken(text: str, background: int) -> bool:
    """Whether a background or personal item has this text; no named item may."""
    if text.startswith(PERSONAL_PREFIX):
        return True
    numbers = (int(digits) for digits in re.findall("[0-9]+", text))
    return any(text == _background_text(number) for number in numbers if number < background)


def catalogue_of(background: int, named: Iterable[str]) -> Catalogue:
    """The catalogue; an item of several outbreaks is still one item."""
    return Catalogue(background, tuple(dict.fromkeys(named)))


def _background_text(item: int) -> str:
    return _BACKGROUND[item % len(_BACKGROUND)].format(item)
