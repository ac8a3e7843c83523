"""docs/connect.md: its settings make of its records what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

from streamer.config import load
from streamer.service.event_check import EventCheck
from streamer.stream.intake import Batch
from streamer.stream.presets import PRESETS

TEXT = (Path(__file__).parent.parent / "docs" / "connect.md").read_text(encoding="utf-8")
SECTIONS = [part for part in re.split(r"^##+ ", TEXT, flags=re.MULTILINE) if "```yaml" in part]


def block(section, language):
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split("\n")[0])
def test_its_settings_make_of_its_records_what_it_says(section, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(block(section, "yaml"))
    check = EventCheck(load({}, path), from_kafka=True)
    arrival = 1_767_225_614_000
    record = block(section, "json").strip().encode()
    sample = Batch("0", np.array([0]), [record], np.array([arrival]))
    [outcome] = check.add(sample, arrival)
    assert outcome.text == block(section, "text").strip()
    assert check.report().warnings == []


def test_every_preset_has_an_example():
    assert {preset for preset in PRESETS if f"  preset: {preset}\n" in TEXT} == set(PRESETS)
