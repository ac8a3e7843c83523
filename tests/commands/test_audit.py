"""`streamer audit`."""

import json

import pytest

from streamer.experiments import audit as audit_room
from streamer.experiments.audit import Audit, Finding, NoiseFinding

pytestmark = pytest.mark.slow

# Where the attacks are strong: one contribution with Laplace noise, ample ones with Gaussian.
EXACT = ("--calibration", "exact", "--contributions", 1, "--period", 50)
HORIZON = ("--calibration", "horizon", "--contributions", 2, "--period", 10)


@pytest.mark.parametrize("chosen", [EXACT, HORIZON], ids=["exact", "horizon"])
def test_its_json_has_the_fields_of_the_contract(run, chosen):
    given = ("--delta", 0.01, "--items-per-step", 1, "--trials", 20_000)
    result = run("audit", *chosen, *given, "--json")
    report = json.loads(result.out)
    assert result.code == 0
    assert set(report) >= {"epsilon", "delta", "attacks"}
    assert all(set(a) >= {"name", "epsilon_lost", "trials"} for a in report["attacks"])
    assert not any(attack["broken"] for attack in report["attacks"])
    assert report["noise"]["narrower"] is False
    assert all(0 <= attack["epsilon_lost"] <= 1 for attack in report["attacks"])
    assert max(attack["epsilon_lost"] for attack in report["attacks"]) > 0.3


def test_declared_items_and_several_at_once_are_attacked(run):
    given = ("--delta", 0.01, "--period", 2, "--declared", 5, "--items-per-step", 2)
    report = json.loads(run("audit", *given, "--trials", 1000, "--json").out)
    assert "declared items" in [attack["name"] for attack in report["attacks"]]


def found(broken=False, share_of_small_noise=0.5):
    finding = Finding("an attack", 0.1, 1000, 0.0, 0.09, 0.08, broken)
    return Audit((finding,), NoiseFinding(31.4, 21, share_of_small_noise, 0.5))


@pytest.fixture
def audited(run, monkeypatch):
    """The command for an audit with this result, whatever it is given."""

    def audited_as(result, *arguments):
        monkeypatch.setattr(audit_room, "audit", lambda *_, **__: result)
        return run("audit", "--period", 3, "--items-per-step", 1, *arguments)

    return audited_as


def test_it_prints_a_table_for_people(audited):
    result = audited(found())
    assert result.code == 0
    assert "an attack" in result.out
    assert "No attack broke the promise." in result.out
    assert "The noise is not narrower than planned" in result.out


def test_a_broken_promise_ends_with_exit_code_1_and_names_the_attack(audited):
    result = audited(found(broken=True))
    assert result.code == 1
    assert "The promise was broken by: an attack." in result.out


def test_noise_narrower_than_planned_ends_with_exit_code_1(audited):
    result = audited(found(share_of_small_noise=0.6))
    assert result.code == 1
    assert "No attack broke the promise." in result.out
    assert "The noise is narrower than planned" in result.out
    report = json.loads(audited(found(share_of_small_noise=0.6), "--json").out)
    assert report["noise"]["narrower"] is True


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--trials", "1"], "trials is 1"),
        (["--delta", "2"], "delta is 2.0"),
        (["--threshold", "5", "--period", "3"], "threshold is 5"),
        (["--domain", "half"], "--domain"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_the_setting(run, arguments, complaint):
    result = run("audit", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
    assert result.err.count("\n") == 1
