"""`streamer check-events`."""

import io
import json
import sys

import pytest

EVENTS = [
    {"user": f"user-{number}", "item": f"item-{number % 3}", "time": 60_000 * number}
    for number in range(30)
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS) + "\nno JSON\n")
    return path


def test_it_shows_what_records_become_and_a_summary(run, source):
    result = run("check-events", "--source", source)
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[1] == (
        "lines:1  step 1 time 1970-01-01T00:01:00Z user us… (6 characters) item item-1"
    )
    assert len([line for line in lines if line.startswith("lines:")]) == 20
    for row in ("records  31", "rejected  not_json 1", "users  30", "items  3", "steps  30"):
        assert any(line.strip() == row for line in lines)


def test_it_prints_json(run, source):
    report = json.loads(run("check-events", "--source", source, "--json").out)
    assert (report["records"], report["events"], report["rejected"]) == (31, 30, {"not_json": 1})
    assert (report["late"], report["warnings"]) == (None, [])


def test_the_sample_has_a_size(run, source):
    report = json.loads(run("check-events", "--source", source, "--records", 5, "--json").out)
    assert report["records"] == 5
    shown = run("check-events", "--source", source, "--show", 0).out
    assert "lines:" not in shown


def test_it_reads_standard_input(run, monkeypatch):
    lines = io.TextIOWrapper(io.BytesIO(b'{"user":"u","item":"x","time":5}\n'))
    monkeypatch.setattr(sys, "stdin", lines)
    assert json.loads(run("check-events", "--source", "-", "--json").out)["events"] == 1


def test_it_uses_the_settings(run, source, tmp_path):
    config = tmp_path / "settings.yaml"
    config.write_text('events: {item: "{item}@{user}", ignore_items: ["item-0*"]}\n')
    report = json.loads(run("check-events", "--source", source, "--config", config, "--json").out)
    assert (report["items"], report["ignored"]) == (20, 10)


def test_it_writes_nothing(run, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("check-events", "--source", source)
    assert list(tmp_path.iterdir()) == [source]


def test_an_item_cannot_control_the_terminal(run, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"user": "u", "item": "\x1b[2J[bold]x", "time": 5}) + "\n")
    assert "item \\x1b[2J[bold]x" in run("check-events", "--source", path).out


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("USER", "$key", "events is $key: only records of Kafka have it"),
        ("ITEM", "a{b", "events.item is a{b: a template needs fields in braces"),
        ("PRESET", "otel", "events.preset is otel: input should be"),
    ],
)
def test_a_mistake_is_one_sentence(run, source, monkeypatch, name, value, sentence):
    monkeypatch.setenv(f"STREAMER_EVENTS__{name}", value)
    result = run("check-events", "--source", source)
    assert result.code == 2
    assert result.err.startswith(f"streamer: {sentence}")
    assert len(result.err.splitlines()) == 1


def test_a_broker_that_is_away_is_one_sentence(run, monkeypatch):
    monkeypatch.setenv("STREAMER_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    result = run("check-events")
    assert (result.code, result.err) == (2, "streamer: no broker answers at 127.0.0.1:1\n")
