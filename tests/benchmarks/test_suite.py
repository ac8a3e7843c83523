"""The benchmarks run, at a size that says nothing about speed; and what the suite makes of them."""

import json
from dataclasses import asdict
from importlib import import_module

import pytest

from benchmarks import suite
from benchmarks.suite import NAMES, Result
from benchmarks.table import Row, at_least, at_most, below, markdown, written
from tests.kafka.test_benchmarks import SMALL_ON_A_BROKER

SMALL = {
    "step": {"events": 100_000, "rounds": 1},
    "memory": {"users": 20_000, "events": 5_000},
    "noise": {"rounds": 1},
    "batches": {"records": 10_000, "rounds": 1},
    "intake": {"batches": 2},
    "mapped_events": {"batches": 2},
    "event_times": {"batches": 2},
    "monitor": {"steps": 1},
    "journal": {"users": 20_000},
    "start_up": {"rounds": 1},
}
TAKE_TOO_LONG = {"quix", "growth", "latency", "whole_process"}
"""One sets up another program's environment, one is `end_to_end` seven times, and two need their
full load for anything to be reported."""


def test_every_benchmark_is_tried():
    assert SMALL.keys() | SMALL_ON_A_BROKER.keys() | TAKE_TOO_LONG == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name):
    rows = import_module(f"benchmarks.{name}").measure(**SMALL[name])
    assert rows
    assert all(row.value >= 0 for row in rows)


@pytest.mark.parametrize(
    ("bar", "value", "verdict"),
    [
        (at_least(0.5), 0.5, "kept"),
        (at_least(0.5), 0.499, "MISSED"),
        (at_most(4), 4, "kept"),
        (at_most(4), 4.01, "MISSED"),
        (below(50), 49.9, "kept"),
        (below(50), 50, "MISSED"),
        (None, 7, ""),
    ],
)
def test_a_bar_is_kept_or_missed(bar, value, verdict):
    assert Row("what", value, "", bar).verdict == verdict


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.4849, "", "0.48"), (12.34, "ms", "12.3 ms"), (134.6, "MB", "135 MB"), (4.0, "s", "4 s")],
)
def test_figures_have_three_digits(value, unit, text):
    assert written(value, unit) == text


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(suite, "DOCUMENT", tmp_path / "performance.md")
    (tmp_path / "performance.md").write_text(f"before\n{suite.BEGIN}\nold\n{suite.END}\nafter\n")
    return tmp_path


class TestSuite:
    """With one benchmark measured anew, and another as it was."""

    @pytest.fixture
    def run(self, kept, monkeypatch):
        before = Result([Row("pause", 20.0, "ms", below(50), "as before")], "2026-01-01 00:00")
        suite._keep({"pause": before})

        def run(row):
            monkeypatch.setattr(suite, "_apart", lambda _: [row])
            monkeypatch.setattr("sys.argv", ["suite", "--only", "noise"])
            return suite.main()

        return run

    def test_keeps_what_was_not_measured_again(self, run, kept):
        assert run(Row("noise", 3.0, "ns", below(25))) == 0
        results = json.loads((kept / "results.json").read_text())["benchmarks"]
        assert list(results) == ["pause", "noise"]
        assert results["pause"]["measured"] == "2026-01-01 00:00"
        assert results["noise"]["rows"][0]["verdict"] == "kept"

    def test_puts_its_table_between_the_marks(self, run, kept):
        run(Row("noise", 3.0, "ns", below(25)))
        document = (kept / "performance.md").read_text()
        assert document.startswith("before\n")
        assert document.endswith("after\n")
        assert "| noise | **3 ns** | below 25 ns | kept |  |" in document
        assert "as before" in document
        assert "old" not in document

    def test_ends_with_1_if_a_bar_is_missed(self, run):
        assert run(Row("noise", 30.0, "ns", below(25))) == 1


def test_the_document_shows_the_results_that_are_kept():
    """Nobody edits the table by hand."""
    kept = json.loads(suite.RESULTS.read_text())["benchmarks"]
    rows = [suite._row(row) for result in kept.values() for row in result["rows"]]
    assert all(asdict(row)["what"] for row in rows)
    assert markdown(rows) in suite.DOCUMENT.read_text()
