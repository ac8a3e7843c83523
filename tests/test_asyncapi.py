"""docs/asyncapi.yaml describes the topics as the program has them."""

from pathlib import Path

import pytest
import yaml

from streamer.commands.schema import Contract, schema_of
from streamer.settings import KafkaSettings

DOCUMENT = yaml.safe_load((Path(__file__).parent.parent / "docs" / "asyncapi.yaml").read_text())
SCHEMAS = {"event": "Event", "result": "Result", "step": "Step", "rejected": "Rejected"}


@pytest.mark.parametrize("contract", list(Contract))
def test_its_schemas_are_those_that_the_program_prints(contract):
    printed = schema_of(contract)
    del printed["$schema"]
    assert DOCUMENT["components"]["schemas"][SCHEMAS[contract]] == printed


def test_its_addresses_are_the_default_topics():
    addresses = {name: channel["address"] for name, channel in DOCUMENT["channels"].items()}
    defaults = KafkaSettings()
    assert addresses == {
        "events": defaults.events_topic,
        "hitters": defaults.hitters_topic,
        "steps": defaults.steps_topic,
        "rejected": defaults.rejected_topic,
    }
