"""Whether the cost of an event grows with the number of users or of distinct items.

    python -m benchmarks.growth [--events 100000 --rounds 1]

JSON events of one step after the other are decoded, judged, buffered and counted, and the
holders of what is reported are charged; without the broker, which knows neither users nor
items. All of the users were charged before, so that the counters have their full size.
All sizes take turns.
"""

import statistics
import time
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.bare_engine import TERMS, new_intake
from benchmarks.table import Row, at_most, command_line
from benchmarks.workload import STEP_MS, Workload, render
from streamer.stream.engine import Engine, EngineState
from streamer.stream.intake import Batch, Intake
from streamer.stream.periods import Period
from streamer.stream.pseudonyms import Pseudonyms

USERS = (10_000, 100_000, 1_000_000, 10_000_000)
ITEMS = (100, 10_000, 1_000_000)
USUAL_USERS, USUAL_ITEMS = 1_000_000, 10_000
_BATCH = 5_000


@dataclass
class Fleet:
    """An engine whose users were all charged once."""

    users: int
    items: int
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [f"u-{user}" for user in range(self.users)]
        charged = np.unique(Pseudonyms(bytes(32)).of(names))
        once = np.ones(len(charged), dtype=np.uint16)
        self._engine = Engine(
            new_intake(Intake), TERMS, EngineState(-1, Period.containing(0, TERMS), charged, once)
        )

    def run(self, step: int, events: int) -> None:
        """One step of so many events."""
        # One heavy item: also of few users enough hold it.
        workload = Workload(
            events, self.users, self.items, per_step=events, heavy_items=1, seed=step
        )
        taken = 0.0
        for start in range(0, events, _BATCH):
            part = workload.columns.part(slice(start, start + _BATCH))
            times = part.times + step * STEP_MS
            offsets = np.arange(start, start + len(times))
            batch = Batch("0", offsets, render(replace(part, times=times)), times)
            began = time.perf_counter()
            self._engine.intake.receive(batch, step - 1, None)
            taken += time.perf_counter() - began
        began = time.perf_counter()
        decided = self._engine.close_next(step)
        taken += time.perf_counter() - began
        if not decided.hitters:
            raise RuntimeError("nothing was reported: this is not the work to be measured")
        self.rates.append(events / taken)


def measure(events: int = 1_000_000, rounds: int = 5) -> list[Row]:
    by_users = {number: Fleet(number, USUAL_ITEMS) for number in USERS}
    by_items = {number: Fleet(USUAL_USERS, number) for number in ITEMS}
    for step in range(rounds):
        for fleet in (*by_users.values(), *by_items.values()):
            fleet.run(step, events)
    return [
        _row(f"growth over users, {USUAL_ITEMS:,} items", by_users, events, rounds),
        _row(f"growth over items, {USUAL_USERS:,} users", by_items, events, rounds),
    ]


def _row(what: str, fleets: dict[int, Fleet], events: int, rounds: int) -> Row:
    rates = {number: statistics.median(fleet.rates) for number, fleet in fleets.items()}
    told = ", ".join(f"{number:,}: {rate:,.0f}" for number, rate in rates.items())
    return Row(
        f"{what}: fastest of slowest",
        max(rates.values()) / min(rates.values()),
        "times",
        at_most(1.5),
        f"events/s at {told}; steps of {events:,}, {rounds} rounds in turns",
    )


if __name__ == "__main__":
    command_line(measure)
