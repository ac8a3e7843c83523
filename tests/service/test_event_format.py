"""From the settings of events to a decoder; mistakes are one sentence each."""

import json
from typing import get_args

import pytest

from streamer.config import load
from streamer.errors import ConfigurationError, SettingError
from streamer.event_settings import EventsSettings
from streamer.service.event_format import decoder_of
from streamer.settings import Settings
from streamer.stream.event_times import TimeFormat
from streamer.stream.events import EventDecoder
from streamer.stream.presets import PRESETS
from streamer.stream.timing import StepTiming

TIMING = StepTiming(1000)


def decoder(from_kafka=True, **events):
    return decoder_of(Settings(events=EventsSettings(**events)), TIMING, from_kafka)


def decoded(record, **events):
    return decoder(**events).decode([json.dumps(record).encode()], None)


def refusal(from_kafka=True, **events):
    with pytest.raises(SettingError) as refused:
        decoder(from_kafka, **events)
    return str(refused.value)


def test_without_settings_it_is_the_decoder_of_the_event_contract():
    assert type(decoder()) is EventDecoder
    assert type(decoder(user="user", item=["item"], time_format="auto")) is EventDecoder


def test_every_preset_and_time_format_can_be_named():
    [presets, _] = get_args(EventsSettings.model_fields["preset"].annotation)
    assert set(get_args(presets)) == set(PRESETS)
    [forms, _] = get_args(EventsSettings.model_fields["time_format"].annotation)
    assert set(get_args(forms)) == set(TimeFormat)


def test_a_mapping_of_ten_lines(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(
        """
events:
  user: [userId, anonymousId]
  item: "{exception.type}@{service.version}"
  time: at
  time_format: posix
  where:
    - {field: kind, equals: error}
    - {field: severity, at_least: 17}
  ignore_items: ["Timeout@*"]
"""
    )
    chosen = decoder_of(load({}, path), TIMING, from_kafka=False)
    records = [
        {"anonymousId": "u", "exception": {"type": kind}, "service": {"version": "1"}}
        | {"at": 5, "kind": "error", "severity": severity}
        for kind, severity in (("NPE", 17), ("NPE", 9), ("Timeout", 17))
    ]
    found = chosen.decode([json.dumps(record).encode() for record in records], None)
    assert (found.users, found.items, found.times.tolist()) == (["u"], ["NPE@1"], [5_000])
    assert found.ignored == 2


def test_a_setting_replaces_that_of_the_preset():
    call = {"type": "page", "userId": "u", "name": "Home", "timestamp": "2026-01-01T00:00:12Z"}
    page = [{"field": "type", "equals": "page"}]
    assert decoded(call, preset="segment").ignored == 1
    assert decoded(call, preset="segment", where=page, item="page:{name}").items == ["page:Home"]


def test_muting_needs_no_mapping():
    event = {"user": "u", "item": "debug:x", "time": 5}
    assert decoded(event, ignore_items=["debug:*"]).ignored == 1


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ({"user": "a..b"}, "events.user is a..b: it is not a path; "),
        ({"user": []}, "events.user is empty: "),
        ({"user": ["a", ""]}, "events.user is empty: "),
        ({"user": "v.*.id"}, "events.user is v.*.id: only events.item may name every element"),
        ({"item": "crash{}"}, "events.item is empty: "),
        ({"item": "crash{"}, "events.item is crash{: a template needs fields in braces"),
        ({"item": "$timestamp"}, "events.item is $timestamp: fields of the record are"),
        ({"time": "$offset"}, "events.time is $offset: fields of the record are"),
        ({"where": [{"field": "a.", "equals": 1}]}, "events.where is a.: it is not a path"),
        ({"user": "a.0", "item": "a.b"}, "events is a.b: another path expects something else"),
        ({"ignore_items": ["a", "*"]}, "events.ignore_items is a, *: name items"),
        ({"ignore_items": [""]}, "events.ignore_items is : name items"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(events, sentence):
    assert refusal(**events).startswith(sentence)


@pytest.mark.parametrize(
    ("events", "field"),
    [
        ({"user": "$key"}, "$key"),
        ({"item": "{$header.kind}:{a}"}, "$header.kind"),
        ({"time": ["at", "$timestamp"]}, "$timestamp"),
        ({"where": [{"field": "$header.kind", "exists": True}]}, "$header.kind"),
    ],
)
def test_lines_have_no_fields_of_a_record(events, field):
    decoder(from_kafka=True, **events)
    assert refusal(from_kafka=False, **events) == (
        f"events is {field}: only records of Kafka have it; name a field of the event, or read a "
        "topic"
    )


@pytest.mark.parametrize(
    ("events", "sentences"),
    [
        ({"format": "xml"}, ["events.format is xml: input should be 'json'"]),
        (
            {"preset": "mixpanel"},
            [
                "events.preset is mixpanel: input should be 'rudderstack', 'segment', 'sentry' or "
                "'snowplow-json'"
            ],
        ),
        (
            {"where": [{"equals": "x"}]},
            ["events.where.0 is {'equals': 'x'}: a condition needs a field"],
        ),
        (
            {"where": [{"field": "a"}]},
            [
                "events.where.0 is {'field': 'a'}: a condition needs one of equals, one_of, "
                "at_least and at_most, or exists beside its field"
            ],
        ),
        (
            {"wher": []},
            ["events.wher is not a setting: run 'streamer config' to list all settings"],
        ),
    ],
)
def test_a_wrong_value_is_one_sentence(events, sentences):
    with pytest.raises(ConfigurationError) as refused:
        load({"events": events})
    assert str(refused.value).splitlines() == sentences


@pytest.mark.parametrize("tests", [{"equals": 1, "exists": True}, {"equals": 1, "at_least": 2}])
def test_a_condition_has_one_test(tests):
    with pytest.raises(ConfigurationError, match="a condition needs one of"):
        load({"events": {"where": [{"field": "a", **tests}]}})


def test_paths_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("STREAMER_EVENTS__USER", "context.id")
    monkeypatch.setenv("STREAMER_EVENTS__ITEM", '["a", "b"]')
    monkeypatch.setenv("STREAMER_EVENTS__IGNORE_ITEMS", '["x"]')
    events = load({}).events
    assert (events.user, events.item, events.ignore_items) == ("context.id", ("a", "b"), ("x",))
