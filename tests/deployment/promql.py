"""Which metrics and labels a query names, and which of them there are."""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from streamer.operations.metrics import Situation
from tests.operations.watched import Watched

BASE = Path(__file__).parent.parent.parent / "k8s" / "base"
RULES = BASE / "alerts" / "streamer.rules.yaml"
DASHBOARD = BASE / "dashboards" / "streamer.json"
OF_THE_TARGET = {"job", "instance", "namespace"}
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}

_OPERATORS = {"and", "by", "group_left", "ignoring", "on", "or", "unless", "without"}
_FUNCTIONS = {"absent", "avg_over_time", "changes", "count", "deriv", "group", "increase", "max"}
_FUNCTIONS |= {"histogram_quantile", "last_over_time", "min_over_time", "rate", "sum"}
_FUNCTIONS |= {"timestamp", "vector"}
_TEXT = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"\[[^\]]*\]")
_SELECTOR = re.compile(r"([a-zA-Z_]\w*)\{([^}]*)\}")
_GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left)\s*\(([^)]*)\)")
_NAME = re.compile(r"(?<![\w$])[a-zA-Z_]\w*")


@dataclass(frozen=True)
class Named:
    """What a query names: metrics, each with the labels that are matched; labels that it
    groups by."""

    metrics: dict[str, set[str]]
    grouped: set[str]


def named(expression: str) -> Named:
    bare = _RANGE.sub("", _TEXT.sub('""', expression))
    grouped = {label for _, labels in _GROUPING.findall(bare) for label in _NAME.findall(labels)}
    metrics: defaultdict[str, set[str]] = defaultdict(set)
    for metric, matchers in _SELECTOR.findall(bare):
        metrics[metric] |= set(_NAME.findall(matchers))
    rest = _GROUPING.sub("", _SELECTOR.sub(r"\1", bare))
    for word in set(_NAME.findall(rest)) - _OPERATORS - _FUNCTIONS:
        metrics[word] |= set()
    return Named(dict(metrics), grouped)


@cache
def served() -> dict[str, set[str]]:
    """Every metric of the service by the names of its samples, with its labels."""
    watched = Watched()
    # Some labels come with the first of their kind: an item, an error, a partition.
    watched.hold(1, {"item": 1})
    watched.close(1)
    watched.metrics.failed(ConnectionError(), writing=False)
    text = watched.metrics.text(Situation(input_lag={"0": 1})).decode()
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    return dict(labels)


def check(expression: str) -> None:
    """Every name in it is that of a metric that there is, or of a label that such a one has."""
    there, asked = served() | OF_PROMETHEUS, named(expression)
    missing = asked.metrics.keys() - there.keys()
    assert not missing, f"no such metric: {missing}"
    for metric, labels in asked.metrics.items():
        unknown = labels - there[metric] - OF_THE_TARGET
        assert not unknown, f"{metric} has no label {unknown}"
    known = OF_THE_TARGET.union(*(there[metric] for metric in asked.metrics))
    assert asked.grouped <= known, f"nothing here has a label {asked.grouped - known}"


def rules() -> list[dict]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
