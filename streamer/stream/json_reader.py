"""Reads the fields at given paths from JSON records.

The paths are compiled to msgspec structs that contain only what the paths name, so the rest of
a record is skipped and never becomes a Python object. A record that does not fit the structs
(a text where another path expects an object, say) is walked path by path. Both ways have the
same result: the structs only make it fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from streamer.errors import SettingError
from streamer.stream.decoding import Limits, Rejection, parse_each
from streamer.stream.paths import Every, Part, Path, Place
from streamer.stream.reasons import Reason
from streamer.stream.rows import OTHER, Rows

_Getter = Callable[[Any], object]
_Scalar = str | int | float | bool | None
_scalar = msgspec.json.Decoder(_Scalar)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])


class JsonReader:
    """Implements `Reader`: a record is one JSON object, or an array if the paths say so."""

    def __init__(self, paths: Iterable[Path], limits: Limits) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._limits = limits
        root = _Node()
        for path in self._paths:
            root.add(path)
        self._json = msgspec.json.Decoder(root.contents())
        self._whole = _array if root.holds_array else _object
        self._getters = [root.getter(path.parts) for path in self._paths]

    def read(self, records: Sequence[bytes | None]) -> Rows:
        found, places, reasons = parse_each(records, self._limits, self._json.decode, self._walk)
        columns: dict[Place, list[object]] = {
            path: _column(number, getter, found)
            for number, (path, getter) in enumerate(zip(self._paths, self._getters, strict=True))
        }
        rejections = [Rejection(place, reason) for place, reason in reasons.items()]
        return Rows(places, columns, rejections)

    def _walk(self, record: bytes, _: msgspec.ValidationError) -> _Walked | Reason:
        """The values of a record that does not fit the structs."""
        try:
            self._whole.decode(record)
        except msgspec.ValidationError:
            return Reason.NOT_AN_OBJECT
        return _Walked(tuple(_find(record, path.parts) for path in self._paths))


@dataclass(frozen=True, slots=True)
class _Walked:
    """The values of one record at all paths."""

    values: tuple[object, ...]


@dataclass(slots=True)
class _Node:
    """A place in a record that paths lead to or through."""

    children: dict[Part, _Node] = field(default_factory=dict)
    is_end: bool = False

    @property
    def holds_array(self) -> bool:
        return any(not isinstance(part, str) for part in self.children)

    def add(self, path: Path) -> None:
        node = self
        for part in path.parts:
            if any(type(part) is not type(other) for other in node.children):
                raise _conflict(path)
            if node.is_end and not isinstance(part, str):
                raise _conflict(path)
            node = node.children.setdefault(part, _Node())
        node.is_end = True
        if node.holds_array:
            raise _conflict(path)

    def contents(self) -> Any:
        """The type of an object or array here that contains only what paths name."""
        if Every.EVERY in self.children:
            return list[self.children[Every.EVERY].declared("")[1]]  # type: ignore[misc]
        if not self.holds_array:
            fields = [child.declared(self.name(part)) for part, child in self.children.items()]
            renamed = {self.name(part): str(part) for part in self.children}
            return msgspec.defstruct("Object", fields, rename=renamed, frozen=True, gc=False)
        last = max(part for part in self.children if isinstance(part, int))
        fields = [
            self.children[place].declared(self.name(place))
            if place in self.children
            else (self.name(place), msgspec.Raw, None)
            for place in range(last + 1)
        ]
        return msgspec.defstruct("Array", fields, array_like=True, frozen=True, gc=False)

    def declared(self, name: str) -> tuple[str, Any, Any]:
        """As a field: its name, the type of the value here, and what stands for a missing one."""
        kind: Any = _Scalar | list[_Scalar] if self.is_end else None
        if not self.children:
            return name, kind, None
        contents = self.contents()
        # In the place of a missing object stands one without fields: getters are fast if nothing
        # on their way is None.
        keeps_missing = self.is_end or Every.EVERY in self.children
        return name, contents | kind, None if keeps_missing else contents()

    def name(self, part: Part) -> str:
        """Of a field in the struct."""
        return f"at_{part if isinstance(part, int) else list(self.children).index(part)}"

    def getter(self, parts: tuple[Part, ...]) -> _Getter:
        """Takes the value at a path from what was decoded here; AttributeError if something on the
        way is no object."""
        node = self
        names: list[str] = []
        for number, part in enumerate(parts):
            if part is Every.EVERY:
                inner = node.children[part].getter(parts[number + 1 :])
                return _of_each(_attribute(names), inner)
            names.append(node.name(part))
            node = node.children[part]
        return _attribute(names)


def _attribute(names: list[str]) -> _Getter:
    return attrgetter(".".join(names)) if names else lambda value: value


def _of_each(array: _Getter, inner: _Getter) -> _Getter:
    def get(value: Any) -> object:
        found = array(value)
        if not isinstance(found, list):
            return None
        return _flat(_or_missing(inner, each) for each in found)

    return get


def _or_missing(getter: _Getter, value: object) -> object:
    try:
        return getter(value)
    except AttributeError:
        return None


def _flat(values: Iterable[object]) -> list[object]:
    """An array of arrays is one list of values."""
    flat: list[object] = []
    for value in values:
        if isinstance(value, list):
            flat += value
        else:
            flat.append(value)
    return flat


def _column(number: int, getter: _Getter, found: Sequence[object]) -> list[object]:
    """The values of all records at one path."""
    try:
        return list(map(getter, found))
    except AttributeError:
        return [
            each.values[number] if isinstance(each, _Walked) else _or_missing(getter, each)
            for each in found
        ]


def _find(value: bytes | msgspec.Raw, parts: tuple[Part, ...]) -> object:
    """The value at a path, by decoding one level after the other."""
    if not parts:
        return _end(value)
    part, *rest = parts
    try:
        if isinstance(part, str):
            inner = _object.decode(value).get(part)
            return None if inner is None else _find(inner, tuple(rest))
        elements = _array.decode(value)
    except msgspec.ValidationError:
        return None
    if isinstance(part, int):
        return _find(elements[part], tuple(rest)) if part < len(elements) else None
    return _flat(_find(each, tuple(rest)) for each in elements)


def _end(value: bytes | msgspec.Raw) -> object:
    try:
        return _scalar.decode(value)
    except msgspec.ValidationError:
        pass
    try:
        return [_element(each) for each in _array.decode(value)]
    except msgspec.ValidationError:
        return OTHER


def _element(value: msgspec.Raw) -> object:
    try:
        return _scalar.decode(value)
    except msgspec.ValidationError:
        return OTHER


def _conflict(path: Path) -> SettingError:
    return SettingError(
        "events",
        path.text,
        "another path expects something else there: an array, an object with fields and a list of "
        "values cannot stand in the same place",
    )
