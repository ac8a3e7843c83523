"""Closing a step of a million events: count, decide, charge.

    python -m benchmarks.step [--events 100000 --rounds 1]

Compared with `np.argsort` of the same pseudonyms, in turns within one run: only that
ratio means anything on another machine.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.bare_engine import TERMS, FilledSteps, new_intake
from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, at_most, command_line
from benchmarks.workload import STEP_MS, name_of
from streamer.stream.buffer import StepBuffer
from streamer.stream.engine import Engine

ITEMS = 100_000
HEAVY_ITEMS, HEAVY_SHARE = 5, 0.05
FIVE_ITEMS = 6
"""Argsorts: 1.5 times what a step of the same events took when only the latest item counted."""
PARTS = ("holdings", "count", "decide", "charge")


def measure(events: int = 1_000_000, rounds: int = 9) -> list[Row]:
    generator = np.random.default_rng(1)
    single = generator.integers(0, 2**64, events, dtype=np.uint64)
    some = np.where(generator.random(events) < 0.1, generator.integers(2, 5, events), 1)
    return [
        _closing("closing a step, one event a user, of an argsort", single, rounds),
        _closing("closing a step, 10% of users with several", np.repeat(single, some), rounds),
        _closing(
            "closing a step, five items a user",
            np.repeat(single[: events // 5], 5),
            rounds,
            items_per_step=5,
            most=FIVE_ITEMS,
        ),
    ]


def _closing(
    what: str,
    people: NDArray[np.uint64],
    rounds: int,
    items_per_step: int = TERMS.items_per_step,
    most: float = 4,
) -> Row:
    """Close steps of events of these users."""
    generator, events = np.random.default_rng(1), len(people)
    names = [name_of(item) for item in range(ITEMS)]
    intake = new_intake(FilledSteps)
    engine = Engine(intake, replace(TERMS, items_per_step=items_per_step))
    engine.start_at(0)
    engine.close_next(0)  # plans the period
    watch = Stopwatch()
    _watch_parts(watch, engine)
    for step in range(1, rounds + 1):
        users = generator.permutation(people)
        items = generator.integers(0, ITEMS, events)
        items[generator.random(events) < HEAVY_SHARE] %= HEAVY_ITEMS
        buffer = StepBuffer()
        held = [names[item] for item in items.tolist()]
        buffer.add(users, held, generator.integers(0, STEP_MS, events))
        buffer.holdings = watch.measured("holdings", buffer.holdings)  # type: ignore[method-assign]
        intake.fill(step, buffer)
        with watch.measure("argsort"):
            np.argsort(users)
        with watch.measure("close"):
            decided = engine.close_next(step)
        if not decided.hitters or not len(decided.charges):
            raise RuntimeError("nothing was reported: this is not the work to be measured")
    ratio = watch.median("close") / watch.median("argsort")
    parts = ", ".join(f"{part} {1000 * watch.median(part):.0f}" for part in PARTS)
    return Row(
        what,
        ratio,
        "times",
        at_most(most),
        f"{1000 * watch.median('close'):.0f} ms ({parts}) and "
        f"{1000 * watch.median('argsort'):.0f} ms; {events:,} events, "
        f"{len(np.unique(people)):,} users, {ITEMS:,} items, {rounds} steps",
    )


def _watch_parts(watch: Stopwatch, engine: Engine) -> None:
    counting, deciding = engine._counting, engine._deciding
    counting.count = watch.measured("count", counting.count)  # type: ignore[method-assign]
    counting.charge = watch.measured("charge", counting.charge)  # type: ignore[method-assign]
    deciding.decide = watch.measured("decide", deciding.decide)  # type: ignore[method-assign]


if __name__ == "__main__":
    command_line(measure)
