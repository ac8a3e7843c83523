"""`streamer state`."""

import json

import pytest

EVENTS = [
    {"user": f"user-{number}", "item": "many", "time": 60_000 * step}
    for step in range(3)
    for number in range(2000)
]
RUN = ("--contributions", 2, "--epsilon", 5, "--calibration", "exact")


@pytest.fixture
def journal(run, tmp_path):
    source = tmp_path / "events.jsonl"
    source.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    directory = tmp_path / "journal"
    done = run("run", "--source", source, "--journal", directory, "--sink", tmp_path / "out", *RUN)
    assert done.code == 0
    return directory


def test_it_tells_the_last_step_the_period_and_the_budgets(run, journal):
    facts = json.loads(run("state", "--journal", journal, "--json").out)
    assert facts["ended"] is True
    assert facts["last_step"] == facts["published_step"] == 2
    assert facts["period"] == 0
    assert (facts["users_charged"], facts["users_exhausted"]) == (2000, 2000)
    assert facts["contributions"] == 2
    assert facts["bytes"] > 2000 * 8


def test_it_tells_whether_the_journal_is_ended(run, journal, tmp_path):
    assert "ended  yes: it cannot be continued" in run("state", "--journal", journal).out
    pieces = ("--start", "1970-01-01T00:00:00Z", "--until", "1970-01-01T00:03:00Z")
    places = ("--sink", tmp_path / "other", "--journal", tmp_path / "open")
    run("run", "--source", tmp_path / "events.jsonl", *places, *pieces, *RUN)
    assert "ended  no" in run("state", "--journal", tmp_path / "open").out


def test_it_never_tells_a_user(run, journal):
    told = run("state", "--journal", journal)
    assert "users charged  2,000" in told.out
    assert "user-" not in told.out + told.err


def test_it_changes_nothing(run, journal):
    before = {path.name: path.read_bytes() for path in journal.iterdir()}
    run("state", "--journal", journal)
    assert {path.name: path.read_bytes() for path in journal.iterdir()} == before


def test_a_directory_without_a_journal_is_one_sentence(run, tmp_path):
    result = run("state", "--journal", tmp_path)
    assert result.code == 2
    assert "there is no journal" in result.err


def test_without_a_broker_the_state_topic_cannot_be_told(run, monkeypatch):
    monkeypatch.setenv("STREAMER_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    result = run("state")
    assert result.code == 2
    assert "127.0.0.1:1" in result.err


def test_settings_that_would_do_nothing_are_refused(run, journal, tmp_path):
    result = run("state", "--journal", journal, "--config", tmp_path / "settings.yaml")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("streamer: --config is only for the state topic: ")
