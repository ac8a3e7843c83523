"""How long a step of a million users and 100,000 items takes: count, decide, charge.

    python benchmarks/monitor.py

Compared with `np.argsort` of the same users' numbers in the same run.
"""

import numpy as np
from stopwatch import Stopwatch

from streamer import Guarantee, HeavyHitterMonitor, Workload, plan

USERS, ITEMS, STEPS = 1_000_000, 100_000, 15
HEAVY_ITEMS, HEAVY_SHARE = 20, 0.05


def main() -> None:
    generator = np.random.default_rng(1)
    guarantee = Guarantee(epsilon=1, delta=1e-6, contributions=10)
    monitor = HeavyHitterMonitor(plan(guarantee, Workload(1440, ITEMS, 0.05)))
    watch = Stopwatch()
    for step in range(STEPS):
        shuffled = generator.integers(0, 2**63, USERS).astype(np.uint64)
        with watch.measure("argsort"):
            np.argsort(shuffled)
        users = np.unique(shuffled)
        items = generator.integers(0, ITEMS, len(users))
        items[generator.random(len(users)) < HEAVY_SHARE] %= HEAVY_ITEMS
        monitor.begin(step)
        with watch.measure("count"):
            tally = monitor.count(users, items)
        with watch.measure("decide"):
            decision = monitor.decide(tally)
        with watch.measure("charge"):
            monitor.charge(decision, users, items)
    for part in watch.seconds:
        print(f"{part:8} {1000 * watch.median(part):8.2f} ms")
    total = sum(watch.median(part) for part in ("count", "decide", "charge"))
    print(f"count, decide and charge take {total / watch.median('argsort'):.2f} of the argsort")


if __name__ == "__main__":
    main()
