"""`streamer plan`."""

import json

import pytest

from streamer.commands import plan as plan_room
from streamer.commands.planning import PlanOptions

FIELDS = {
    *("epsilon", "delta", "contributions", "neighbours", "calibration", "noise_scale"),
    *("delta1", "delta2", "delta_charge", "delta_keys", "threshold", "guaranteed_weight"),
    *("detection", "periods", "users", "step_seconds", "unique_items_per_year"),
    *("noise", "items_per_step", "attention", "loud_price", "exit_threshold"),
    *("declared", "declared_threshold", "calibrations", "items_costs"),
}


@pytest.fixture(scope="module")
def out(run_once):
    return run_once("plan").out


@pytest.fixture(scope="module")
def report(run_once):
    return json.loads(run_once("plan", "--json").out)


@pytest.mark.slow
def test_it_prints_the_plan_for_people(out):
    assert "threshold" in out
    assert "1,069" in out
    assert "give or take an additive 1e-06" in " ".join(out.split())
    assert "horizon calibration" in out


@pytest.mark.slow
def test_its_json_has_the_fields_of_the_contract(report):
    assert set(report) >= FIELDS
    assert report["delta_charge"] + report["delta_keys"] == pytest.approx(report["delta"])
    assert (report["noise"], report["delta1"], report["delta2"]) == ("gaussian", 0, 0)
    assert (report["attention"], report["loud_price"]) == ("changes", 0.2)
    assert report["exit_threshold"] < report["threshold"]
    assert all(set(row) == {"weight", "probability"} for row in report["detection"])
    assert all(set(row) == {"count", "epsilon"} for row in report["periods"])


@pytest.mark.slow
def test_detection_rises_to_certainty_at_the_guaranteed_weight(report):
    probabilities = [row["probability"] for row in report["detection"]]
    assert probabilities == sorted(probabilities)
    assert report["detection"][0]["weight"] == 1
    assert report["detection"][-1]["weight"] == report["guaranteed_weight"]
    assert probabilities[-1] == pytest.approx(1)


def test_with_laplace_noise_it_has_the_papers_scales(run):
    report = json.loads(run("plan", "--json", "--calibration", "exact").out)
    assert report["noise"] == "laplace"
    assert report["noise_scale"] == pytest.approx(10 * report["delta1"])
    assert (report["attention"], report["loud_price"]) == ("every_step", 1)
    assert report["exit_threshold"] is None


@pytest.mark.slow
def test_it_shows_the_calibrations_side_by_side(report, out):
    horizon, exact, theorem = report["calibrations"]
    assert [each["calibration"] for each in report["calibrations"]] == [
        *("horizon", "exact", "theorem")
    ]
    assert horizon["threshold"] == report["threshold"]
    assert horizon["threshold"] < 0.7 * exact["threshold"] < 0.01 * theorem["threshold"]
    assert all(f"{each['threshold']:,}" in out for each in report["calibrations"])


@pytest.mark.slow
def test_it_shows_what_more_items_cost(report):
    costs = {each["items_per_step"]: each["threshold"] for each in report["items_costs"]}
    assert costs[3] == report["threshold"]
    assert costs[1] < costs[3] < costs[5]
    assert costs[1] == pytest.approx(PlanOptions(items_per_step=1).plan().threshold, abs=2)


@pytest.mark.slow
def test_declared_items_have_a_lower_threshold(run):
    report = json.loads(run("plan", "--json", "--declared", 100).out)
    assert report["declared_threshold"] < 0.8 * report["threshold"]
    assert f"{report['declared_threshold']:,}" in run("plan", "--declared", 100).out


@pytest.mark.slow
def test_every_flag_changes_the_plan(run, report, monkeypatch):
    """Of each plan only what is compared is computed."""
    monkeypatch.setattr(
        plan_room,
        "plan_report",
        lambda made: {"threshold": made.threshold, "noise_scale": made.calibration.noise_scale},
    )
    usual = {name: report[name] for name in ("threshold", "noise_scale")}
    assert json.loads(run("plan", "--json").out) == usual
    for flag, value in (
        ("--epsilon", 2),
        ("--delta", 1e-7),
        ("--contributions", 3),
        ("--period", 100),
        ("--items-per-step", 1),
        ("--neighbours", "add-remove"),
        ("--calibration", "theorem"),
        ("--domain", "declared"),
        ("--threshold", 900),
        ("--users", 2_000_000),
        ("--step", 10),
    ):
        assert json.loads(run("plan", "--json", flag, value).out) != usual, flag


