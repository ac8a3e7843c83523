"""The longest pause of the asyncio loop while steps of a million events close.

    python -m benchmarks.pause [--events 100000 --steps 2]

Health checks and the live page are answered by that loop. The service runs in this
process as it is deployed, on a real broker, beside a heart that beats every millisecond.
"""

import asyncio
import os
import signal
import statistics
import time
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.end_to_end import STREAM
from benchmarks.kafka import Deployment, broker
from benchmarks.loading import load
from benchmarks.table import Row, below, command_line
from benchmarks.workload import Workload
from streamer.config import load as settings_of
from streamer.operations.metrics import Metrics
from streamer.service import hosting
from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.watching import Phase, Watcher

POPULATION, ITEMS = 100_000_000, 100_000
BEAT = 0.001


@dataclass
class Heart:
    """Beats, and notes every gap between two beats."""

    beats: list[float] = field(default_factory=list)

    async def beat(self) -> None:
        while True:
            self.beats.append(time.perf_counter())
            await asyncio.sleep(BEAT)

    def longest(self, begin: float, end: float) -> float:
        """The longest pause that touches this time, in milliseconds."""
        beats = np.array(self.beats)
        first = max(0, int(np.searchsorted(beats, begin)) - 1)
        last = int(np.searchsorted(beats, end)) + 1
        return 1000 * (float(np.diff(beats[first:last]).max()) - BEAT)


@dataclass
class Closings(Watcher):
    """Notes when each step of so many events was being closed."""

    steps: int
    times: list[tuple[float, float]] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    _began: float = 0.0

    def timed(self, phase: Phase, seconds: float) -> None:
        if phase is Phase.DECIDE:
            self._began = time.perf_counter() - seconds

    def closed(self, decided: Decided, engine: Engine) -> None:
        if decided.hitters:
            self.times.append((self._began, time.perf_counter()))
        if decided.step >= self.steps - 1:
            self.done.set()


class Watched(Metrics):
    """The service's metrics, and the closings with them."""

    def __init__(self, closings: Closings, *options: Any) -> None:
        super().__init__(*options)
        self._closings = closings

    def timed(self, phase: Phase, seconds: float) -> None:
        super().timed(phase, seconds)
        self._closings.timed(phase, seconds)

    def closed(self, decided: Decided, engine: Engine) -> None:
        super().closed(decided, engine)
        self._closings.closed(decided, engine)


def measure(events: int = 1_000_000, steps: int = 6) -> list[Row]:
    return asyncio.run(_measure(Workload(steps * events, POPULATION, ITEMS, per_step=events)))


async def _measure(workload: Workload) -> list[Row]:
    with broker() as bootstrap:
        topic = await load(bootstrap, workload)
        settings = Deployment.reading(bootstrap, topic).environment() | STREAM
        closings, heart = Closings(workload.steps), Heart()
        # In the place of the metrics, which watch the same things.
        with (
            patch.dict(os.environ, settings),
            patch.object(hosting, "Metrics", lambda *options: Watched(closings, *options)),
        ):
            running = asyncio.create_task(hosting.serve(settings_of({})))
            beating = asyncio.create_task(heart.beat())
            done = asyncio.create_task(closings.done.wait())
            await asyncio.wait((running, done), return_when=asyncio.FIRST_COMPLETED)
        beating.cancel()
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    return _rows(workload, closings, heart)


def _rows(workload: Workload, closings: Closings, heart: Heart) -> list[Row]:
    if len(closings.times) < workload.steps:
        raise RuntimeError("a step had no hitters: this is not the work to be measured")
    pauses = [heart.longest(*times) for times in closings.times]
    took = 1000 * statistics.median(end - begin for begin, end in closings.times)
    between = heart.longest(closings.times[0][0], closings.times[-1][1])
    return [
        Row(
            f"longest pause of the loop while a step of {workload.per_step:,} events closes",
            max(pauses),
            "ms",
            below(50),
            f"{len(pauses)} steps, median {statistics.median(pauses):.0f} ms; a step closes in "
            f"{took:.0f} ms, journal and publication included; {between:.0f} ms while reading, too",
        )
    ]


if __name__ == "__main__":
    command_line(measure)
