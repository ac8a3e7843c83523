"""Presets on records as the projects document them; the values are our own.

Documented in: RudderStack's event specification (common fields, track), Segment's spec (common
fields, track), the schema of the events topic in sentry-kafka-schemas, and Snowplow's atomic
fields with the JSON of its analytics SDKs.
"""

import json

import pytest

from streamer.stream.decoding import Limits
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.paths import Path, Template
from streamer.stream.presets import PRESETS
from streamer.stream.reasons import Reason
from streamer.stream.timing import StepTiming

MOMENT = 1_767_225_612_345  # 2026-01-01T00:00:12.345Z
RUDDERSTACK = {
    "anonymousId": "a-7",
    "channel": "mobile",
    "context": {
        "app": {"build": "1", "name": "Shop", "namespace": "com.example.shop", "version": "2.4.0"},
        "device": {"id": "d-1", "manufacturer": "Example", "model": "E1", "type": "Android"},
        "library": {"name": "com.rudderstack.android.sdk.core", "version": "1.20.1"},
        "traits": {"anonymousId": "a-7", "email": "ann@example.com"},
    },
    "event": "Checkout Failed",
    "integrations": {"All": True},
    "messageId": "1767225612345-6a1d",
    "originalTimestamp": "2026-01-01T00:09:12.345Z",
    "properties": {"review_body": "late again", "total": 12.5},
    "receivedAt": "2026-01-01T00:00:13.100Z",
    "sentAt": "2026-01-01T00:09:13.100Z",
    "timestamp": "2026-01-01T00:00:12.345Z",
    "type": "track",
    "userId": "",
}
SEGMENT = {
    "anonymousId": "a-8",
    "context": {
        "active": True,
        "app": {"name": "Shop", "version": "545", "build": "3.0.1.545"},
        "ip": "192.0.2.1",
        "page": {"path": "/orders/17", "url": "https://shop.example.com/orders/17"},
    },
    "event": "User Registered",
    "integrations": {"All": True},
    "messageId": "022bb90c-bbac-11e4-8dfc-aa07a5b093db",
    "properties": {"plan": "Pro Annual"},
    "receivedAt": "2026-01-01T00:00:13.909Z",
    "sentAt": "2026-01-01T00:00:13.707Z",
    "timestamp": "2026-01-01T00:00:12.345Z",
    "type": "track",
    "userId": "u-8",
    "version": "1.1",
}
SENTRY = [
    2,
    "insert",
    {
        "group_id": 4,
        "event_id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "organization_id": 1,
        "project_id": 2,
        "message": "Cannot read order 17 of ann@example.com",
        "platform": "python",
        "datetime": "2026-01-01T00:00:12.345000Z",
        "data": {
            "exception": {
                "values": [
                    {"type": "KeyError", "value": "17", "stacktrace": {"frames": []}},
                    {"type": "OrderError", "value": "order 17", "module": "shop.orders"},
                ]
            },
            "level": "error",
            "release": "shop@2.4.0",
            "tags": [["environment", "production"], ["level", "error"]],
            "timestamp": 1767225612.345,
            "type": "error",
            "user": {"id": "u-9", "email": "ann@example.com", "ip_address": "192.0.2.1"},
        },
        "primary_hash": "00" * 16,
        "retention_days": 90,
    },
    {"is_new": False, "queue": "post_process_errors", "skip_consume": False},
]
SNOWPLOW = {
    "app_id": "shop",
    "platform": "web",
    "etl_tstamp": "2026-01-01T00:00:15.000Z",
    "collector_tstamp": "2026-01-01T00:00:14.000Z",
    "dvce_created_tstamp": "2026-01-01T00:09:12.345Z",
    "derived_tstamp": "2026-01-01T00:00:12.345Z",
    "event": "unstruct",
    "event_id": "c6ef3124-b53a-4b13-a233-0088f79dcbcb",
    "event_name": "checkout_failed",
    "user_id": None,
    "domain_userid": "bc2e92ec6c204a14",
    "network_userid": "ecdff4d0-9175-40ac-a8bb-325c49733607",
    "page_url": "https://shop.example.com/orders/17",
    "unstruct_event_com_example_checkout_failed_1": {"order": 17},
}


