"""The alerts: when each fires is said in streamer.tests.yaml, by promtool; the rest here."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from tests.deployment.prometheus import JOB, promtool
from tests.deployment.promql import BASE, RULES, check, named, rules

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
ALERTS = {rule["alert"]: rule for rule in rules()}
TESTS = RULES.with_name("streamer.tests.yaml")
OBJECT = RULES.with_name("prometheusrule.yaml")

each_alert = pytest.mark.parametrize("rule", ALERTS.values(), ids=ALERTS)


def test_prometheus_takes_the_rules():
    assert f"{len(rules())} rules found" in promtool("check", "rules", str(RULES))


def test_each_alert_fires_when_it_should_and_at_no_other_time():
    assert "SUCCESS" in promtool("test", "rules", str(TESTS))


@each_alert
def test_there_are_moments_at_which_it_must_fire_and_others_at_which_it_must_not(rule):
    moments = [
        bool(moment.get("exp_alerts"))
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for moment in test["alert_rule_test"]
        if moment["alertname"] == rule["alert"]
    ]
    assert set(moments) == {True, False}


def test_no_two_alerts_have_the_same_name():
    assert len(ALERTS) == len(rules())


def test_the_operator_gets_the_same_rules():
    assert OBJECT.read_text() == runpy.run_path(str(RULES.with_name("make.py")))["made"]()
    assert yaml.safe_load(OBJECT.read_text())["spec"] == yaml.safe_load(RULES.read_text())


@each_alert
def test_it_asks_for_what_there_is(rule):
    check(rule["expr"])


@each_alert
def test_it_says_how_bad_it_is_and_what_is_wrong(rule):
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    for text in ("summary", "description"):
        assert rule["annotations"][text].endswith(".")


class TestTheJob:
    """Other programs have a process_start_time_seconds, too."""

    @each_alert
    def test_what_others_have_is_asked_of_our_job_only(self, rule):
        for metric, labels in named(rule["expr"]).metrics.items():
            assert metric.startswith("streamer_") or "job" in labels
        assert set(re.findall(r'job="([^"]*)"', rule["expr"])) <= {JOB}

    def test_it_has_this_name_in_kubernetes(self):
        monitor = yaml.safe_load((BASE / "podmonitor.yaml").read_text())["spec"]
        assert monitor["selector"]["matchLabels"][monitor["jobLabel"]] == JOB

    def test_it_has_this_name_in_compose(self):
        config = yaml.safe_load((ROOT / "deploy" / "compose" / "prometheus.yaml").read_text())
        assert [job["job_name"] for job in config["scrape_configs"]] == [JOB]
