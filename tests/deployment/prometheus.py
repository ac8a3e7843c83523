"""A real Prometheus for the tests, and its tool: those of Debian's package `prometheus`.

Where they are not installed the tests are skipped with one line that says so; with CI=true
they fail instead.
"""

import http.client
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.kafka.broker import free_port
from tests.kafka.harness import DEADLINE

SCRAPE = "500ms"
JOB = "streamer"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        why = f"{name} is not installed (Debian: apt-get install prometheus)"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(f"NO PROMETHEUS, ITS TESTS ARE SKIPPED: {why}")
    return found


def promtool(*arguments: str, given: str = "") -> str:
    """What promtool says; it must find nothing wrong."""
    done = subprocess.run(
        [program("promtool"), *arguments], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def get(port: int, path: str) -> str:
    """What is answered on this port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status < 500, f"{path}: {answer.status} {text}"
        return text
    finally:
        connection.close()


class Prometheus:
    """Scrapes one target and evaluates rules, from the beginning of the block to its end."""

    def __init__(self, directory: Path, target: int, rules: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self._log = directory / "prometheus.log"
        self._config = directory / "prometheus.yaml"
        self._config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": SCRAPE, "evaluation_interval": SCRAPE},
                    "rule_files": [str(rules)],
                    "scrape_configs": [
                        {
                            "job_name": JOB,
                            "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
                        }
                    ],
                }
            )
        )

    def __enter__(self) -> "Prometheus":
        command = [
            program("prometheus"),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + DEADLINE
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, f"not ready: {self._log.read_text()}"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE)

    def now(self, expression: str) -> list[dict[str, Any]]:
        """The series of a query, each with its labels and its value now."""
        return self._asked("query", query=expression)["result"]

    def history(self, expression: str, seconds: int) -> list[dict[str, Any]]:
        """The series of a query, each with its labels and its values in the last seconds."""
        end = time.time()
        return self._asked(
            "query_range", query=expression, start=end - seconds, end=end, step="500ms"
        )["result"]

    def rules(self) -> dict[str, dict[str, Any]]:
        """All rules by name, with their states and the errors of their evaluations."""
        groups = self._asked("rules")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def targets(self) -> list[tuple[str, str]]:
        """The health of those that it knows by now, and the error of the last scrape."""
        found = self._asked("targets")["activeTargets"]
        return [(target["health"], target["lastError"]) for target in found]

    def _asked(self, what: str, **parameters: object) -> Any:
        answer = json.loads(get(self._port, f"/api/v1/{what}?{urlencode(parameters)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def _answers(self) -> bool:
        try:
            return "Ready" in get(self._port, "/-/ready")
        except (OSError, AssertionError):  # not there yet, or 503
            return False
