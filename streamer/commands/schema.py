"""`streamer schema`: JSON Schemas of events and records."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Contract(StrEnum):
    """What has a schema."""

    EVENT = "event"
    RESULT = "result"
    STEP = "step"
    REJECTED = "rejected"


def schema_command(
    contract: Annotated[
        Contract | None, typer.Argument(help="Which schema to print.", show_default="all")
    ] = None,
) -> None:
    """Print the JSON Schemas of events and of published records."""
    from streamer.commands.output import print_json

    print_json(schema_of(contract) if contract else {one.value: schema_of(one) for one in Contract})


def schema_of(contract: Contract) -> dict[str, Any]:
    import msgspec

    from streamer.stream.events import Event
    from streamer.stream.records import RejectedRecord, ResultRecord, StepRecord

    types = {
        Contract.EVENT: Event,
        Contract.RESULT: ResultRecord,
        Contract.STEP: StepRecord,
        Contract.REJECTED: RejectedRecord,
    }
    name = types[contract].__name__
    definitions = msgspec.json.schema(types[contract])["$defs"]
    described: dict[str, Any] = definitions[name]
    for field in described["properties"].values():
        if "$ref" in field:  # an enumeration: written in its place, so that a schema is complete
            field["enum"] = definitions[field.pop("$ref").rpartition("/")[2]]["enum"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
