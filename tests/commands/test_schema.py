"""`streamer schema`: the contracts, checked against the examples that they promise."""

import json
import re

import msgspec
import pytest

from streamer.commands.schema import Contract
from streamer.stream.events import Event
from streamer.stream.records import RejectedRecord, ResultRecord, StepRecord

EVENT = {"user": "u-17", "item": "crash:NPE:Foo.java:42", "time": "2026-01-01T00:00:12Z"}
SPAN = {"step": 29, "start": "2026-01-01T00:29:00Z", "end": "2026-01-01T00:30:00Z"}
FOUND = {"item": "crash", "estimate": 812, "margin": 61, "threshold": 553}
INTERVAL = {"low": 750, "high": 874}
PROMISED = {"epsilon": 1.0, "delta": 1e-06, "contributions": 3, "period": 0}
RESULT = {**SPAN, **FOUND, **PROMISED}
STEP = {**SPAN, "hitters": 0, "period": 0}
REJECTED = {"topic": "telemetry.events", "partition": 0, "offset": 7, "reason": "not_json"}
STATE = {"state": "new", "since": 3, "valued_at": 3}
GOOD = [
    ("event", EVENT),
    ("event", {**EVENT, "time": 1767225612000}),
    ("event", {"user": "u", "item": "i", "step": 3}),
    ("event", {"user": "u", "item": "i", "unknown": [1]}),
    ("result", RESULT),  # as 0.1.0 wrote it
    ("result", {**RESULT, **INTERVAL}),
    ("result", {**RESULT, **INTERVAL, **STATE}),
    ("result", {**RESULT, **STATE, "state": "gone", **dict.fromkeys(["estimate", *INTERVAL])}),
    ("step", STEP),
    ("step", {**STEP, "first": 3}),
    ("rejected", REJECTED),
    ("rejected", {**REJECTED, "payload": "e30="}),
]
BAD = [
    ("event", {"user": "u"}),
    ("event", {**EVENT, "user": 17}),
    ("event", {**EVENT, "time": 1.5}),
    ("event", {**EVENT, "time": True}),
    ("result", {**RESULT, "estimate": 8.5}),
    *(("result", {**RESULT, **INTERVAL, end: 8.5}) for end in INTERVAL),
    ("result", {**RESULT, **STATE, "state": "unheard-of"}),
    *(("result", {**RESULT, **STATE, name: None}) for name in STATE),
    ("step", {**STEP, "hitters": "none"}),
    *(("result", {key: RESULT[key] for key in RESULT if key != name}) for name in RESULT),
    *(("step", {key: STEP[key] for key in STEP if key != name}) for name in STEP),
]
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "null": type(None),
}
KNOWN = {"type", "properties", "required", "anyOf", "enum"}
SILENT = {"$schema", "title", "description", "examples", "default", "deprecated"}


def valid(schema, value):
    """As much of JSON Schema as the contracts use; anything else in one is a failure."""
    assert set(schema) <= KNOWN | SILENT, set(schema)
    if "anyOf" in schema and not any(valid(each, value) for each in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema and (
        isinstance(value, bool) or not isinstance(value, TYPES[schema["type"]])
    ):
        return False
    return all(name in value for name in schema.get("required", ())) and all(
        valid(each, value[name])
        for name, each in schema.get("properties", {}).items()
        if name in value
    )


@pytest.mark.parametrize(("contract", "example"), GOOD)
def test_the_examples_of_the_contract_are_valid(run, contract, example):
    assert valid(json.loads(run("schema", contract).out), example)


@pytest.mark.parametrize(("contract", "example"), BAD)
def test_what_breaks_the_contract_is_not(run, contract, example):
    assert not valid(json.loads(run("schema", contract).out), example)


@pytest.mark.parametrize(
    ("contract", "kind"),
    [
        ("event", Event),
        ("result", ResultRecord),
        ("step", StepRecord),
        ("rejected", RejectedRecord),
    ],
)
def test_every_field_is_there_and_those_without_a_default_are_required(run, contract, kind):
    schema = json.loads(run("schema", contract).out)
    fields = msgspec.structs.fields(kind)
    assert list(schema["properties"]) == [field.encode_name for field in fields]
    assert schema["required"] == [field.encode_name for field in fields if field.required]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["description"]


@pytest.mark.parametrize(
    ("contract", "fields"), [("result", {**RESULT, **INTERVAL}), ("step", STEP)]
)
def test_each_field_of_the_published_records_is_explained(run, contract, fields):
    properties = json.loads(run("schema", contract).out)["properties"]
    assert set(fields) <= set(properties)
    assert all(re.search(r"\w", each["description"]) for each in properties.values())


def test_the_margin_is_deprecated_and_the_interval_is_not(run):
    properties = json.loads(run("schema", "result").out)["properties"]
    assert [name for name, each in properties.items() if each.get("deprecated")] == ["margin"]
    assert "before selection" in properties["margin"]["description"]
    assert "given that the item was reported" in properties["low"]["description"]


def test_without_a_name_all_are_printed(run):
    printed = json.loads(run("schema").out)
    assert list(printed) == [contract.value for contract in Contract]
    assert {"event", "result", "step"} <= set(printed)
    assert printed["step"] == json.loads(run("schema", "step").out)


def test_an_unknown_name_is_one_sentence(run):
    result = run("schema", "steps")
    assert result.code == 2
    assert result.err.startswith("streamer: ")
    assert len(result.err.splitlines()) == 1
