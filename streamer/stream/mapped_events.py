"""Decodes records of any form that a mapping describes.

Whether an event counts, and for which user, item and step, depends on that event alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from streamer.stream.decoding import Decoded, Envelopes, Limits, Rejection
from streamer.stream.event_times import EventTimes
from streamer.stream.mapping import Mapping
from streamer.stream.moments import Moments
from streamer.stream.paths import Path, Place, RecordField, Template
from streamer.stream.reasons import Reason
from streamer.stream.rows import OTHER, Reader, Rows
from streamer.stream.timing import StepTiming


class MappedDecoder:
    """Implements `Decoder`: a reader takes the fields from the records, the mapping says what
    they mean."""

    def __init__(
        self,
        mapping: Mapping,
        reader: Callable[[Sequence[Path], Limits], Reader],
        timing: StepTiming,
        limits: Limits,
    ) -> None:
        places = mapping.places
        self._mapping = mapping
        self._limits = limits
        self._times = EventTimes(timing, mapping.time_format)
        self._reader = reader([place for place in places if isinstance(place, Path)], limits)
        self._record_fields = [place for place in places if isinstance(place, RecordField)]

    def decode(
        self,
        records: Sequence[bytes | None],
        arrivals: Moments | None,
        envelopes: Envelopes | None = None,
    ) -> Decoded:
        rows = self._reader.read(records)
        if self._record_fields:
            rows = replace(rows, columns={**rows.columns, **self._outer(rows.places, envelopes)})
        read = len(rows.places)
        for condition in self._mapping.where:
            holds = condition.holds(rows.columns[condition.place])
            if not all(holds):
                rows = rows.chosen(holds)
        ignored = read - len(rows.places)
        users = _first([rows.columns[place] for place in self._mapping.user])
        items = _first([self._items(item, rows) for item in self._mapping.item])
        times = _first([rows.columns[place] for place in self._mapping.time], len(users))
        return self._judged(rows, users, items, times, arrivals, ignored)

    def _judged(
        self,
        rows: Rows,
        users: list[object],
        items: list[object],
        times: list[object],
        arrivals: Moments | None,
        ignored: int,
    ) -> Decoded:
        places, parts = rows.places, rows.parts
        if list in set(map(type, items)):
            several = [isinstance(item, list) for item in items]
            sizes = [len(item) if isinstance(item, list) else 1 for item in items]
            events = np.repeat(np.arange(len(sizes)), sizes)
            users = [users[event] for event in events.tolist()]
            times = [times[event] for event in events.tolist()]
            items = [
                each for item in items for each in (item if isinstance(item, list) else [item])
            ]
            places = places[events]
            if parts is None:
                parts = np.where(np.repeat(several, sizes), _positions(sizes), -1)
            else:
                parts = parts[events]
        faults: dict[int, Reason] = {}
        names = _texts(users, Reason.MISSING_USER, faults)
        texts = _texts(items, Reason.MISSING_ITEM, faults)
        if not self._limits.surely_kept(names, texts):
            for index, (user, item) in enumerate(zip(names, texts, strict=True)):
                fault = None if index in faults else self._limits.fault(user, item)
                if fault is not None:
                    faults[index] = fault
        moments, unread = self._times.read(times, None if arrivals is None else arrivals[places])
        decoded = Decoded(places, names, texts, moments, rows.rejections, parts, ignored)
        return _without(decoded, unread | faults)

    def _items(self, item: Place | Template, rows: Rows) -> list[object]:
        if isinstance(item, Template):
            return _filled(item, [rows.columns[place] for place in item.places])
        return rows.columns[item]

    def _outer(
        self, places: NDArray[np.int64], envelopes: Envelopes | None
    ) -> dict[Place, list[object]]:
        """The columns of the records' own fields."""
        if envelopes is None:
            return {field: [None] * len(places) for field in self._record_fields}
        columns: dict[Place, list[object]] = {}
        keys = envelopes.keys() if RecordField(None) in self._record_fields else ()
        named = [field for field in self._record_fields if field.header is not None]
        headers = [dict(each) for each in envelopes.headers()] if named else ()
        for field in self._record_fields:
            values = keys if field.header is None else [each.get(field.header) for each in headers]
            columns[field] = [_decoded(values[place]) for place in places.tolist()]
        return columns


def _decoded(value: bytes | None) -> object:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return OTHER


def _first(columns: Sequence[list[object]], rows: int = 0) -> list[object]:
    """Per row the first value that is there."""
    if not columns:
        return [None] * rows
    if all(columns[0]) and (len(columns) == 1 or list not in set(map(type, columns[0]))):
        return columns[0]
    return [next(filter(_is_there, values), None) for values in zip(*columns, strict=True)]


def _is_there(value: object) -> bool:
    """Neither null nor an empty text, and not a list of nothing else."""
    if isinstance(value, list):
        return any(map(_is_there, value))
    return value is not None and value != ""


def _filled(template: Template, columns: list[list[object]]) -> list[object]:
    """Per row the template's text; None if one of its fields is not there."""
    form = "%s".join(literal.replace("%", "%%") for literal in template.literals)
    if all(set(map(type, column)) == {str} and all(column) for column in columns):
        return [form % values for values in zip(*columns, strict=True)]
    return [_fill(form, values) for values in zip(*columns, strict=True)]


def _fill(form: str, values: Sequence[object]) -> object:
    """One field may be a list: then so is the result."""
    if not all(map(_is_there, values)):
        return None
    lists = [place for place, value in enumerate(values) if isinstance(value, list)]
    if len(lists) > 1:
        return OTHER
    if lists:
        [place] = lists
        elements: list[object] = values[place]  # type: ignore[assignment]
        return [_fill(form, (*values[:place], each, *values[place + 1 :])) for each in elements]
    texts = [_text(value) for value in values]
    return OTHER if None in texts else form % tuple(texts)


def _texts(values: list[object], missing: Reason, faults: dict[int, Reason]) -> list[str]:
    """Texts and whole numbers as text; in the place of all else stands an empty text, and why."""
    if set(map(type, values)) <= {str}:
        return values  # type: ignore[return-value]
    texts = []
    for index, value in enumerate(values):
        text = _text(value)
        if text is None:
            faults.setdefault(index, missing if value is None else Reason.WRONG_TYPE)
        texts.append(text or "")
    return texts


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _positions(sizes: list[int]) -> NDArray[np.int64]:
    """0, 1, 2, ... within each of these."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)


def _without(decoded: Decoded, faults: dict[int, Reason]) -> Decoded:
    """The events that have no fault; the others are rejected."""
    if not faults:
        rejections = sorted(decoded.rejections, key=Rejection.position)
        return replace(decoded, rejections=rejections)
    good = np.ones(len(decoded.users), dtype=np.bool_)
    good[list(faults)] = False
    rejections = [decoded.rejection(index, reason) for index, reason in faults.items()]
    return Decoded(
        decoded.places[good],
        list(compress(decoded.users, good)),
        list(compress(decoded.items, good)),
        decoded.times[good],
        sorted(decoded.rejections + rejections, key=Rejection.position),
        None if decoded.parts is None else decoded.parts[good],
        decoded.ignored,
    )
