"""Mappings for what common programs write to Kafka.

Items are names that developers chose: of an event, of an exception's class. Never a message, a
stack trace or a URL: they contain personal data, and hardly two of them are equal.
"""

from __future__ import annotations

from streamer.stream.conditions import Condition, Exists, OneOf
from streamer.stream.event_times import TimeFormat
from streamer.stream.mapping import Mapping, item_places, single_place, time_places, user_places

_TRACK_CALLS = Mapping(
    user_places(["userId", "anonymousId"]),
    item_places(["event"]),
    # `timestamp` is corrected for clocks of devices that are wrong, `originalTimestamp` is not.
    time_places(["timestamp", "originalTimestamp"]),
    where=(Condition(single_place("events.where", "type"), OneOf(("track",))),),
)
"""RudderStack and Segment share the fields of their event specifications."""

PRESETS = {
    "rudderstack": _TRACK_CALLS,
    "segment": _TRACK_CALLS,
    # The events topic of Sentry: [2, "insert", {..., "data": {the event}}, ...].
    "sentry": Mapping(
        user_places(["2.data.user.id", "2.data.user.username"]),
        item_places(
            [
                "{2.data.exception.values.*.type}@{2.data.release}",
                "2.data.exception.values.*.type",
            ]
        ),
        time_places(["2.datetime"]),
        TimeFormat.ISO,
        (
            Condition(single_place("events.where", "1"), OneOf(("insert",))),
            Condition(single_place("events.where", "2.data.exception"), Exists(True)),
        ),
    ),
    # Enriched events as the analytics SDKs turn them into JSON.
    "snowplow-json": Mapping(
        user_places(["user_id", "domain_userid", "network_userid"]),
        item_places(["event_name"]),
        time_places(["derived_tstamp", "collector_tstamp"]),
        TimeFormat.ISO,
    ),
}
