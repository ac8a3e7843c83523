"""A real Apache Kafka (KRaft, one node) for the tests: fetched once, started in seconds.

The jars come from Maven and are cached outside the work tree. The first broker that ends in
order leaves an archive of its classes there; with it, later ones start in half of the time.
A broker is a process of ours: it can be killed, started again on the same data, paused, and
is ended by its id.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamer" / "kafka-4.1.0"
CLASSES = CACHE / "classes.jsa"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
START_SECONDS = 90


class BrokerUnavailableError(Exception):
    """No broker can be had on this machine; says what is missing."""


def jars() -> Path:
    """The directory with Kafka's jars, fetched if it is not there yet."""
    done = CACHE / "complete"
    if done.exists():
        return CACHE / "jars"
    for program in ("java", "mvn"):
        if not shutil.which(program):
            raise BrokerUnavailableError(f"{program} is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "lock"):
        if not done.exists():
            command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
            command.append(f"-DoutputDirectory={CACHE / 'jars'}")
            fetched = subprocess.run(command, capture_output=True, text=True, check=False)
            if fetched.returncode:
                raise BrokerUnavailableError(f"mvn failed: {fetched.stdout[-500:]}")
            done.touch()
    return CACHE / "jars"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def java(main: str, *arguments: str, heap: str = "256m") -> list[str]:
    """A command line that runs one of Kafka's own programs.

    Made to start fast. A Java that cannot use the archive, because another one wrote it, says
    so if it may log, and does without.
    """
    path = ":".join(map(str, sorted(jars().glob("*.jar"))))
    archive = [f"-XX:SharedArchiveFile={CLASSES}"] if CLASSES.exists() else []
    return [
        *("java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(*archive, "-Xlog:disable", "-cp", path, main, *arguments),
    ]


@dataclass
class Broker:
    """One broker with its data in `directory`."""

    directory: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    scram_users: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    heap: str = "1g"
    process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def config(self) -> Path:
        return self.directory / "server.properties"

    def format(self) -> None:
        """Make an empty cluster."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [
            f"{name}={value}" for name, value in (self._properties() | dict(self.extra)).items()
        ]
        self.config.write_text("\n".join(lines) + "\n")
        scram = [
            part
            for name, password in self.scram_users.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        command = java(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self.config), *scram
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerUnavailableError(f"format failed: {done.stdout[-800:]}{done.stderr[-800:]}")

    def start(self) -> None:
        """Start on the data that are there, and wait until it answers."""
        log = (self.directory / "broker.log").open("ab")
        program, *command = java("kafka.Kafka", str(self.config), heap=self.heap)
        if not CLASSES.exists():
            command.insert(0, f"-XX:ArchiveClassesAtExit={self._archive}")
        self.process = subprocess.Popen([program, *command], stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        tail = (self.directory / "broker.log").read_text(errors="replace")[-2000:]
        raise BrokerUnavailableError(f"the broker did not start: {tail}")

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)
        if self._archive.exists():
            self._archive.replace(CLASSES)

    def pause(self) -> None:
        """It keeps its connections, and neither answers nor asks."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    @property
    def _archive(self) -> Path:
        """Where its classes are, if there was no archive when it started."""
        return CACHE / f"classes-{self.port}.jsa"

    def _signal(self, which: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(which)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process = None

    def _properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": (
                f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
            ),
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "num.partitions": "1",
            "log.cleaner.backoff.ms": "200",
        }
