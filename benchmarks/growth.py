"""Whether the cost of an event grows with the number of users or of distinct items.

    python -m benchmarks.growth [--events 200000 --rounds 1]

The service runs from the broker to published results, as in `end_to_end`, for fleets of
all sizes in turns. All of their users were charged before, so that the counters have their
full size.
"""

import asyncio
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.end_to_end import ITEMS_PER_STEP, run_once
from benchmarks.kafka import KEY, Deployment, broker
from benchmarks.loading import load
from benchmarks.past import write_past
from benchmarks.table import Row, at_most, command_line
from benchmarks.workload import Workload
from streamer.monitors.seam import Users
from streamer.stream.pseudonyms import Pseudonyms

USERS = (10_000, 100_000, 1_000_000, 10_000_000)
ITEMS = (100, 10_000, 1_000_000)
USUAL_USERS, USUAL_ITEMS = 1_000_000, 10_000
_CHUNK = 1_000_000


@dataclass
class Fleet:
    workload: Workload
    truth: Mapping[tuple[int, str], int]
    topic: str
    rates: list[float] = field(default_factory=list)

    async def run(self, bootstrap: str) -> None:
        deployment = Deployment.reading(bootstrap, self.topic)
        await write_past(deployment, _pseudonyms(self.workload.users), shares=(1.0,))
        run = await run_once(deployment, self.workload, self.truth)
        self.rates.append(self.workload.events / run.seconds)


def measure(events: int = 2_000_000, rounds: int = 5) -> list[Row]:
    return asyncio.run(_measure(events, rounds))


async def _measure(events: int, rounds: int) -> list[Row]:
    with broker() as bootstrap:
        by_users = {
            number: await _fleet(bootstrap, events, number, USUAL_ITEMS) for number in USERS
        }
        by_items = {
            number: await _fleet(bootstrap, events, USUAL_USERS, number) for number in ITEMS
        }
        for _ in range(rounds):
            for fleet in (*by_users.values(), *by_items.values()):
                await fleet.run(bootstrap)
    return [
        _row(f"growth over users, {USUAL_ITEMS:,} items", by_users, events, rounds),
        _row(f"growth over items, {USUAL_USERS:,} users", by_items, events, rounds),
    ]


async def _fleet(bootstrap: str, events: int, users: int, items: int) -> Fleet:
    # Two large steps: a million items can only be held if there are as many events. One
    # heavy item: also of few users enough hold it.
    size = events // 2
    workload = Workload(events, users, items, per_step=size, heavy_items=1, first_step=1)
    return Fleet(workload, workload.truth(ITEMS_PER_STEP), await load(bootstrap, workload))


@cache
def _pseudonyms(number: int) -> Users:
    """Of the users of a workload, in rising order."""
    pseudonyms = Pseudonyms(bytes.fromhex(KEY))
    parts = [
        pseudonyms.of([f"u-{user}" for user in range(start, min(start + _CHUNK, number))])
        for start in range(0, number, _CHUNK)
    ]
    return np.unique(np.concatenate(parts))


def _row(what: str, fleets: dict[int, Fleet], events: int, rounds: int) -> Row:
    rates = {number: statistics.median(fleet.rates) for number, fleet in fleets.items()}
    told = ", ".join(f"{number:,}: {rate:,.0f}" for number, rate in rates.items())
    return Row(
        f"{what}: fastest of slowest",
        max(rates.values()) / min(rates.values()),
        "times",
        at_most(1.5),
        f"events/s at {told}; {events:,} events in two steps, {rounds} rounds in turns",
    )


if __name__ == "__main__":
    command_line(measure)
