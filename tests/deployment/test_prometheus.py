"""A real Prometheus scrapes a service that runs on a real Kafka, and answers the dashboard."""

import json
import math

import pytest

from tests.deployment.prometheus import JOB, Prometheus, program, promtool
from tests.deployment.promql import DASHBOARD, RULES, rules
from tests.deployment.scene import HITTER, scene
from tests.kafka.instances import until

pytestmark = pytest.mark.kafka

PANELS = json.loads(DASHBOARD.read_text())["panels"]
QUERIES = [(panel["title"], query) for panel in PANELS for query in panel.get("targets", [])]
CHOSEN = {"$job": JOB, "$instance": ".*", "$window": "1m", "$__rate_interval": "10s"}
SECONDS = 60

PROMISED = {
    "streamer_events_total": {"outcome"},
    "streamer_rejected_total": {"reason"},
    "streamer_steps_closed_total": set(),
    "streamer_hitters_total": set(),
    "streamer_hitter_estimate": {"item"},
    "streamer_hitter_low": {"item"},
    "streamer_hitter_high": {"item"},
    "streamer_step_close_seconds_bucket": {"phase", "le"},
    "streamer_journal_write_seconds_bucket": {"le"},
    "streamer_publish_seconds_bucket": {"le"},
    "streamer_restore_seconds": set(),
    "streamer_watermark_lag_seconds": set(),
    "streamer_input_lag": {"partition"},
    "streamer_open_steps": set(),
    "streamer_buffered_events": set(),
    "streamer_users_charged": set(),
    "streamer_users_exhausted": set(),
    "streamer_exhausted_ratio": set(),
    "streamer_epsilon": set(),
    "streamer_delta": set(),
    "streamer_contributions": set(),
    "streamer_noise_scale": set(),
    "streamer_threshold": set(),
    "streamer_period": set(),
    "streamer_period_remaining_steps": set(),
    "streamer_kafka_errors_total": {"kind"},
    "streamer_build_info": {"version", "python"},
}
"""What tools and dashboards outside of this repository may rely on, with its labels."""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    program("prometheus")  # before anything is started
    with scene(tmp_path_factory.mktemp("scene")) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(service, tmp_path_factory):
    with Prometheus(tmp_path_factory.mktemp("prometheus"), service.port, RULES) as running:
        until(lambda: running.targets() == [("up", "")], "a scrape")
        service.lose_the_broker()
        yield running


def test_promtool_finds_nothing_wrong_with_the_metrics(service):
    assert promtool("check", "metrics", given=service.metrics()) == ""


def test_prometheus_takes_all_that_is_served(service, prometheus):
    assert prometheus.targets() == [("up", "")]
    lines = [line for line in service.metrics().splitlines() if not line.startswith("#")]
    (taken,) = prometheus.now("scrape_samples_post_metric_relabeling")
    # Items and kinds of errors come and go.
    assert abs(int(taken["value"][1]) - len(lines)) < 10


@pytest.mark.parametrize("metric", PROMISED)
def test_every_promised_metric_is_there_with_its_labels(prometheus, metric):
    series = seen(lambda: prometheus.now(metric), metric)
    own = set(series[0]["metric"]) - {"__name__", "job", "instance"}
    assert own == PROMISED[metric]


def test_an_item_arrives_as_it_is(prometheus):
    (series,) = seen(lambda: prometheus.now("streamer_hitter_estimate"), "a hitter")
    assert series["metric"]["item"] == HITTER


@pytest.mark.parametrize(
    "query",
    [query for _, query in QUERIES],
    ids=[f"{title}-{query['refId']}" for title, query in QUERIES],
)
def test_the_dashboard_has_something_to_show(prometheus, query):
    expression = query["expr"]
    for name, value in CHOSEN.items():
        expression = expression.replace(name, value)

    def asked():
        if query.get("instant"):
            return prometheus.now(expression)
        return prometheus.history(expression, SECONDS)

    seen(asked, expression)


def test_no_rule_has_an_error(prometheus):
    names = [rule["alert"] for rule in rules()]
    until(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules().values()), "rules")
    for name, rule in prometheus.rules().items():
        assert (name in names, rule["health"], rule.get("lastError", "")) == (True, "ok", "")


@pytest.mark.parametrize(
    ("alert", "states"),
    [
        ("StreamerSettingsPending", {"firing"}),
        ("StreamerEventsRejected", {"pending", "firing"}),
        ("StreamerEventsLate", {"pending", "firing"}),
        ("StreamerBudgetsExhausted", {"pending", "firing"}),
        ("StreamerDown", {"inactive"}),
        ("StreamerNotReady", {"inactive"}),
        ("StreamerRestarting", {"inactive"}),
        ("StreamerTwoInstances", {"inactive"}),
        ("StreamerResultsLate", {"inactive"}),
        ("StreamerClockSkew", {"inactive"}),
    ],
)
def test_an_alert_is_right_about_this_stream(prometheus, alert, states):
    """Those that fire after minutes are on their way."""
    until(lambda: prometheus.rules()[alert]["state"] in states, f"{alert}: {states}")


def test_a_broker_that_was_away_can_be_seen(prometheus):
    (least,) = prometheus.now(f"min_over_time(streamer_ready[{SECONDS * 10}s])")
    assert float(least["value"][1]) == 0
    (now,) = prometheus.now("streamer_ready")
    assert float(now["value"][1]) == 1


def seen(asked, what):
    """The series of an answer, once one of them has a value."""
    found = []

    def some():
        found[:] = asked()
        return any(not math.isnan(value) for series in found for value in values(series))

    until(some, what)
    return found


def values(series):
    pairs = series["values"] if "values" in series else [series["value"]]
    return [float(value) for _, value in pairs]
