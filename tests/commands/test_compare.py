"""`streamer compare`."""

import json

import pytest

pytestmark = pytest.mark.slow

FIELDS = {"method", "family", "size", "sets", "found", "false_reports", "threshold"}
SMALL = ("--users", 50_000, "--seed", 1)


def test_its_rows_have_the_fields_of_the_contract(run):
    rows = json.loads(run("compare", *SMALL, "--json").out)
    assert all(set(row) >= FIELDS for row in rows)
    assert {row["family"] for row in rows} == {"A", "B", "C"}
    assert len({row["method"] for row in rows}) == 6


def test_the_monitor_finds_what_the_classic_technique_cannot(run):
    rows = json.loads(run("compare", *SMALL, "--json").out)
    found = {(row["method"], row["family"]): row["found"] / row["sets"] for row in rows}
    assert [found["monitor (horizon)", family] for family in "ABC"] == [1, 1, 1]
    assert [found["classic sparse vector", family] for family in "ABC"] == [0, 0, 1]
    assert [found["monitor (theorem)", family] for family in "ABC"] == [0, 0, 0]


def test_at_a_million_users_a_histogram_in_every_step_misses_the_small_sets(run):
    rows = json.loads(run("compare", "--seed", 1, "--json").out)
    found = {(row["method"], row["family"]): row["found"] / row["sets"] for row in rows}
    assert [found["monitor (horizon)", family] for family in "ABC"] == [1, 1, 1]
    assert found["histogram each step", "A"] < 0.05


def test_a_seed_makes_it_repeatable_and_is_said_aloud(run):
    first, second = run("compare", *SMALL, "--json"), run("compare", *SMALL, "--json")
    assert first.out == second.out
    assert "protects nobody" in first.err
    unseeded = run("compare", "--users", 50_000, "--json")
    assert "protects nobody" not in unseeded.err


def test_it_prints_a_table_for_people(run):
    result = run("compare", *SMALL)
    assert "monitor (horizon)" in result.out
    assert "users needed" in result.out


def test_several_trials_are_averaged(run):
    rows = json.loads(run("compare", *SMALL, "--trials", 3, "--json").out)
    assert all(row["found"] <= row["sets"] for row in rows)


def test_it_draws_what_was_found(run, tmp_path):
    picture = tmp_path / "comparison.png"
    assert run("compare", *SMALL, "--plot", picture).code == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--users", "10"], "users is 10"),
        (["--trials", "0"], "trials is 0"),
        (["--epsilon", "0"], "epsilon is 0.0"),
        (["--plot", "nowhere/x.png"], "plot is nowhere/x.png"),
        (["--seed", "x"], "--seed"),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_the_setting(run, arguments, complaint):
    result = run("compare", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
    assert result.err.count("\n") == 1


def test_no_figure_is_cut_off_in_a_terminal_of_80_columns(run):
    result = run("compare", *SMALL, "--epsilon", 0.2)
    assert result.code == 0
    assert "…" not in result.out
