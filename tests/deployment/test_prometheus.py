"""A real Prometheus scrapes a service that runs on a real Kafka, and answers the dashboard."""

import json
import math
import re
from urllib.parse import quote

import pytest

from tests.deployment.prometheus import JOB, Prometheus, program, promtool
from tests.deployment.promql import DASHBOARD, RULES, rules
from tests.deployment.scene import HITTER, LINKS, TRANSIENT, scene
from tests.kafka.instances import until

pytestmark = pytest.mark.kafka

CONTENT = json.loads(DASHBOARD.read_text())
QUERIES = [
    (f"{panel['title']}-{query['refId']}", query)
    for panel in CONTENT["panels"]
    for query in panel.get("targets", [])
] + [(mark["name"], mark) for mark in CONTENT["annotations"]["list"]]
CHOSEN = {"$job": JOB, "$instance": ".*", "$window": "1m", "$__rate_interval": "10s"}
SECONDS = 60

PROMISED = {
    "streamer_events_total": {"outcome"},
    "streamer_rejected_total": {"reason"},
    "streamer_steps_closed_total": set(),
    "streamer_hitters_total": set(),
    "streamer_hitters_current": set(),
    "streamer_hitters_shown": set(),
    "streamer_changes_total": {"state"},
    "streamer_hitter_estimate": {"item"},
    "streamer_hitter_low": {"item"},
    "streamer_hitter_high": {"item"},
    "streamer_hitter_since_seconds": {"item"},
    "streamer_hitter_growth": {"item"},
    "streamer_hitter_info": {"item", "link"},
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
    series = seen(lambda: prometheus.now("streamer_hitter_estimate"), "a hitter")
    items = {each["metric"]["item"] for each in series}
    assert HITTER in items
    assert items <= {HITTER, TRANSIENT}


@pytest.mark.parametrize(
    "query",
    [query for _, query in QUERIES],
    ids=[name for name, _ in QUERIES],
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


def test_an_alert_about_an_item_carries_what_a_receiver_needs(prometheus):
    def alert():
        alerts = prometheus.rules()["StreamerItemNew"]["alerts"]
        return next((each for each in alerts if each["labels"]["item"] == HITTER), None)

    until(lambda: alert() is not None, "an alert about the item")
    told = alert()
    assert told["labels"] == {
        "alertname": "StreamerItemNew",
        "severity": "warning",
        "job": JOB,
        "item": HITTER,
    }
    annotations = told["annotations"]
    assert annotations["item"] == HITTER
    assert annotations["link"] == LINKS.replace("{item}", quote(HITTER, safe=""))
    assert annotations["estimate"].isdecimal()
    low, high = re.fullmatch(r"(\d+) to (\d+)", annotations["interval"]).groups()
    assert int(low) < int(high)


def test_an_alert_about_an_item_resolves_when_it_is_gone(prometheus):
    def fires():
        alerts = prometheus.rules()["StreamerItemNew"]["alerts"]
        return TRANSIENT in [each["labels"]["item"] for each in alerts]

    for _ in range(2):
        until(fires, "an alert about the item")
        until(lambda: not fires(), "its end")


@pytest.mark.parametrize("state", ["back", "gone"])
def test_changes_are_counted(prometheus, state):
    query = f'streamer_changes_total{{state="{state}"}}'
    until(lambda: float(prometheus.now(query)[0]["value"][1]) > 0, query)


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
