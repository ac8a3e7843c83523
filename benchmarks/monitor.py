"""A step of a million users and 100,000 items with the library's monitor.

    python -m benchmarks.monitor [--steps 3]

Compared with `np.argsort` of the same users' numbers in the same run.
"""

import numpy as np

from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, command_line
from streamer import Guarantee, Workload, plan
from streamer.monitors.attention import pace_of
from streamer.monitors.counting import Counting
from streamer.monitors.deciding import Deciding
from streamer.monitors.seam import Holdings, OwnNumbers

USERS, ITEMS = 1_000_000, 100_000
HEAVY_ITEMS, HEAVY_SHARE = 20, 0.05
PARTS = ("count", "decide", "charge")


def measure(steps: int = 15) -> list[Row]:
    generator = np.random.default_rng(1)
    guarantee = Guarantee(epsilon=1, delta=1e-6, contributions=10)
    counting: Counting[int] = Counting(guarantee.contributions)
    deciding: Deciding[int] = Deciding()
    planned = plan(guarantee, Workload(1440, ITEMS, 0.05))
    deciding.begin(planned, pace_of(planned))
    watch = Stopwatch()
    for step in range(steps):
        shuffled = generator.integers(0, 2**63, USERS).astype(np.uint64)
        with watch.measure("argsort"):
            np.argsort(shuffled)
        users = np.unique(shuffled)
        items = generator.integers(0, ITEMS, len(users))
        items[generator.random(len(users)) < HEAVY_SHARE] %= HEAVY_ITEMS
        with watch.measure("count"):
            counted = counting.count(step, Holdings(users, items, OwnNumbers()))
        with watch.measure("decide"):
            decision = deciding.decide(counted.tally)
        with watch.measure("charge"):
            counting.charge(counted, decision)
    ratio = sum(watch.median(part) for part in PARTS) / watch.median("argsort")
    parts = ", ".join(f"{part} {1000 * watch.median(part):.1f} ms" for part in PARTS)
    detail = f"{parts}; users in order, {steps} steps"
    return [Row("the library's monitor, of an argsort", ratio, "times", None, detail)]


if __name__ == "__main__":
    command_line(measure)
