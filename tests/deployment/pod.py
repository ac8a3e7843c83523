"""The service as its manifest starts it: its arguments, its environment, asked by its probes."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.deployment.manifests import Manifests
from tests.kafka.broker import free_port
from tests.kafka.harness import DEADLINE


class Pod:
    """A process, from the beginning of the block to its end."""

    def __init__(
        self, manifests: Manifests, environment: Mapping[str, str], directory: Path
    ) -> None:
        self.log = directory / "pod.log"
        self._manifests = manifests
        self._port = free_port()
        self._environment = {
            "PATH": os.environ["PATH"],
            **environment,
            "STREAMER_HTTP__PORT": "0",
            "STREAMER_METRICS__PORT": str(self._port),
        }

    def __enter__(self) -> "Pod":
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streamer.cli", *self._manifests.container["args"]],
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(DEADLINE)

    def passes(self, probe: str) -> bool:
        """Whether it passes this probe of its container."""
        asked = self._manifests.container[probe]
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=asked["timeoutSeconds"]
        )
        try:
            connection.request("GET", asked["httpGet"]["path"])
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()

    def becomes_ready(self) -> None:
        deadline = time.monotonic() + DEADLINE
        while not self.passes("readinessProbe"):
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"not ready: {self.log.read_text()}"
            time.sleep(0.05)

    def ends(self) -> int:
        """Its exit code after SIGTERM, if it ends within its grace period."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(self._manifests.pod["terminationGracePeriodSeconds"])
