"""`streamer audit`."""

import json

import pytest

from streamer.experiments import audit as audit_room
from streamer.experiments.audit import Finding

pytestmark = pytest.mark.slow

STRONG = ("--delta", 0.01, "--contributions", 1, "--period", 50, "--trials", 60_000)


def test_its_json_has_the_fields_of_the_contract(run):
    result = run("audit", *STRONG, "--json")
    report = json.loads(result.out)
    assert result.code == 0
    assert set(report) == {"epsilon", "delta", "attacks"}
    assert all(set(a) == {"name", "epsilon_lost", "trials"} for a in report["attacks"])
    assert all(0 <= attack["epsilon_lost"] <= 1 for attack in report["attacks"])
    assert max(attack["epsilon_lost"] for attack in report["attacks"]) > 0.3


def test_replacing_a_history_is_no_attack_on_add_remove_neighbours(run):
    names = {
        neighbours: {
            attack["name"]
            for attack in json.loads(
                run("audit", *STRONG, "--neighbours", neighbours, "--json").out
            )["attacks"]
        }
        for neighbours in ("replace", "add-remove")
    }
    assert names["replace"] - names["add-remove"] == {"one history replaced by another"}


def test_it_prints_a_table_for_people(run):
    result = run("audit", *STRONG)
    assert "No violation found." in result.out


def test_a_broken_promise_ends_with_exit_code_1(run, monkeypatch):
    lost = [Finding("an attack", 1.5, 1000)]
    monkeypatch.setattr(audit_room, "audit", lambda *_, **__: lost)
    result = run("audit", *STRONG)
    assert result.code == 1
    assert "The guarantee is broken." in result.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--trials", "1"], "trials is 1"),
        (["--delta", "2"], "delta is 2.0"),
        (["--threshold", "5"], "threshold is 5"),
        (["--domain", "half"], "--domain"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_the_setting(run, arguments, complaint):
    result = run("audit", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
    assert result.err.count("\n") == 1
