"""Instances of the service as processes that can be killed, stopped and waited for."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pydantic import SecretStr

from streamer.settings import Settings
from tests.kafka.broker import Broker
from tests.kafka.conftest import begin
from tests.kafka.crash_child import Fate, Order, serve

WAIT_SECONDS = 90.0
# A broker that comes back is not let in before the one that died is given up.
_SOON_FORGOTTEN = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["tests.kafka.crash_child"])


def until(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.01)


def write_config(settings: Settings, directory: Path) -> Path:
    """The settings that were given, as a file for --config; with its secrets."""

    def plain(secret: object) -> object:
        return secret.get_secret_value() if isinstance(secret, SecretStr) else str(secret)

    path = directory / f"{uuid4()}.yaml"
    path.write_text(json.dumps(settings.model_dump(exclude_unset=True), default=plain))
    return path


class Instance:
    """One process, started when it is made. `fates`: where it dies or stops by itself."""

    def __init__(self, settings: Settings, directory: Path, fates: tuple[Fate, ...]) -> None:
        self.config = write_config(settings, directory)
        self._log = self.config.with_suffix(".log")
        order = Order(str(self.config), str(self._log), fates)
        self._process = _forks.Process(target=serve, args=(order,))
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def signal(self, what: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, what)

    def ended(self, seconds: float = WAIT_SECONDS) -> int:
        """Its exit code, once it has ended; negative if a signal ended it."""
        self._process.join(seconds)
        assert not self.alive, f"it has not ended within {seconds:g} s: {self.log}"
        return self._process.exitcode

    def reads(self) -> None:
        """Wait until it has restored everything and reads events."""
        until(lambda: "reading" in self.log or not self.alive, f"reading: {self.log}")
        assert self.alive, self.log

    def stopped(self) -> None:
        """Wait until SIGSTOP has stopped it."""
        until(lambda: _state(self.pid) == "T", f"stopped: {self.log}")

    def finish(self) -> None:
        """An orderly end."""
        self.signal(signal.SIGTERM)
        assert self.ended() == 0, self.log


@contextmanager
def instances(directory: Path) -> Iterator[Callable[..., Instance]]:
    """Starts instances, and leaves none of them behind."""
    started: list[Instance] = []

    def start(settings: Settings, *fates: Fate) -> Instance:
        started.append(Instance(settings, directory, fates))
        return started[-1]

    try:
        yield start
    finally:
        for instance in started:
            instance.signal(signal.SIGKILL)
            instance.ended()


class Deployed:
    """The service as it is deployed, noise and all, with a look at its memory."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        config = write_config(settings, directory)
        self._log = config.with_suffix(".log")
        command = [sys.executable, "-m", "streamer.cli", "run", "--config", str(config)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self) -> "Deployed":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def reads(self) -> None:
        """Wait until it has restored everything and reads events."""
        until(lambda: "reading" in self._log.read_text(), "reading")

    @property
    def rss(self) -> float:
        """What it holds in memory now, in MB."""
        return self._memory("VmRSS")

    @property
    def peak(self) -> float:
        """The most that it ever held, in MB."""
        return self._memory("VmHWM")

    def finish(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(WAIT_SECONDS) == 0, self._log.read_text()

    def _memory(self, field: str) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024


@contextmanager
def mortal_broker(directory: Path) -> Iterator[Broker]:
    """A broker that a test may kill: its own, whatever STREAMER_TEST_KAFKA says."""
    first, second = _ports()
    broker = begin(Broker(directory, _SOON_FORGOTTEN, port=first, controller_port=second))
    try:
        yield broker
    finally:
        broker.kill()


def _ports() -> list[int]:
    """Two free ports that no client is given by chance while the broker is dead."""
    found: list[int] = []
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found[:2]


def _state(pid: int) -> str:
    """As in ps: R running, S sleeping, T stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
