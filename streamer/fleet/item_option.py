"""Options that name an item and some whole numbers: ITEM,NUMBER,…"""

from __future__ import annotations

import re

from streamer.errors import SettingError

LONGEST_ITEM = 1000
"""In bytes of UTF-8: below the limit of the service."""


def split_item(text: str, numbers: int) -> tuple[str, list[int]] | None:
    """The item, which may contain commas, and the numbers after it; None if it has another form."""
    fields = text.split(",")
    if len(fields) <= numbers or not all(map(_is_whole, fields[-numbers:])):
        return None
    return ",".join(fields[:-numbers]).strip(), [int(field) for field in fields[-numbers:]]


def check_item(setting: str, item: str) -> None:
    # Printable text can always be encoded as UTF-8.
    if not (item.isprintable() and 0 < len(item.encode()) <= LONGEST_ITEM):
        allowed = f"its item must be printable text of 1 to {LONGEST_ITEM:,} bytes"
        raise SettingError(setting, repr(item[:50]), allowed)


def _is_whole(text: str) -> bool:
    # Accepted by int(), and short enough that products of two fit into 64 bits.
    return re.fullmatch(r" *[0-9]{1,9} *", text) is not None
