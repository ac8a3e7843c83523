"""From settings to the decoder of events."""

from __future__ import annotations

from dataclasses import replace

from streamer.errors import SettingError
from streamer.event_settings import ConditionSettings, EventsSettings
from streamer.settings import Settings
from streamer.stream.conditions import Condition, Exists, InRange, OneOf, Test
from streamer.stream.decoding import Decoder, Limits
from streamer.stream.event_times import TimeFormat
from streamer.stream.events import EventDecoder
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.mapping import (
    CONTRACT,
    TIMESTAMP,
    Mapping,
    item_places,
    single_place,
    time_places,
    user_places,
)
from streamer.stream.muting import Muting
from streamer.stream.paths import RecordField
from streamer.stream.presets import PRESETS
from streamer.stream.timing import StepTiming


def decoder_of(settings: Settings, timing: StepTiming, from_kafka: bool) -> Decoder:
    """Decodes records as the settings describe them. `from_kafka`: records have keys, headers and
    timestamps; lines have none."""
    events, stream = settings.events, settings.stream
    limits = Limits(stream.max_record_bytes, stream.max_user_bytes, stream.max_item_bytes)
    mapping = mapping_of(events)
    if not from_kafka:
        _refuse_record_fields(mapping, events)
    decoder: Decoder
    if mapping == CONTRACT:
        decoder = EventDecoder(timing, limits)
    else:
        decoder = MappedDecoder(mapping, JsonReader, timing, limits)
    return Muting(decoder, _muted(events)) if events.ignore_items else decoder


def mapping_of(events: EventsSettings) -> Mapping:
    """The preset's mapping, or that of the event contract; with what the settings replace in it."""
    mapping = PRESETS[events.preset] if events.preset else CONTRACT
    if events.user is not None:
        mapping = replace(mapping, user=user_places(_texts("events.user", events.user)))
    if events.item is not None:
        mapping = replace(mapping, item=item_places(_texts("events.item", events.item)))
    if events.time is not None:
        mapping = replace(mapping, time=time_places(_texts("events.time", events.time)))
    if events.time_format is not None:
        mapping = replace(mapping, time_format=TimeFormat(events.time_format))
    if events.where is not None:
        mapping = replace(mapping, where=tuple(map(_condition, events.where)))
    return mapping


def _texts(setting: str, given: str | tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        raise SettingError(setting, "empty", "name a path, or omit it")
    return (given,) if isinstance(given, str) else given


def _condition(given: ConditionSettings) -> Condition:
    place = single_place("events.where", given.field)
    test: Test
    if given.exists is not None:
        test = Exists(given.exists)
    elif given.one_of is not None:
        test = OneOf(given.one_of)
    elif given.equals is not None:
        test = OneOf((given.equals,))
    else:
        test = InRange(given.at_least, given.at_most)
    return Condition(place, test)


def _muted(events: EventsSettings) -> tuple[str, ...]:
    if "" in events.ignore_items or "*" in events.ignore_items:
        raise SettingError(
            "events.ignore_items",
            ", ".join(events.ignore_items),
            "name items, or beginnings of items with * behind them",
        )
    return events.ignore_items


def _refuse_record_fields(mapping: Mapping, events: EventsSettings) -> None:
    fields = [place.text for place in mapping.places if isinstance(place, RecordField)]
    if TIMESTAMP in _texts("events.time", events.time or "time"):
        fields.append(TIMESTAMP)
    if fields:
        raise SettingError(
            "events",
            fields[0],
            "only records of Kafka have it; name a field of the event, or read a topic",
        )
