"""Bytes of memory for each charged user and for each buffered event.

    python -m benchmarks.memory [--users 1000000 --events 100000]

The whole process with ten million charged users is measured by `whole_process`.
"""

import tracemalloc

import numpy as np

from benchmarks.bare_engine import TERMS
from benchmarks.table import Row, at_most, command_line
from benchmarks.workload import STEP_MS
from streamer.monitors.counters import Charges, Counters
from streamer.privacy.prices import FULL
from streamer.stream.buffer import StepBuffer

CLOSING = {1: 42, 5: 108}
"""By the items of each user: as many bytes as when only the latest item counted, and 1.5 times
as many."""


def measure(users: int = 10_000_000, events: int = 1_000_000) -> list[Row]:
    return [
        _charged(users),
        *(_buffered(events, size) for size in (5_000, 1)),
        *(_closed(events, per_user, most) for per_user, most in CLOSING.items()),
    ]


def _charged(number: int) -> Row:
    """The worst case: all of them exhausted, which is noted besides."""
    generator = np.random.default_rng(1)
    users = np.unique(generator.integers(0, 2**64, number, dtype=np.uint64))
    units = np.full(len(users), FULL * TERMS.contributions, dtype=np.uint16)
    counters = Counters(TERMS.contributions)
    tracemalloc.start()
    counters.restore(Charges(users, units))
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


def _closed(number: int, per_user: int, most: float) -> Row:
    """What it takes to see who holds what at the end of a step, besides the buffer."""
    generator = np.random.default_rng(1)
    users = np.repeat(generator.integers(0, 2**64, number // per_user, dtype=np.uint64), per_user)
    names = [f"item-{place}" for place in generator.integers(0, 100_000, number).tolist()]
    buffer = StepBuffer()
    buffer.add(generator.permutation(users), names, generator.integers(0, STEP_MS, number))
    tracemalloc.start()
    holdings = buffer.holdings(per_user)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row(
        f"memory of closing a step, items a user: {per_user}",
        peak / number,
        "bytes",
        at_most(most),
        f"for each event, besides the buffer; {len(holdings.users):,} pairs of a user and an item",
    )


if __name__ == "__main__":
    command_line(measure)
