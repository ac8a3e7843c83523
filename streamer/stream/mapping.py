"""A mapping: where the user, the items and the time of an event stand in a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.errors import SettingError
from streamer.stream.conditions import Condition
from streamer.stream.event_times import TimeFormat
from streamer.stream.paths import Path, Place, Template, parse_place, parse_template

TIMESTAMP = "$timestamp"
"""The record's own timestamp, which is its arrival time."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """`user`, `item` and `time`: places in the order of preference; the first that is there
    counts. An event without a time has its arrival time. It counts only if all conditions hold."""

    user: tuple[Place, ...]
    item: tuple[Place | Template, ...]
    time: tuple[Place, ...]
    time_format: TimeFormat = TimeFormat.AUTO
    where: tuple[Condition, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(self._places()))

    @property
    def alternatives(self) -> dict[str, list[tuple[Place, ...]]]:
        """By setting, the places that each of its alternatives needs."""
        return {
            "events.user": [(place,) for place in self.user],
            "events.item": [
                item.places if isinstance(item, Template) else (item,) for item in self.item
            ],
            "events.time": [(place,) for place in self.time],
        }

    def _places(self) -> Iterator[Place]:
        for alternatives in self.alternatives.values():
            for places in alternatives:
                yield from places
        yield from (condition.place for condition in self.where)


def user_places(texts: Sequence[str]) -> tuple[Place, ...]:
    return tuple(single_place("events.user", text) for text in texts)


def item_places(texts: Sequence[str]) -> tuple[Place | Template, ...]:
    """A text with braces is a template."""
    parse = {True: parse_template, False: parse_place}
    return tuple(parse["{" in text or "}" in text]("events.item", text) for text in texts)


def time_places(texts: Sequence[str]) -> tuple[Place, ...]:
    """The arrival time is always there: what stands behind it is never read."""
    before = texts[: texts.index(TIMESTAMP)] if TIMESTAMP in texts else texts
    return tuple(single_place("events.time", text) for text in before)


def single_place(setting: str, text: str) -> Place:
    """A place with one value."""
    place = parse_place(setting, text)
    if isinstance(place, Path) and place.has_several:
        raise SettingError(setting, text, "only events.item may name every element (*) of an array")
    return place


CONTRACT = Mapping(user_places(["user"]), item_places(["item"]), time_places(["time"]))
"""The fields of the event contract."""
