"""The service as it is deployed: a process with its operators' port and what it has said."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from streamer.settings import Settings
from tests.kafka.harness import DEADLINE
from tests.kafka.instances import write_config
from tests.web.asking import Answer, ask

_PORTS = re.compile(
    r"metrics and health at http://[^:]+:(\d+), the live page at http://[^:]+:(\d+)"
)


class Served:
    """`streamer run`, started when it is made."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        config = write_config(settings, directory)
        self._out, self._err = config.with_suffix(".out"), config.with_suffix(".err")
        command = [sys.executable, "-m", "streamer.cli", "run", "--config", str(config)]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err)

    @property
    def said(self) -> str:
        """Everything, on both ways."""
        return self._out.read_text() + self._err.read_text()

    @property
    def lines(self) -> list[dict]:
        """What was logged; every line must be an object."""
        return [json.loads(line) for line in self._err.read_text().splitlines()]

    async def ports(self) -> tuple[int, int]:
        """The operators' and the public one."""
        async with asyncio.timeout(DEADLINE):
            while not (found := _PORTS.search(self.said)):
                assert self._process.poll() is None, self.said
                await asyncio.sleep(0.01)
        return int(found[1]), int(found[2])

    async def ask(self, path: str) -> Answer:
        """At the operators' port."""
        return await ask((await self.ports())[0], path)

    async def verdict(self, path: str) -> tuple[int, str]:
        """The code and the reason of an answer about health."""
        answer = await self.ask(path)
        return answer.status, json.loads(answer.body)["reason"]

    async def ready(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while (await self.ask("/readyz")).status != 200:
                assert self._process.poll() is None, self.said
                await asyncio.sleep(0.02)

    async def metrics(self) -> "Figures":
        answer = await self.ask("/metrics")
        assert answer.status == 200, answer.body
        return Figures(answer.body.decode())

    async def measured(self, enough) -> "Figures":
        """The metrics, once they are as they must be."""
        deadline = time.monotonic() + DEADLINE
        while not enough(figures := await self.metrics()):
            assert time.monotonic() < deadline, figures.text
            await asyncio.sleep(0.02)
        return figures

    def send(self, what: signal.Signals) -> None:
        self._process.send_signal(what)

    async def ended(self, seconds: float = DEADLINE) -> int:
        """Its exit code."""
        return await asyncio.to_thread(self._process.wait, seconds)

    async def finish(self) -> None:
        self.send(signal.SIGTERM)
        assert await self.ended() == 0, self.said

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Figures:
    """One scrape; a metric by its name without streamer_."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def __getitem__(self, name: str) -> float:
        [value] = (s.value for s in self._samples if s.name == f"streamer_{name}")
        return value

    def by(self, label: str, name: str) -> dict[str, float]:
        """The values of a metric by one of its labels."""
        found = [s for s in self._samples if s.name == f"streamer_{name}"]
        return {sample.labels[label]: sample.value for sample in found}


@contextmanager
def serving(directory: Path) -> Iterator:
    """Starts processes, and leaves none of them behind."""
    started: list[Served] = []

    def serve(settings: Settings) -> Served:
        started.append(Served(settings, directory))
        return started[-1]

    try:
        yield serve
    finally:
        for served in started:
            served.close()
