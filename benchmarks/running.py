"""The service as a process: when it says what, and what it takes of the machine."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Moment:
    """What a process had used when it said something."""

    clock: float
    cpu: float
    """Seconds, of all its threads."""


class Process:
    """A Python process, with all that it says on stderr and when."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.began = time.perf_counter()
        self._said: list[tuple[str, Moment]] = []
        self._spoke = asyncio.Condition()
        self._listening = asyncio.create_task(self._listen())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def says(self, words: str) -> Moment:
        """Wait for a line that contains these words."""
        async with asyncio.timeout(_SECONDS), self._spoke:
            await self._spoke.wait_for(lambda: self._found(words) or self._listening.done())
        found = self._found(words)
        if not found:
            raise RuntimeError(f"it ended without saying {words!r}: {self._said[-5:]}")
        return found[0]

    def memory(self, field: str) -> float:
        """VmRSS (now) or VmHWM (the peak), in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024

    async def finish(self) -> None:
        """An orderly end."""
        self._process.terminate()
        async with asyncio.timeout(_SECONDS):
            code = await self._process.wait()
        if code:
            raise RuntimeError(f"it ended with {code}: {self._said[-5:]}")

    def _found(self, words: str) -> list[Moment]:
        return [moment for line, moment in self._said if words in line]

    async def _listen(self) -> None:
        stream = self._process.stderr
        while stream is not None and (line := await stream.readline()):
            async with self._spoke:
                self._said.append((line.decode(errors="replace"), self.now()))
                self._spoke.notify_all()
        async with self._spoke:
            self._spoke.notify_all()

    def now(self) -> Moment:
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return Moment(time.perf_counter(), 0.0)  # it has ended
        return Moment(time.perf_counter(), (int(fields[11]) + int(fields[12])) / _TICKS)


@asynccontextmanager
async def process(*command: str, **environment: str) -> AsyncIterator[Process]:
    """A program with these arguments; not left behind when the block fails."""
    started = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield Process(started)
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


@asynccontextmanager
async def service(settings: Mapping[str, str]) -> AsyncIterator[Process]:
    """`streamer run`, as it is deployed."""
    async with process(sys.executable, "-m", "streamer.cli", "run", **settings) as running:
        yield running


async def answer(module: str, *arguments: str) -> dict[str, Any]:
    """The JSON line that a module of ours prints when it is done."""
    command = (sys.executable, "-m", module, *arguments)
    done = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await done.communicate()
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    return dict(json.loads(output))
