"""The alerts: when each fires is said in streamer.tests.yaml, by promtool; the rest here."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from tests.deployment.prometheus import JOB, promtool
from tests.deployment.promql import BASE, RULES, check, named, rules, served

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
ALERTS = {rule["alert"]: rule for rule in rules()}
TESTS = RULES.with_name("streamer.tests.yaml")
OBJECT = RULES.with_name("prometheusrule.yaml")

ABOUT_ITEMS = {name: ALERTS[name] for name in ("StreamerItemNew", "StreamerItemGrown")}
each_about_items = pytest.mark.parametrize("rule", ABOUT_ITEMS.values(), ids=ABOUT_ITEMS)
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


@each_alert
def test_its_annotations_ask_for_what_there_is(rule):
    asked = re.findall(r"streamer_\w+", " ".join(rule["annotations"].values()))
    assert set(asked) <= served().keys()


class TestItems:
    """The alerts about items, not about the service."""

    @each_about_items
    def test_they_carry_what_a_receiver_needs(self, rule):
        assert {"item", "estimate", "interval", "link"} <= rule["annotations"].keys()

    @each_about_items
    def test_they_contain_only_what_is_published(self, rule):
        """They are sent to others than operators."""
        asked = set(
            re.findall(r"streamer_\w+", " ".join([rule["expr"], *rule["annotations"].values()]))
        )
        public = {"streamer_hitters_current", "streamer_hitters_shown", "streamer_ready"}
        assert all(name in public or name.startswith("streamer_hitter_") for name in asked)

    @each_about_items
    def test_they_stay_the_same_when_the_pod_is_replaced(self, rule):
        assert rule["expr"].startswith("max by (job, namespace, item) (")

    def test_only_they_have_the_label_that_they_are_routed_by(self):
        others = [rule for rule in rules() if rule not in ABOUT_ITEMS.values()]
        for rule in others:
            assert not {"item"} & named(rule["expr"]).grouped
            assert not any(
                name.startswith("streamer_hitter_") for name in named(rule["expr"]).metrics
            )


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
