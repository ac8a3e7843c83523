"""The operators' port: three questions are answered, and nothing else."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.routing import Route

from streamer.operations.health import LONGEST_SILENCE, Status
from streamer.operations.metrics import Metrics, Situation
from streamer.stream.timing import StepTiming
from streamer.web.operators import operators_app
from streamer.web.server import HttpServer
from tests.web.asking import ask

PATHS = ("/healthz", "/readyz", "/metrics")


class Operators:
    """An app, with the status that it tells of and a clock that the test sets."""

    def __init__(self):
        self.now = 0.0
        self.status = Status(clock=lambda: self.now)
        self.metrics = Metrics("1.2.3", StepTiming(60_000), 100)
        self.app = operators_app(
            self.status, lambda: self.metrics.text(Situation(ready=self.status.ready().good))
        )
        self.server = HttpServer(self.app, "metrics", "127.0.0.1", 0)

    async def ask(self, path, method="GET"):
        return await ask(self.server.port, path, method)

    async def said(self, path):
        """The code and the content of an answer in JSON."""
        answer = await self.ask(path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        return answer.status, json.loads(answer.body)


@pytest.fixture
async def operators():
    operators = Operators()
    await operators.server.start()
    yield operators
    await operators.server.stop()


async def test_a_service_that_starts_is_alive_and_not_ready(operators):
    assert await operators.said("/healthz") == (200, {"status": "alive", "reason": "starting"})
    assert await operators.said("/readyz") == (503, {"status": "not ready", "reason": "starting"})


async def test_one_that_runs_is_both(operators):
    operators.status.tell("")
    operators.status.running = True
    assert await operators.said("/healthz") == (200, {"status": "alive", "reason": ""})
    assert await operators.said("/readyz") == (200, {"status": "ready", "reason": ""})


async def test_one_that_waits_says_for_what(operators):
    operators.status.running = True
    operators.status.tell('waiting for the broker ("it" is\ngone)')
    reason = 'waiting for the broker ("it" is\ngone)'
    assert await operators.said("/healthz") == (200, {"status": "alive", "reason": reason})
    assert await operators.said("/readyz") == (503, {"status": "not ready", "reason": reason})


async def test_one_that_ends_is_not_ready_any_more(operators):
    operators.status.tell("")
    operators.status.running = operators.status.ending = True
    assert await operators.said("/readyz") == (
        503,
        {"status": "not ready", "reason": "shutting down"},
    )
    assert (await operators.said("/healthz"))[0] == 200


async def test_one_that_is_silent_is_to_be_started_again(operators):
    operators.now += LONGEST_SILENCE + 1
    reason = "no progress for 301 s"
    assert await operators.said("/healthz") == (503, {"status": "stuck", "reason": reason})


async def test_metrics_are_what_prometheus_reads_each_time_anew(operators):
    def ready(answer):
        families = text_string_to_metric_families(answer.body.decode())
        return next(f.samples[0].value for f in families if f.name == "streamer_ready")

    answer = await operators.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert ready(answer) == 0
    operators.status.tell("")
    operators.status.running = True
    assert ready(await operators.ask("/metrics")) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_a_head_is_an_answer_without_its_body(operators, path):
    answer = await operators.ask(path, "HEAD")
    assert answer.status in {200, 503}
    assert answer.body == b""


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_changed(operators, path, method):
    answer = await operators.ask(path, method)
    assert answer.status == 405


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics/",
        "/metricsx",
        "/healthz/x",
        "/api",
        "/docs",
        "/openapi.json",
        "/favicon.ico",
        "//",
    ],
)
async def test_there_is_nothing_else(operators, path):
    answer = await operators.ask(path)
    assert answer.status == 404
    assert b"streamer" not in answer.body


def test_there_are_no_other_routes():
    routes = Operators().app.routes
    assert all(type(route) is Route for route in routes)
    assert sorted(route.path for route in routes) == sorted(PATHS)


async def test_answers_do_not_tell_what_they_are_made_with(operators):
    answer = await operators.ask("/healthz")
    assert "server" not in answer.headers