def decode(preset, *records):
    decoder = MappedDecoder(PRESETS[preset], JsonReader, StepTiming(1000), Limits())
    return decoder.decode([json.dumps(record).encode() for record in records], None)


def sentry(**data):
    """A Sentry record with other data."""
    event = SENTRY[2] | {"data": SENTRY[2]["data"] | data}
    return [*SENTRY[:2], event, SENTRY[3]]


@pytest.mark.parametrize(
    ("preset", "record", "user", "items"),
    [
        ("rudderstack", RUDDERSTACK, "a-7", ["Checkout Failed"]),
        ("rudderstack", RUDDERSTACK | {"userId": "u-7"}, "u-7", ["Checkout Failed"]),
        ("segment", SEGMENT, "u-8", ["User Registered"]),
        ("segment", SEGMENT | {"userId": None}, "a-8", ["User Registered"]),
        ("sentry", SENTRY, "u-9", ["KeyError@shop@2.4.0", "OrderError@shop@2.4.0"]),
        ("sentry", sentry(release=None), "u-9", ["KeyError", "OrderError"]),
        ("sentry", sentry(user={"id": 9}), "9", ["KeyError@shop@2.4.0", "OrderError@shop@2.4.0"]),
        ("snowplow-json", SNOWPLOW, "bc2e92ec6c204a14", ["checkout_failed"]),
        ("snowplow-json", SNOWPLOW | {"user_id": "u-10"}, "u-10", ["checkout_failed"]),
    ],
)
def test_what_a_record_becomes(preset, record, user, items):
    decoded = decode(preset, record)
    assert (decoded.items, decoded.rejections, decoded.ignored) == (items, [], 0)
    assert set(decoded.users) == {user}
    assert set(decoded.times.tolist()) == {MOMENT}


def test_without_a_corrected_time_that_of_the_device_counts():
    [time] = decode("rudderstack", RUDDERSTACK | {"timestamp": None}).times.tolist()
    assert time == MOMENT + 540_000


@pytest.mark.parametrize(
    ("preset", "record"),
    [
        ("rudderstack", RUDDERSTACK | {"type": "identify"}),
        ("segment", SEGMENT | {"type": "page", "name": "Home"}),
        ("sentry", [2, "end_delete_groups", {"transaction_id": "1", "project_id": 2}]),
        ("sentry", sentry(exception=None, logentry={"formatted": "token of ann expired"})),
    ],
)
def test_what_is_no_event_to_count_is_ignored(preset, record):
    decoded = decode(preset, record)
    assert (decoded.users, decoded.rejections, decoded.ignored) == ([], [], 1)


@pytest.mark.parametrize(
    ("preset", "record"),
    [
        ("rudderstack", RUDDERSTACK | {"anonymousId": None}),
        ("snowplow-json", SNOWPLOW | {"domain_userid": None, "network_userid": None}),
        ("sentry", sentry(user={"ip_address": "192.0.2.1"}, exception={"values": [{"type": "E"}]})),
    ],
)
def test_an_event_of_nobody_is_rejected(preset, record):
    assert [each.reason for each in decode(preset, record).rejections] == [Reason.MISSING_USER]


@pytest.mark.parametrize("preset", PRESETS)
def test_no_item_is_a_message_a_stack_trace_or_an_address(preset):
    names = set()
    for item in PRESETS[preset].item:
        places = item.places if isinstance(item, Template) else (item,)
        names |= {part for place in places if isinstance(place, Path) for part in place.parts}
    forbidden = {"message", "value", "stacktrace", "logentry", "formatted", "title", "culprit"}
    assert not names & (forbidden | {"page_url", "url", "path", "email", "properties"})
