"""The dashboard: complete, explained, and asking for nothing that is not there."""

import json
import re
import runpy
from itertools import pairwise

import pytest

from tests.deployment.promql import DASHBOARD, check, named, rules, served

CONTENT = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in CONTENT["panels"] if panel["type"] != "row"]
ASKING = [panel for panel in PANELS if "targets" in panel]
QUERIES = [(panel["title"], target) for panel in ASKING for target in panel["targets"]]
MARKS = {mark["name"]: mark for mark in CONTENT["annotations"]["list"]}
EXPRESSIONS = {f"{title}-{query['refId']}": query["expr"] for title, query in QUERIES} | {
    name: mark["expr"] for name, mark in MARKS.items()
}
VARIABLES = {variable["name"] for variable in CONTENT["templating"]["list"]}
OF_GRAFANA = {"__rate_interval"}
COLUMNS = 24

each_panel = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
each_expression = pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
each_query = pytest.mark.parametrize(
    "query",
    [query for _, query in QUERIES],
    ids=[f"{title}-{query['refId']}" for title, query in QUERIES],
)


def test_it_is_what_the_script_makes():
    script = DASHBOARD.with_name("make.py")
    assert DASHBOARD.read_text() == runpy.run_path(str(script))["made"]()


def test_it_says_first_who_may_see_it():
    first = min(PANELS, key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))
    assert first["type"] == "text"
    assert "operators only" in first["options"]["content"]
    assert "raw" in first["options"]["content"]


@each_panel
def test_a_panel_is_explained(panel):
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["type"] == "text" or panel["fieldConfig"]["defaults"]["unit"]


def test_no_two_panels_have_the_same_name_or_number():
    for field in ("title", "id"):
        values = [panel[field] for panel in CONTENT["panels"]]
        assert len(values) == len(set(values))


def test_the_panels_lie_side_by_side():
    taken = set()
    for panel in CONTENT["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(below <= above + 1 for above, below in pairwise(sorted({y for _, y in taken})))


def test_the_table_has_the_interval_beside_the_estimate():
    [table] = [panel for panel in PANELS if panel["title"] == "Trending items"]
    columns = {query["legendFormat"]: named(query["expr"]).metrics for query in table["targets"]}
    assert [set(columns[name]) for name in ("users, estimated", "low", "high")] == [
        {"streamer_hitter_estimate"},
        {"streamer_hitter_low"},
        {"streamer_hitter_high"},
    ]


def test_the_table_has_the_link_of_an_item():
    [table] = [panel for panel in PANELS if panel["title"] == "Trending items"]
    [query] = [query for query in table["targets"] if "streamer_hitter_info" in query["expr"]]
    assert query["expr"].startswith("max by (item, link) (")
    [_, organize, _] = table["transformations"]
    assert organize["options"]["excludeByName"] == {"Time": True, f"Value #{query['refId']}": True}
    overrides = {
        each["matcher"]["options"]: each["properties"] for each in table["fieldConfig"]["overrides"]
    }
    [link] = overrides["link"]
    assert link["value"][0]["url"] == "${__value.raw}"


def test_items_are_marked_when_they_come_and_go():
    assert {name: named(mark["expr"]).grouped for name, mark in MARKS.items()} == {
        "New items": {"item"},
        "Items that are gone": {"item"},
    }
    for mark in MARKS.values():
        assert (mark["titleFormat"], mark["enable"]) == ("{{item}}", True)
        assert mark["datasource"]["uid"] == "${datasource}"
    # Grafana takes a value in milliseconds for the time of the mark.
    new = MARKS["New items"]
    assert new["useValueForTime"]
    assert new["expr"].startswith("1000 * ")


@each_expression
def test_a_query_asks_for_what_there_is(expression):
    check(expression)


@each_expression
def test_a_query_is_about_what_is_chosen_above(expression):
    assert set(re.findall(r"\$(\w+)", expression)) <= VARIABLES | OF_GRAFANA
    for metric, labels in named(expression).metrics.items():
        # An alert that nobody is there belongs to no instance.
        assert metric == "ALERTS" or {"job", "instance"} <= labels


@each_query
def test_a_query_is_sent_to_the_prometheus_that_is_chosen(query):
    assert query["datasource"]["uid"] == "${datasource}"


@each_query
def test_what_stands_in_a_legend_is_left_by_the_query(query):
    kept = re.findall(r"\bby \(([^)]*)\)", query["expr"])
    labels = {label.strip() for group in kept for label in group.split(",")}
    assert set(re.findall(r"{{(\w+)}}", query["legendFormat"])) <= labels


def test_every_metric_is_shown_or_watched():
    expressions = [*EXPRESSIONS.values(), *(rule["expr"] for rule in rules())]
    used = {metric for expression in expressions for metric in named(expression).metrics}
    ours = {
        re.sub(r"_(bucket|sum|count)$", "_bucket", name)
        for name in served()
        if name.startswith("streamer_") and not name.endswith("_created")
    }
    assert ours <= used
