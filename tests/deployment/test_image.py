"""The Dockerfile says what the program does: its settings, its ports, its health."""

import asyncio
import fnmatch
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamer
from streamer.cli import app
from streamer.config import PREFIX, load
from streamer.operations.health import LONGEST_SILENCE, Status
from streamer.web.operators import operators_app
from streamer.web.server import HttpServer
from tests.deployment.dockerfile import ROOT, Stage, stages

PREFACE, BUILD, FINAL = stages()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def settings(monkeypatch):
    """What the program makes of the image's environment."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in FINAL.environment.items():
        if name.startswith(PREFIX):
            monkeypatch.setenv(name, value)
    return load({})


def test_its_base_is_slim_and_of_a_python_that_we_support():
    found = re.fullmatch(r"python:(\d\.\d+)-slim", PREFACE.one("ARG").pairs["BASE"])
    assert found
    assert f"Programming Language :: Python :: {found[1]}" in PROJECT["classifiers"]


class TestContext:
    """.dockerignore lets through what is copied, and nothing else."""

    PATTERNS = (ROOT / ".dockerignore").read_text().splitlines()

    def test_everything_else_stays_outside(self):
        copied = {source for one in BUILD.all("COPY") for source in one.words[:-1]}
        assert {line[1:] for line in self.PATTERNS if line.startswith("!")} == copied
        assert [line for line in self.PATTERNS if not line.startswith(("#", "!"))] == [
            "*",
            "**/__pycache__",
        ]

    def test_what_the_wheel_is_made_of_is_copied(self):
        copied = {source for one in BUILD.all("COPY") for source in one.words[:-1]}
        named = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "streamer"}
        assert all(any(fnmatch.fnmatch(name, one) for one in copied) for name in named)


class TestFinalStage:
    def test_nothing_runs_as_root(self):
        user, group = map(int, FINAL.one("USER").text.split(":"))
        assert min(user, group) >= 10_000
        assert f"-o {user} -g {group} {FINAL.one('WORKDIR').text}" in FINAL.one("RUN").text

    def test_it_runs_the_service(self):
        (program,) = FINAL.one("ENTRYPOINT").words
        assert program in PROJECT["scripts"]
        (command,) = FINAL.one("CMD").words
        assert command in {one.name for one in app.registered_commands}

    def test_its_labels_tell_the_truth(self):
        labels, prefix = FINAL.one("LABEL").pairs, "org.opencontainers.image."
        assert labels[f"{prefix}title"] == PROJECT["name"]
        assert labels[f"{prefix}description"] == PROJECT["description"]
        assert labels[f"{prefix}licenses"] == PROJECT["license"]
        assert labels[f"{prefix}version"] == "${VERSION}"
        arguments = {one.text for one in FINAL.all("ARG")}
        assert f"VERSION={streamer.__version__}" in arguments


class TestSettings:
    def test_the_ports_are_reached_from_outside(self, settings):
        assert (settings.http.host, settings.metrics.host) == ("0.0.0.0", "0.0.0.0")

    def test_the_exposed_ports_are_those_of_the_settings(self, settings):
        exposed = [int(port) for port in FINAL.one("EXPOSE").words]
        assert exposed == [settings.http.port, settings.metrics.port]


class TestHealth:
    """The HEALTHCHECK command, run against the operators' port of the program."""

    @pytest.mark.parametrize(("silence", "code"), [(0.0, 0), (LONGEST_SILENCE + 1, 1)])
    async def test_it_tells_one_that_is_alive_from_one_that_is_stuck(self, silence, code):
        now = [0.0]
        status = Status(clock=lambda: now[0])
        now[0] = silence
        server = HttpServer(operators_app(status, bytes), "metrics", "127.0.0.1", 0)
        await server.start()
        try:
            done = await self._check(FINAL, server.port)
        finally:
            await server.stop()
        assert done == (code, status.alive().reason)

    async def test_it_fails_where_nobody_answers(self):
        server = HttpServer(operators_app(Status(), bytes), "metrics", "127.0.0.1", 0)
        await server.start()
        await server.stop()
        assert (await self._check(FINAL, server.port))[0] == 1

    async def _check(self, stage: Stage, port: int) -> tuple[int, str]:
        """The exit code, and the reason in what it prints."""

        program, *arguments = stage.health_command
        assert program == "python"
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments),
            env={"STREAMER_METRICS__PORT": str(port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        printed, _ = await child.communicate()
        assert child.returncode is not None
        return child.returncode, json.loads(printed)["reason"] if printed else ""

    def test_it_asks_at_the_port_that_is_usual(self, settings):
        assert f"'STREAMER_METRICS__PORT', '{settings.metrics.port}'" in FINAL.health_command[-1]


def test_hadolint_has_no_complaint():
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists() and os.environ.get("CI") != "true":
        pytest.skip("THE DOCKERFILE IS NOT LINTED: there is no hadolint for this machine")
    command = [hadolint, "--no-color", "--failure-threshold", "style", ROOT / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
