"""Bytes of memory for each charged user and for each buffered event.

    python -m benchmarks.memory [--users 1000000 --events 100000]

The whole process with ten million charged users is measured by `whole_process`.
"""

import tracemalloc

import numpy as np

from benchmarks.bare_engine import TERMS
from benchmarks.table import Row, at_most, command_line
from benchmarks.workload import STEP_MS
from streamer.monitors.counters import Counters
from streamer.stream.buffer import StepBuffer


def measure(users: int = 10_000_000, events: int = 1_000_000) -> list[Row]:
    return [_charged(users), *(_buffered(events, size) for size in (5_000, 1))]


def _charged(number: int) -> Row:
    """The worst case: all of them exhausted, which is noted besides."""
    generator = np.random.default_rng(1)
    users = np.unique(generator.integers(0, 2**64, number, dtype=np.uint64))
    charges = np.full(len(users), TERMS.contributions, dtype=np.uint16)
    counters = Counters(TERMS.contributions)
    tracemalloc.start()
    counters.restore(users, charges)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    detail = f"{counters.charged:,} users, all of them exhausted, which is the worst case"
    return Row("memory of a charged user", held / len(users), "bytes", at_most(20), detail)


def _buffered(number: int, size: int) -> Row:
    """A buffer that is filled in batches of this size, over few items."""
    generator = np.random.default_rng(1)
    users = generator.integers(0, 2**64, number, dtype=np.uint64)
    times = generator.integers(0, STEP_MS, number)
    names = [f"item-{place % 10}" for place in range(number)]
    held = highest = 0.0
    tracemalloc.start()
    buffer = StepBuffer()
    for start in range(0, number, size):
        chosen = slice(start, start + size)
        buffer.add(users[chosen], names[chosen], times[chosen])
        # Small buffers are not what fills the memory.
        if len(buffer) >= number // 100 and start % 500 == 0:
            now, peak = tracemalloc.get_traced_memory()
            held, highest = max(held, now / len(buffer)), max(highest, peak / len(buffer))
            tracemalloc.reset_peak()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row(
        f"memory of a buffered event, read by {size:,}",
        highest,
        "bytes",
        at_most(64),
        f"at most, while the buffer grows; {now / number:.1f} at the end, {held:.1f} in between; "
        "besides the names of items",
    )


if __name__ == "__main__":
    command_line(measure)
