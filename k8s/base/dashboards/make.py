"""Writes streamer.json, the dashboard for Grafana 11 and later, from panels.yaml.

python k8s/base/dashboards/make.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
PANELS, DASHBOARD = HERE / "panels.yaml", HERE / "streamer.json"
WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF = 'job="$job", instance=~"$instance"'
WINDOWS, WINDOW = ("1m", "5m", "15m", "1h", "6h", "1d"), "5m"

Json = dict[str, Any]


def dashboard() -> Json:
    annotations, rows = yaml.safe_load_all(PANELS.read_text(encoding="utf-8"))
    return {
        "uid": "streamer",
        "title": "streamer",
        "description": "Heavy hitters under differential privacy, and the service behind them.",
        "tags": ["streamer"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "annotations": {"list": [annotation(told) for told in annotations]},
        "templating": {"list": variables()},
        "panels": [{"id": number, **each} for number, each in enumerate(placed(rows), start=1)],
    }


def annotation(told: Json) -> Json:
    """Marks with the name of an item. Close ones of the same item become one."""
    return {
        "name": told["annotation"],
        "enable": True,
        "iconColor": told["color"],
        "datasource": SOURCE,
        "expr": told["query"].replace("$of", OF),
        "step": "15s",
        "titleFormat": "{{item}}",
        "textFormat": told["text"],
        "useValueForTime": told["at"] == "value",
    }


def placed(rows: list[Json]) -> Iterator[Json]:
    """All panels with their positions: left to right, a new line when one is full."""
    y = 0
    for row in rows:
        if row["row"]:
            place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
            yield {"type": "row", "title": row["row"], "collapsed": False, "gridPos": place}
            y += 1
        x = height = 0
        for told in row["panels"]:
            made = panel(told)
            size = made["gridPos"]
            if x + size["w"] > WIDTH:
                x, y, height = 0, y + height, 0
            yield made | {"gridPos": {"x": x, "y": y, **size}}
            x, height = x + size["w"], max(height, size["h"])
        y += height


def panel(told: Json) -> Json:
    kind = next(iter(told))
    return {"text": text, "number": number, "graph": graph, "table": table}[kind](told)


def text(told: Json) -> Json:
    return {
        "type": "text",
        "title": told["text"],
        "description": told["description"],
        "gridPos": {"w": told["width"], "h": 4},
        "options": {"mode": "markdown", "content": told["content"]},
    }


def number(told: Json) -> Json:
    """The last value of a series in large type, optionally in words, or the name of the series."""
    shown: Json = {}
    if "words" in told:
        words = {str(value): {"text": word} for value, word in enumerate(told["words"])}
        shown["mappings"] = [{"type": "value", "options": words}]
    made = measured("stat", told["number"], told, 3, 4, shown)
    made["targets"] = targets({told.get("legend", ""): told["query"]}, range=True)
    made["options"] = {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "textMode": told.get("shows", "value"),
        "colorMode": "none",
    }
    return made


def graph(told: Json) -> Json:
    """Starts at zero, with the last values in the legend."""
    made = measured("timeseries", told["graph"], told, 8, 8, {"min": 0})
    made["targets"] = targets(told["queries"], range=True)
    made["options"] = {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return made


def table(told: Json) -> Json:
    """One column per query, one line per combination of labels; largest values first."""
    made = measured("table", told["table"], told, 8, 8, {"noValue": "none"})
    made["fieldConfig"]["overrides"] = [
        override(column, "unit", unit) for column, unit in told.get("units", {}).items()
    ]
    if "opens" in told:
        link = {"title": "Open", "url": "${__value.raw}", "targetBlank": True}
        made["fieldConfig"]["overrides"].append(override(told["opens"], "links", [link]))
    made["targets"] = targets(told["queries"], instant=True, format="table")
    columns = list(told["queries"])
    # Grafana names the values after their query, unless there is only one query.
    names = (
        ["Value"] if len(columns) == 1 else [f"Value #{_letter(n)}" for n in range(len(columns))]
    )
    named = dict(zip(names, columns, strict=True))
    hidden = ["Time", *(name for name in names if named[name] == told.get("hides"))]
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": dict.fromkeys(hidden, True),
                "renameByName": named,
            },
        },
        {"id": "sortBy", "options": {"sort": [{"field": columns[0], "desc": True}]}},
    ]
    return made


def override(column: str, name: str, value: object) -> Json:
    """A property of one column of a table."""
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [{"id": name, "value": value}],
    }


def measured(kind: str, title: str, told: Json, width: int, height: int, shown: Json) -> Json:
    """Common to all panels with numbers. `shown`: how numbers are displayed, besides the unit."""
    return {
        "type": kind,
        "title": title,
        "description": told["description"],
        "datasource": SOURCE,
        "gridPos": {"w": told.get("width", width), "h": told.get("height", height)},
        "fieldConfig": {"defaults": {"unit": told["unit"], **shown}, "overrides": []},
    }


def targets(queries: Mapping[str, str], **kind: object) -> list[Json]:
    return [
        {
            "refId": _letter(place),
            "datasource": SOURCE,
            "expr": expression.replace("$of", OF),
            "legendFormat": legend,
            **kind,
        }
        for place, (legend, expression) in enumerate(queries.items())
    ]


def variables() -> list[Json]:
    """The selectors at the top: Prometheus, the service, the window."""
    jobs = "label_values(streamer_build_info, job)"
    instances = 'label_values(streamer_build_info{job="$job"}, instance)'
    asked = {"type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1}
    return [
        {
            "type": "datasource",
            "name": "datasource",
            "label": "Prometheus",
            "query": "prometheus",
        },
        asked | {"name": "job", "label": "Job", "query": {"query": jobs, "refId": "job"}},
        asked
        | {"name": "instance", "label": "Instance"}
        | {"query": {"query": instances, "refId": "instance"}}
        | {"includeAll": True, "multi": True, "allValue": ".*"}
        | {"current": {"text": "All", "value": "$__all"}},
        {
            "type": "interval",
            "name": "window",
            "label": "Window (several steps)",
            "query": ",".join(WINDOWS),
            "current": {"text": WINDOW, "value": WINDOW},
            "options": [{"text": w, "value": w, "selected": w == WINDOW} for w in WINDOWS],
        },
    ]


def made() -> str:
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


def _letter(place: int) -> str:
    return chr(ord("A") + place)


if __name__ == "__main__":
    DASHBOARD.write_text(made(), encoding="utf-8")
