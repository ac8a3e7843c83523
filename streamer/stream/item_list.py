"""The list of declared items, as an operator writes it: one item a line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamer.errors import SettingError

MOST_ITEMS = 10_000
MOST_BYTES = 400_000
"""Of the whole list as JSON: the ledger keeps it in the record of its period."""


def check_items(
    setting: str, unit: str, items: Sequence[str], max_item_bytes: int
) -> tuple[str, ...]:
    """The items in ascending order, because their order in a list makes no difference.

    `unit`: what the list consists of, lines or entries.
    """
    seen: dict[str, int] = {}
    for number, item in enumerate(items, start=1):
        where = f"{unit} {number} of {setting}"
        if not item.strip():
            raise SettingError(where, "empty", "delete it")
        if len(item.encode()) > max_item_bytes:
            raise SettingError(
                where,
                f"longer than stream.max_item_bytes ({max_item_bytes:,} bytes)",
                "no event could hold this item; shorten it or delete it",
            )
        if item in seen:
            raise SettingError(where, f"the same as {unit} {seen[item]}", "delete one of them")
        seen[item] = number
    size = len(msgspec.json.encode(list(seen)))
    if len(seen) > MOST_ITEMS or size > MOST_BYTES:
        raise SettingError(
            setting,
            f"a list of {len(seen):,} items and {size:,} bytes",
            f"declare at most {MOST_ITEMS:,} items and {MOST_BYTES:,} bytes",
        )
    return tuple(sorted(seen))
