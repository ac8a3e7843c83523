"""Where a value stands in an event: dot paths, fields of the record itself, and templates.

context.device.id          names, separated by dots
attributes."user.id"       a quoted name may contain dots
2.data                     a number is a place in an array, counted from 0
exception.values.*.type    every element of an array
$key, $header.name         of the record itself
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from streamer.errors import SettingError

_PART = re.compile(r'(?:"([^"]+)"|([^."{}]+))(?:\.(?!$)|$)')
_FIELD = re.compile(r'\{((?:"[^"]*"|[^{}"])*)\}')
_FORM = 'write names separated by dots, such as context.device.id or attributes."user.id"'


class Every(Enum):
    """Every element of an array."""

    EVERY = "*"


Part = str | int | Every
"""The name of a field, a place in an array, or all of its elements."""


@dataclass(frozen=True, slots=True)
class Path:
    """A place in the value of a record."""

    parts: tuple[Part, ...]
    text: str

    @property
    def has_several(self) -> bool:
        return Every.EVERY in self.parts


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of the record itself: a header, or the key."""

    header: str | None

    @property
    def text(self) -> str:
        return "$key" if self.header is None else f"$header.{self.header}"


Place = Path | RecordField


@dataclass(frozen=True, slots=True)
class Template:
    """A text with fields: `literals` stand before, between and after the `places`."""

    literals: tuple[str, ...]
    places: tuple[Place, ...]


def parse_place(setting: str, text: str) -> Place:
    """A path or a field of the record; SettingError if the text is neither."""
    names, end = [], 0
    while end < len(text):
        found = _PART.match(text, end)
        if not found:
            raise SettingError(setting, text, f"it is not a path; {_FORM}")
        names.append((found[1] or found[2], found[1] is not None))
        end = found.end()
    if not names:
        raise SettingError(setting, "empty", _FORM)
    if text.startswith("$"):
        return _record_field(setting, text, [name for name, _ in names])
    return Path(tuple(_part(name, quoted) for name, quoted in names), text)


def parse_template(setting: str, text: str) -> Template:
    """A text with fields in braces; SettingError if it has none."""
    literals = _FIELD.split(text)[::2]
    fields = _FIELD.findall(text)
    if not fields or any(brace in literal for literal in literals for brace in "{}"):
        raise SettingError(
            setting, text, "a template needs fields in braces, such as {type}@{release}"
        )
    return Template(tuple(literals), tuple(parse_place(setting, field) for field in fields))


def _part(name: str, quoted: bool) -> Part:
    if quoted:
        return name
    if name == Every.EVERY.value:
        return Every.EVERY
    return int(name) if name.isascii() and name.isdigit() else name


def _record_field(setting: str, text: str, names: list[str]) -> RecordField:
    if names == ["$key"]:
        return RecordField(None)
    if names[0] == "$header" and len(names) == 2:
        return RecordField(names[1])
    raise SettingError(
        setting,
        text,
        "fields of the record are $key, $header.name (quote a name with dots) and, for "
        "events.time only, $timestamp",
    )
