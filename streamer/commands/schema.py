"""`streamer schema`: the contracts of events and records, for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Contract(StrEnum):
    """What can be described."""

    EVENT = "event"
    RESULT = "result"
    STEP = "step"
    REJECTED = "rejected"


def schema_command(
    contract: Annotated[
        Contract | None, typer.Argument(help="One of them; all if not given.")
    ] = None,
) -> None:
    """Print the JSON Schema of the event and of the records that are published."""
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
    schema = msgspec.json.schema(types[contract])
    described: dict[str, Any] = schema["$defs"][name]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
