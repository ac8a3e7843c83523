"""`streamer compare`."""

import json

import pytest

from streamer.commands.compare import _print_table
from streamer.experiments.comparison import Row
from streamer.experiments.paper_example import Family, PaperExample
from streamer.fleet import day
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak
from streamer.privacy.threshold import Workload

pytestmark = pytest.mark.slow

FIELDS = {"method", "family", "size", "sets", "found", "false_reports", "threshold"}
SMALL = ("--users", 20_000, "--seed", 1)


@pytest.fixture(scope="module")
def told(run_once):
    return run_once("compare", *SMALL, "--json")


@pytest.fixture(scope="module")
def rows(told):
    return json.loads(told.out)


def test_its_rows_have_the_fields_of_the_contract(rows):
    assert all(set(row) >= FIELDS for row in rows)
    assert {row["family"] for row in rows} == {"A", "B", "C"}
    assert len({row["method"] for row in rows}) == 6


def test_the_monitor_finds_what_the_classic_technique_cannot(rows):
    found = {(row["method"], row["family"]): row["found"] / row["sets"] for row in rows}
    assert [found["monitor (horizon)", family] for family in "ABC"] == [1, 1, 1]
    assert [found["classic sparse vector", family] for family in "ABC"] == [0, 0, 1]
    assert [found["monitor (theorem)", family] for family in "ABC"] == [0, 0, 0]


def test_a_seed_makes_it_repeatable_and_is_said_aloud(run, told):
    assert run("compare", *SMALL, "--json").out == told.out
    assert "protects nobody" in told.err


def test_without_a_seed_it_prints_a_table_for_people_and_no_warning(run):
    result = run("compare", *SMALL[:2])
    assert "monitor (horizon)" in result.out
    assert "needed" in result.out
    assert "protects nobody" not in result.err


def test_several_trials_are_averaged_and_drawn(run, tmp_path):
    picture = tmp_path / "comparison.png"
    rows = json.loads(run("compare", *SMALL, "--trials", 2, "--plot", picture, "--json").out)
    assert all(row["found"] <= row["sets"] for row in rows)
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


def test_no_figure_is_cut_off_or_folded_in_a_terminal_of_80_columns(capsys):
    """The longest name, and figures of ten million users."""
    families = tuple(Family(name, 715, 13_980) for name in "ABC")
    example = PaperExample(10_000_000, families, Workload(20_000, 10_000_000, 0.05))
    wide = {"size": 715, "sets": 13_980, "found": 13_979.666, "false_reports": 12.3}
    rows = [
        Row(
            "classic sparse vector", "A", **wide, threshold=9_091, reach=18_171, users_needed=10**7
        ),
        Row("monitor (theorem)", "B", **wide, threshold=9.9e6, reach=10**8, users_needed=10**11),
    ]
    _print_table(example, 1.0, 1e-6, rows)
    out = capsys.readouterr().out
    assert "…" not in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "classic sparse vector A 13,979.7/13,980 12.3 9,091 18,171 10.00M" in lines
    assert "monitor (theorem) B 13,979.7/13,980 12.3 9,900,000 100.0M 100,000M" in lines


@pytest.mark.slow
class TestDay:
    """On a day of ten steps: one item lasts, and one breaks out."""

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        fleet = Fleet(
            *(6_000, 10, 1),
            lasting=(Lasting("crash:A", 4_000),),
            outbreaks=(Outbreak("crash:B", 5_000, 4, 3),),
        )
        monkeypatch.setattr(day, "day_fleet", lambda seed: fleet)

    def test_rules_are_compared(self, run):
        rows = json.loads(run("compare", "--day", "--seed", "1", "--json").out)
        assert [row["rule"] for row in rows] == [
            *(f"0.1.0, refresh {steps}" for steps in (1, 6, 60)),
            "changes",
        ]
        assert {row["pairs"] for row in rows} == {13}
        assert [row["found"] for row in rows] == [1, 1, 1, 1]
        assert rows[-1]["public_share"] == 1.0
        assert rows[0]["exhausted_share"] < 0.1

    def test_it_prints_a_table_that_fits(self, run):
        out = run("compare", "--day", "--seed", "1").out
        assert max(map(len, out.splitlines())) <= 80
        assert "without budget" in out
        assert "changes" in out

    def test_it_draws_the_day(self, run, tmp_path):
        picture = tmp_path / "day.png"
        assert run("compare", "--day", "--seed", "1", "--plot", str(picture)).code == 0
        assert picture.stat().st_size > 10_000
