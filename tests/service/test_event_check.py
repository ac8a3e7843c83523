"""Trying the settings of events on a sample."""

import json

import numpy as np
import pytest

from streamer.event_settings import EventsSettings
from streamer.service.event_check import EventCheck
from streamer.settings import Settings, StreamSettings
from streamer.stream.intake import Batch
from tests.stream.making import batch

STREAM = StreamSettings(step_seconds=10, lateness_seconds=5, ahead_seconds=1)
NOW = 100_000
TRACK = {"type": "track", "userId": "user-1", "event": "Paid", "timestamp": 5_000}


def new_check(from_kafka=True, **events):
    return EventCheck(Settings(stream=STREAM, events=EventsSettings(**events)), from_kafka)


def add(check, *records, arrivals=None):
    encoded = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    return [
        (outcome.record, outcome.text)
        for outcome in check.add(batch(encoded, arrivals, first=7), NOW)
    ]


def warnings(*records, **events):
    check = new_check(**{"preset": "segment"} | events)
    add(check, *records, arrivals=[5_000] * len(records))
    return check.report().warnings


def test_each_record_has_an_outcome_in_its_order():
    check = new_check(preset="segment", item="events")
    outcomes = add(
        check,
        TRACK | {"events": ["A", "", "B"]},
        {"type": "page"},
        b"?",
        TRACK | {"events": "late"},
        TRACK | {"events": "ahead", "timestamp": 50_000},
        TRACK | {"events": "from the future"},
        arrivals=[5_000, 5_000, 5_000, 15_000, 5_000, NOW + 2_000],
    )
    at = "time 1970-01-01T00:00:05Z user us… (6 characters) item"
    assert outcomes == [
        ("p:7", "event 1 rejected: missing_item"),
        ("p:7", f"step 0 {at} A"),
        ("p:7", f"step 0 {at} B"),
        ("p:8", "ignored"),
        ("p:9", "rejected: not_json"),
        ("p:10", f"step 0 late {at} late"),
        ("p:11", "rejected: time_ahead"),
        ("p:12", "rejected: arrival_ahead"),
    ]
    report = check.report()
    assert (report.records, report.events, report.ignored, report.late) == (6, 3, 1, 1)
    assert (report.users, report.items, report.steps) == (1, 3, 1)
    assert report.rejected == dict.fromkeys(
        ["missing_item", "not_json", "time_ahead", "arrival_ahead"], 1
    )


def test_no_outcome_shows_a_users_id():
    check = new_check(preset="segment")
    [(_, text)] = add(check, TRACK | {"userId": "ann@example.com"}, arrivals=[5_000])
    assert "ann" not in text
    assert "an… (15 characters)" in text


def test_a_file_has_no_late_events():
    check = new_check(from_kafka=False, preset="segment")
    assert add(check, TRACK) == [
        ("p:7", "step 0 time 1970-01-01T00:00:05Z user us… (6 characters) item Paid")
    ]
    assert check.report().late is None


def test_a_sample_that_fits_has_no_warnings():
    records = [TRACK | {"userId": f"u-{number}"} for number in range(30)]
    assert warnings(*records) == []
    assert warnings() == []


@pytest.mark.parametrize(
    ("events", "setting", "names"),
    [
        ({"user": "user_id"}, "events.user", "user_id"),
        ({"user": ["user_id", "uid"]}, "events.user", "user_id, uid"),
        ({"item": "{event}@{release}"}, "events.item", "release"),
        ({"item": ["{event}@{release}", "name"]}, "events.item", "release, name"),
        ({"time": "at"}, "events.time", "at"),
        ({"where": [{"field": "kind", "exists": True}]}, "events.where", "kind"),
    ],
)
def test_a_path_that_never_matches(events, setting, names):
    assert f"{setting}: none of the 1 records has {names}" in warnings(TRACK, **events)


def test_one_of_several_paths_is_enough():
    assert warnings(TRACK, user=["user_id", "userId"], item=["{event}@{release}", "event"]) == []


def test_items_that_are_unique():
    records = [TRACK | {"userId": f"u-{n}", "event": f"Paid {n}"} for n in range(20)]
    [warning] = warnings(*records)
    assert warning.startswith("20 of 20 events have an item that no other event has: ")
    assert warnings(*records[:19]) == []


def test_a_single_user():
    [warning] = warnings(*[TRACK] * 20)
    assert warning.startswith("all events are of the same user: ")


def test_items_that_look_personal():
    records = [TRACK | {"event": "to ann@example.com"}, TRACK | {"event": "Paid 123456789"}, TRACK]
    mail, number = warnings(*records)
    assert mail == (
        "1 of 3 items seem to contain an e-mail address: choose a field without personal data; "
        "for example to ann@example.com"
    )
    assert number.startswith("1 of 3 items seem to contain a long number: ")


def test_fields_of_records_are_used():
    class Stored:
        def keys(self):
            return [b"key-1"]

    sample = Batch("0", np.array([3]), [json.dumps(TRACK).encode()], np.array([5_000]), Stored())
    [outcome] = new_check(preset="segment", user="$key").add(sample, NOW)
    assert "user ke… (5 characters)" in outcome.text
