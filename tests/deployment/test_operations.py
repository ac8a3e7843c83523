"""docs/operations.md has a section for every alert, and names only what there is."""

import re
from pathlib import Path

from streamer.settings import Settings
from tests.deployment.promql import rules, served
from tests.test_readme import anchors

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "operations.md").read_text()
SECTIONS = {name: field.annotation for name, field in Settings.model_fields.items()}


def test_every_alert_has_its_runbook_and_every_runbook_its_alert():
    told = [rule["annotations"]["runbook_url"] for rule in rules()]
    sections = [anchor for anchor in anchors(TEXT) if anchor.startswith("streamer")]
    assert told == [f"docs/operations.md#{anchor}" for anchor in sections]
    assert sections == [rule["alert"].lower() for rule in rules()]


def test_every_setting_that_is_named_is_one():
    named = re.findall(rf"`({'|'.join(SECTIONS)})\.(\w+)[` ]", TEXT)
    assert len(named) > 10
    for section, name in named:
        assert name in SECTIONS[section].model_fields, f"{section}.{name}"
    for section, name in re.findall(r"STREAMER_([A-Z]+)__([A-Z_]+)", TEXT):
        assert name.lower() in SECTIONS[section.lower()].model_fields


def test_every_metric_that_is_named_is_served():
    named = set(re.findall(r"\bstreamer_\w+[a-z]", TEXT))
    assert named
    assert named <= served().keys()


def test_every_file_that_is_named_is_there():
    named = set(re.findall(r"`(k8s/[\w./-]+)`", TEXT))
    assert named
    for path in named:
        assert (ROOT / path).exists(), path
