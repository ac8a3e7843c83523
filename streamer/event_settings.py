"""The settings of events: what records look like."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from streamer.declarations import Section, setting


class ConditionSettings(BaseModel):
    """A condition on one field of an event. `at_least` and `at_most` may stand together."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    field: str = ""
    equals: str | int | float | bool | None = None
    one_of: tuple[str | int | float | bool, ...] | None = None
    at_least: int | float | None = None
    at_most: int | float | None = None
    exists: bool | None = None

    @model_validator(mode="after")
    def _check_tests(self) -> Self:
        if not self.field:
            raise PydanticCustomError("condition", "a condition needs a field")
        tests = self.model_fields_set - {"field"}
        if len(tests - {"at_least", "at_most"}) + bool(tests & {"at_least", "at_most"}) != 1:
            raise PydanticCustomError(
                "condition",
                "a condition needs one of equals, one_of, at_least and at_most, or exists beside "
                "its field",
            )
        return self


class EventsSettings(Section):
    """What records look like: where the user, the item and the time of an event are."""

    format: Literal["json"] = setting("json", "The format of records.")
    preset: Literal["rudderstack", "segment", "sentry", "snowplow-json"] | None = setting(
        None,
        "What writes the records: sets user, item, time, time_format and where for it. Each of "
        "these that is set replaces that of the preset.",
    )
    user: str | tuple[str, ...] | None = setting(
        None,
        "The path of the user's id, such as context.device.id; of a list of paths, the first that "
        "is there counts. By default user.",
    )
    item: str | tuple[str, ...] | None = setting(
        None,
        "The path of the item, or a template of several fields such as {type}@{release}; of a "
        "list, the first that is there counts. By default item.",
    )
    time: str | tuple[str, ...] | None = setting(
        None,
        "The path of the event's time, or several; $timestamp is the record's own. By default "
        "time.",
    )
    time_format: Literal["auto", "iso", "posix", "millis", "micros", "nanos"] | None = setting(
        None,
        "How times are written: iso (ISO 8601 with an offset), or a number of seconds (posix), "
        "millis, micros or nanos since 1970. By default auto: iso or millis.",
    )
    where: tuple[ConditionSettings, ...] | None = setting(
        None,
        "Only events for which all of these conditions hold count; others are ignored. Each has a "
        "field, and equals, one_of, at_least and at_most, or exists.",
    )
    ignore_items: tuple[str, ...] = setting(
        (),
        "Items that do not count and cost no budget; with * at the end, all that begin so, such as "
        "debug:*.",
    )
