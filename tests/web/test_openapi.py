"""docs/openapi.yaml describes the API as it is served."""

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from streamer.web import answers, public
from streamer.web.ground_truth import TrueStep, Truth, TruthAnswer
from tests.web.making import Reader, new_stream, serving
from tests.web.test_public import client_of

ROOT = Path(__file__).parents[2]
DOCUMENT = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
TOPICS = yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text())
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
TYPES = {
    "Current": answers.Current,
    "Steps": answers.Steps,
    "Promise": answers.Promise,
    "Published": answers.Published,
    "Refusal": answers.Refusal,
    "TruthAnswer": TruthAnswer,
}


def stream_and_truth():
    stream = new_stream()
    stream.step(a=100, b=90)
    stream.report({"a": 100}, skipping=200)
    return stream, Truth()


def name_in(content):
    return content["application/json"]["schema"]["$ref"].rpartition("/")[2]


def paths_served(truth):
    app = public.public_app(new_stream().board, truth)
    return {route.path for route in app.routes if route.path.startswith("/api/")}


def test_its_schemas_are_those_of_the_answers():
    _, schemas = msgspec.json.schema_components(
        TYPES.values(), ref_template="#/components/schemas/{name}"
    )
    assert DOCUMENT["components"]["schemas"] == json.loads(msgspec.json.encode(schemas))


def test_its_paths_are_those_that_are_served():
    assert set(DOCUMENT["paths"]) == paths_served(Truth())
    assert set(DOCUMENT["paths"]) - {"/api/truth"} == paths_served(None)


@pytest.mark.parametrize("document", [DOCUMENT, TOPICS], ids=["api", "topics"])
def test_a_contract_has_the_version_that_its_changes_are_in(document):
    assert document["info"]["version"] == re.search(r"^## \[(.+?)\]", CHANGELOG, re.M)[1]


def test_its_limits_are_those_that_hold():
    [_, limit, _] = DOCUMENT["paths"]["/api/steps"]["get"]["parameters"]
    assert limit["schema"]["maximum"] == public.LARGEST_ANSWER
    assert limit["schema"]["default"] == public.STEPS


@pytest.mark.parametrize("path", ["/api/hitters", "/api/steps", "/api/guarantee", "/api/truth"])
async def test_what_is_served_is_what_it_describes(path):
    stream, truth = stream_and_truth()
    truth.tell(TrueStep(202, {"a": 99, "c": 3}, 5, 4))
    async with client_of(stream.board, truth) as client:
        answer = await client.get(path)
        described = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
        check(answer.json(), TYPES[name_in(described)])
        refused = await client.get(path, params={"nonsense": 1})
        described = DOCUMENT["paths"][path]["get"]["responses"]["400"]["content"]
        check(refused.json(), TYPES[name_in(described)])


async def test_events_are_what_it_describes():
    stream, _ = stream_and_truth()
    described = DOCUMENT["paths"]["/api/events"]["get"]
    content = described["responses"]["200"]["content"]["text/event-stream"]["x-data"]
    async with serving(stream.board) as server, Reader.on(server.port, since=0) as reader:
        for event in ("guarantee", "published"):
            message = await reader.message()
            assert message["event"] == event
            check(message["data"], TYPES[content[event]["$ref"].rpartition("/")[2]])
    told = set(re.findall(r"`(\w+)`", described["description"]))
    assert told == {"guarantee", "published", "reset", "alive"}


def check(found, described):
    """It has the fields that are described, and no others."""
    made = msgspec.convert(found, described)
    assert json.loads(msgspec.json.encode(made)) == found
