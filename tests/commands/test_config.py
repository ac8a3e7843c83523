"""`streamer config`."""

import json

import pytest
import yaml

from streamer.settings import SECTIONS

SECRET = "5ec4e7" * 11


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("privacy: {epsilon: 2}\nstream: {step_seconds: 5}\n")
    return path


def test_it_prints_what_is_in_effect(run, file, monkeypatch):
    monkeypatch.setenv("STREAMER_STREAM__STEP_SECONDS", "7")
    printed = json.loads(run("config", "--config", file, "--json").out)
    assert printed["privacy"]["epsilon"] == 2.0
    assert printed["stream"]["step_seconds"] == 7.0
    assert set(printed) == set(SECTIONS)


def test_what_it_prints_can_be_read_again(run, file, tmp_path):
    first = run("config", "--config", file).out
    assert first.startswith("# In the environment: STREAMER_SECTION__NAME")
    again = tmp_path / "again.yaml"
    again.write_text(first)
    assert run("config", "--config", again).out == first
    assert yaml.safe_load(first)["privacy"]["epsilon"] == 2.0


def test_every_setting_stands_under_its_description(run):
    printed = run("config").out
    for section, model in SECTIONS.items():
        for name, field in model.model_fields.items():
            assert f"\n  # {field.description}\n  {name}: " in printed, (section, name)


@pytest.mark.parametrize(
    "value", [", ".join(["a:1"] * 50), "two\nlines", "# no comment", "'\"", " "]
)
def test_a_strange_value_can_be_read_again(run, monkeypatch, value):
    monkeypatch.setenv("STREAMER_KAFKA__BOOTSTRAP_SERVERS", value)
    printed = yaml.safe_load(run("config").out)
    assert printed == json.loads(run("config", "--json").out)
    assert printed["kafka"]["bootstrap_servers"] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PRIVACY__EPSILON", "500"), ("STREAM__EPOCH", "yesterday")),
        ("STREAM__START", "yesterday"),
    ],
)
def test_what_run_would_refuse_is_refused(run, monkeypatch, name, value):
    monkeypatch.setenv(f"STREAMER_{name}", value)
    refused = run("config")
    assert refused.code == 2
    assert name.split("__")[1].lower() in refused.err


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("name", ["PRIVACY__KEY", "KAFKA__SASL_PASSWORD"])
def test_it_masks_secrets(run, monkeypatch, name, form):
    monkeypatch.setenv(f"STREAMER_{name}", SECRET)
    result = run("config", *form)
    assert result.code == 0
    assert SECRET not in result.out + result.err
    assert "****" in result.out


def test_wrong_settings_are_a_sentence_each(run, monkeypatch):
    monkeypatch.setenv("STREAMER_PRIVACY__EPSILON", "much")
    monkeypatch.setenv("STREAMER_STREAM__STEP_SECONDS", "0")
    result = run("config")
    assert result.code == 2
    assert result.out == ""
    one, two = result.err.splitlines()
    assert one.startswith("streamer: stream.step_seconds is 0: ")
    assert two.startswith("streamer: privacy.epsilon is much: ")