@pytest.mark.slow
def test_less_than_one_unique_item_a_year_is_expected(report):
    assert 0.9 < report["unique_items_per_year"] < 1
    assert report["users"] == 1_000_000


@pytest.mark.slow
def test_without_users_the_threshold_is_lower_and_the_number_unknown(run):
    report = json.loads(run("plan", "--json", "--users", 0).out)
    assert (report["threshold"], report["unique_items_per_year"]) == (528, None)
    assert "no limit" in run("plan", "--users", 0).out


FEW_STEPS = ("--period", 3, "--items-per-step", 1)
"""For a plan that is made in no time."""


@pytest.mark.slow
def test_the_length_of_the_period_is_printed(run):
    assert "3 steps of 10 seconds: 30 seconds" in run("plan", "--step", 10, *FEW_STEPS).out


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_it_draws_the_detection_curve(run, tmp_path, suffix):
    picture = tmp_path / f"plan.{suffix}"
    assert run("plan", *FEW_STEPS, "--plot", picture).code == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epsilon", "0"], "epsilon is 0.0"),
        (["--epsilon", "-1"], "epsilon is -1.0"),
        (["--epsilon", "nan"], "epsilon is nan"),
        (["--epsilon", "inf"], "epsilon is inf"),
        (["--delta", "0"], "delta is 0.0"),
        (["--delta", "1"], "delta is 1.0"),
        (["--delta", "nan"], "delta is nan"),
        (["--items-per-step", "0"], "items_per_step is 0"),
        (["--items-per-step", "101"], "items_per_step is 101"),
        (["--declared", "-1"], "declared is -1"),
        (["--contributions", "0"], "contributions is 0"),
        (["--contributions", "2.5"], "--contributions"),
        (["--contributions", "10001"], "contributions is 10001"),
        (["--period", "0"], "period is 0"),
        (["--step", "0"], "step is 0.0"),
        (["--beta", "1"], "beta is 1.0"),
        (["--items", "0"], "items is 0"),
        (["--neighbours", "both"], "--neighbours"),
        (["--calibration", "magic"], "--calibration"),
        (["--threshold", "100"], "threshold is 100"),
        (["--threshold", "0"], "threshold is 0"),
        (["--epsilom", "1"], "--epsilom"),
        (["--plot", "nowhere/plan.png"], "plot is nowhere/plan.png"),
        (["--plot", "plan.doc"], "plot is plan.doc"),
        (["surplus"], "surplus"),
        (["--epsilon", "1e-308"], "epsilon is 1e-308: it must be at least 1e-09"),
        (["--step", "1e300"], "step is 1e+300: it must be a number above 0 and at most 31,622,400"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_the_setting(run, arguments, complaint):
    result = run("plan", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("streamer: ")
    assert complaint in result.err
    assert result.err.count("\n") == 1


def test_a_plot_without_matplotlib_says_what_to_install(run, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = run("plan", *FEW_STEPS, "--plot", tmp_path / "plan.png")
    assert result.code == 2
    assert "streamer[plot]" in result.err


@pytest.mark.slow
class TestAttention:
    def test_it_says_what_a_budget_buys(self, out):
        said = " ".join(out.split())
        assert "A user's budget of 10 buys 10 reports, 5 outbreaks that begin and end, or" in said
        assert "or 46 loud values. That an item is still there costs nothing." in said
        assert "29 values, at most 60 steps apart, which costs 5.8 if they are loud." in said
        assert "fades from view" not in said

    def test_it_says_if_that_is_too_little_for_what_lasts(self, run):
        said = " ".join(run("plan", "--contributions", "1").out.split())
        assert "buys 1 report, or 1 loud value." in said
        assert "more than the budget: it fades from view." in said

    def test_every_step_has_neither_states_nor_loud_prices(self, run, report):
        other = json.loads(run("plan", "--attention", "every_step", "--json").out)
        assert (other["attention"], other["exit_threshold"]) == ("every_step", None)
        assert (other["value_every_steps"], other["loud_price"]) == (None, 1.0)
        assert other["threshold"] < report["threshold"]
        assert report["value_every_steps"] == 60

    def test_a_calibration_that_does_not_cover_changes_is_one_sentence(self, run):
        result = run("plan", "--calibration", "exact", "--attention", "changes")
        assert result.code != 0
        assert "attention is changes: the exact calibration covers every_step only" in result.err
