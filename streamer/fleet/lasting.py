"""Lasting items: what some users of a simulated fleet have in every step."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.errors import SettingError
from streamer.fleet.item_option import check_item, split_item


@dataclass(frozen=True, slots=True)
class Lasting:
    """The same `size` users have `item` in every step, whatever else they have.

    A user has at most one lasting item. Outbreaks affect its users like all others, who then
    have both items; the outbreak's is the later one.
    """

    item: str
    size: int

    def __post_init__(self) -> None:
        check_item("lasting", self.item)
        if self.size < 1:
            raise SettingError("lasting", self.item, "its size must be at least 1")


def parse_lasting(text: str) -> Lasting:
    """Parse ITEM,SIZE; the item may contain commas."""
    split = split_item(text, 1)
    if split is None:
        raise SettingError("lasting", text, "use ITEM,SIZE")
    item, (size,) = split
    return Lasting(item, size)
