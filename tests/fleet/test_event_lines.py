"""Events as JSON lines, and the lines that are no events."""

import json
from dataclasses import replace

import numpy as np
import pytest

from streamer.fleet.bad_records import Kind
from streamer.fleet.catalogue import Catalogue
from streamer.fleet.event_lines import EventLines
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak
from streamer.fleet.simulation import Events, simulate
from tests.fleet.recount import event_of

ODD = 'say "größe"\\ 靴'
CATALOGUE = Catalogue(50, (ODD,))
START = 1_767_225_600_000


def events_of(*rows: tuple[int, int, int], kind: Kind = Kind.EVENT) -> Events:
    users, items, times = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Events(users, items, times, times, np.full(len(rows), kind, dtype=np.uint8))


def rendered(*rows: tuple[int, int, int], kind: Kind = Kind.EVENT) -> list[bytes]:
    return EventLines(CATALOGUE).render(events_of(*rows, kind=kind))


def test_a_line_is_the_event_of_the_contract():
    (line,) = rendered((17, 1, START + 12_345))
    assert line == b'{"user":"u-17","item":"url:/products/1","time":"2026-01-01T00:00:12.345Z"}'


def test_texts_that_json_must_escape_are_read_back_as_they_were():
    (line,) = rendered((17, 50, START))
    assert json.loads(line)["item"] == ODD


def test_items_times_and_users_of_a_whole_simulation_are_read_back_as_they_were():
    fleet = Fleet(400, 3, 1, bad=0, step_seconds=0.5, outbreaks=(Outbreak(ODD, 40, 0, 2),))
    catalogue = fleet.catalogue()
    for step in simulate(fleet):
        events = step.events
        expected = [
            (f"u-{user}", catalogue.text(item), time)
            for user, item, time in zip(
                events.users.tolist(), events.items.tolist(), events.times.tolist(), strict=True
            )
        ]
        assert [event_of(line) for line in EventLines(catalogue).render(events)] == expected


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (START + 999, "2026-01-01T00:00:00.999Z"),
        (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
        (253_402_214_399_999, "9999-12-30T23:59:59.999Z"),
    ],
)
def test_times_are_utc_to_the_millisecond(time, text):
    (line,) = rendered((17, 1, time))
    assert json.loads(line)["time"] == text


def test_rows_of_any_kind_keep_their_place():
    mixed = replace(
        events_of((1, 1, START), (2, 2, START), (3, 3, START)),
        kinds=np.array([0, Kind.NO_USER, 0], dtype=np.uint8),
    )
    read = [event_of(line) for line in EventLines(CATALOGUE).render(mixed)]
    assert [event and event[0] for event in read] == ["u-1", None, "u-3"]


BAD = [kind for kind in Kind if kind is not Kind.EVENT]


@pytest.mark.parametrize("item", [1, 4, 5, 50, 51], ids=["plain", "quotes", "\\", "odd", "own"])
@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.name)
def test_a_bad_record_of_each_kind_is_bad_and_one_line(kind, item):
    assert event_of(rendered((17, item, START))[0]) is not None
    (line,) = rendered((17, item, START), kind=kind)
    assert event_of(line) is None
    assert line
    assert not set(line) & set(b"\r\n")


def read(kind: Kind):
    return json.loads(rendered((17, 1, START), kind=kind)[0])


def test_each_kind_is_bad_in_its_own_way():
    good = read(Kind.EVENT)
    for kind in (Kind.BROKEN_JSON, Kind.PLAIN_TEXT):
        with pytest.raises(json.JSONDecodeError):
            read(kind)
    with pytest.raises(UnicodeDecodeError):
        rendered((17, 1, START), kind=Kind.INVALID_UTF8)[0].decode()
    assert read(Kind.NO_OBJECT) == list(good.values())
    assert read(Kind.NO_USER) == {name: good[name] for name in ("item", "time")}
    assert read(Kind.NO_ITEM) == {name: good[name] for name in ("user", "time")}
    assert read(Kind.EMPTY_USER) == {**good, "user": ""}
    assert read(Kind.EMPTY_ITEM) == {**good, "item": ""}
    assert read(Kind.USER_NOT_TEXT) == {**good, "user": 17}
    assert read(Kind.ITEM_NOT_TEXT) == {**good, "item": [good["item"]]}
    assert read(Kind.TIME_NOT_A_TIME) == {**good, "time": "yesterday"}
    for kind, name in ((Kind.LONG_USER, "user"), (Kind.LONG_ITEM, "item")):
        assert read(kind)[name].startswith(good[name])
        assert len(read(kind)[name]) > 5000
        assert {**read(kind), name: good[name]} == good


def test_no_line_of_a_simulation_has_a_newline_inside():
    fleet = Fleet(2000, 3, 1, bad=0.5)
    render = EventLines(fleet.catalogue()).render
    lines = [line for step in simulate(fleet) for line in render(step.events)]
    assert len(lines) == len(b"\n".join(lines).splitlines())


def test_nothing_renders_to_nothing():
    (step,) = simulate(Fleet(5, 1, 1, active=0.0))
    assert EventLines(CATALOGUE).render(step.events) == []
