"""`streamer audit`."""

import json

import pytest

from streamer.experiments import audit as audit_room
from streamer.experiments.audit import Audit, Finding, NoiseFinding

pytestmark = pytest.mark.slow

STRONG = ("--delta", 0.01, "--contributions", 1, "--period", 50, "--trials", 60_000)


@pytest.mark.parametrize(("calibration", "least"), [("exact", 0.3), ("horizon", 0.1)])
def test_its_json_has_the_fields_of_the_contract(run, calibration, least):
    result = run("audit", *STRONG, "--calibration", calibration, "--json")
    report = json.loads(result.out)
    assert result.code == 0
    assert set(report) >= {"epsilon", "delta", "attacks"}
    assert all(set(a) >= {"name", "epsilon_lost", "trials"} for a in report["attacks"])
    assert not any(attack["broken"] for attack in report["attacks"])
    assert report["noise"]["narrower"] is False
    assert all(0 <= attack["epsilon_lost"] <= 1 for attack in report["attacks"])
    assert max(attack["epsilon_lost"] for attack in report["attacks"]) > least


def test_declared_items_and_several_at_once_are_attacked(run):
    given = ("--items-per-step", 2, "--declared", 5, "--trials", 2000)
    report = json.loads(run("audit", *STRONG[:-2], *given, "--json").out)
    assert "declared items" in [attack["name"] for attack in report["attacks"]]


def test_it_prints_a_table_for_people(run):
    result = run("audit", *STRONG)
    assert "No attack broke the promise." in result.out
    assert "The noise is not narrower than planned" in result.out


def found(broken=False, share_of_small_noise=0.5):
    finding = Finding("an attack", 0.1, 1000, 0.0, 0.09, 0.08, broken)
    return Audit((finding,), NoiseFinding(31.4, 21, share_of_small_noise, 0.5))


def test_a_broken_promise_ends_with_exit_code_1_and_names_the_attack(run, monkeypatch):
    monkeypatch.setattr(audit_room, "audit", lambda *_, **__: found(broken=True))
    result = run("audit", *STRONG)
    assert result.code == 1
    assert "The promise was broken by: an attack." in result.out


def test_noise_narrower_than_planned_ends_with_exit_code_1(run, monkeypatch):
    monkeypatch.setattr(audit_room, "audit", lambda *_, **__: found(share_of_small_noise=0.6))
    result = run("audit", *STRONG)
    assert result.code == 1
    assert "No attack broke the promise." in result.out
    assert "The noise is narrower than planned" in result.out
    report = json.loads(run("audit", *STRONG, "--json").out)
    assert report["noise"]["narrower"] is True


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
