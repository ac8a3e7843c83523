"""What a step costs: closing it, keeping its events in memory, taking them in.

    python benchmarks/step.py

Closing is compared with `np.argsort` of the same pseudonyms, in turns within one run:
only that ratio means anything on another machine.
"""

import tracemalloc

import numpy as np
from numpy.typing import NDArray
from stopwatch import Stopwatch

import streamer.stream.engine as engine_module
from streamer.monitors.heavy_hitters import count_holders
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.buffer import StepBuffer
from streamer.stream.engine import Engine
from streamer.stream.events import EventDecoder
from streamer.stream.fate import FateRule
from streamer.stream.intake import Batch, Intake
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.timing import StepTiming, format_rfc3339

EVENTS, ITEMS, ROUNDS = 1_000_000, 100_000, 9
HEAVY_ITEMS, HEAVY_SHARE = 20, 0.05
MOST_RATIO, MOST_BYTES = 4, 64
BATCH, BATCHES = 2_000, 100
STEP_MS = 60_000
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
TERMS = Terms(
    epsilon=1,
    delta=1e-6,
    contributions=10,
    neighbours=Neighbours.REPLACE,
    calibration=Method.EXACT,
    period_steps=1440,
    refresh_steps=1,
    beta=0.05,
    items=ITEMS,
)


class FilledSteps(Intake):
    """An intake whose steps are filled with columns: what was decoded does not matter here."""

    def fill(self, step: int, buffer: StepBuffer) -> None:
        self._open[step] = buffer


def new_intake(kind: type[Intake] = Intake) -> Intake:
    timing = StepTiming(STEP_MS, START, lateness_ms=STEP_MS)
    return kind(EventDecoder(timing), FateRule(timing, STEP_MS), Pseudonyms(bytes(32)))


def closing(title: str, several: float) -> None:
    """Close steps of a million events, of users of whom this share has two to four."""
    generator = np.random.default_rng(1)
    per_user = np.ones(EVENTS, dtype=np.int64)
    rich = generator.random(EVENTS) < several
    per_user[rich] = generator.integers(2, 5, np.count_nonzero(rich))
    people = generator.integers(0, 2**64, EVENTS, dtype=np.uint64)
    events = np.repeat(people, per_user)[:EVENTS]
    names = [f"crash:NullPointerException:Screen{item}.java:42" for item in range(ITEMS)]
    intake = new_intake(FilledSteps)
    engine = Engine(intake, TERMS)
    engine.start_at(0)
    engine.close_next(0)  # plans the period
    watch = Stopwatch()
    watch_parts(watch, engine)
    for step in range(1, ROUNDS + 1):
        users = generator.permutation(events)
        items = generator.integers(0, ITEMS, EVENTS)
        items[generator.random(EVENTS) < HEAVY_SHARE] %= HEAVY_ITEMS
        buffer = StepBuffer()
        held = [names[item] for item in items.tolist()]
        buffer.add(users, held, generator.integers(0, STEP_MS, EVENTS))
        buffer.contents = watch.measured("contents", buffer.contents)  # type: ignore[method-assign]
        intake.fill(step, buffer)
        with watch.measure("argsort"):
            np.argsort(users)
        with watch.measure("close"):
            decided = engine.close_next(step)
        if not decided.hitters or not len(decided.charged):
            raise RuntimeError("nothing was reported: this is not the work to be measured")
    ratio = watch.median("close") / watch.median("argsort")
    print(f"{title}: {len(np.unique(events)):,} users, {ROUNDS} steps, medians")
    for part in ("argsort", "close", "contents", "active", "count", "decide", "charge"):
        print(f"  {part:24} {1000 * watch.median(part):9.1f} ms")
    limit = f"at most {MOST_RATIO}: {verdict(ratio, MOST_RATIO)}"
    print(f"  {'close / argsort':24} {ratio:9.2f}    {limit}")


def watch_parts(watch: Stopwatch, engine: Engine) -> None:
    counters, decider = engine.counters, engine._decider
    counters.active = watch.measured("active", counters.active)  # type: ignore[method-assign]
    counters.charge = watch.measured("charge", counters.charge)  # type: ignore[method-assign]
    decider.decide = watch.measured("decide", decider.decide)  # type: ignore[method-assign]
    engine_module.count_holders = watch.measured("count", count_holders)


def memory(size: int) -> None:
    """Bytes of an event in a buffer that is filled in batches of this size, over few items."""
    generator = np.random.default_rng(1)
    users = generator.integers(0, 2**64, EVENTS, dtype=np.uint64)
    times = generator.integers(0, STEP_MS, EVENTS)
    names = [f"item-{place % 10}" for place in range(EVENTS)]
    held = highest = 0.0
    tracemalloc.start()
    buffer = StepBuffer()
    for start in range(0, EVENTS, size):
        chosen = slice(start, start + size)
        buffer.add(users[chosen], names[chosen], times[chosen])
        # Small buffers are not what fills the memory.
        if len(buffer) >= EVENTS // 100 and start % 500 == 0:
            now, peak = tracemalloc.get_traced_memory()
            held, highest = max(held, now / len(buffer)), max(highest, peak / len(buffer))
            tracemalloc.reset_peak()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"  in batches of {size:<10} {now / EVENTS:9.1f}    at the end; {held:.1f} at most, "
        f"{highest:.1f} while growing; at most {MOST_BYTES}: {verdict(highest, MOST_BYTES)}"
    )


def intake_rate() -> None:
    """Take in JSON events of one step; beside it, the parts on other events of the same kind.

    Other ones, because the moments that a time text names are remembered.
    """
    generator = np.random.default_rng(1)
    watch = Stopwatch()
    intake = new_intake()
    decoder = EventDecoder(StepTiming(STEP_MS, START))
    pseudonyms, buffer = Pseudonyms(bytes(32)), StepBuffer()
    for number in range(BATCHES):
        records, arrivals = json_events(generator)
        offsets = np.arange(number * BATCH, (number + 1) * BATCH)
        with watch.measure("receive"):
            received = intake.receive(Batch("0", offsets, records, arrivals), None, START + STEP_MS)
        if received.accepted != BATCH:
            raise RuntimeError("not every event was accepted: this is not the work to be measured")
        records, arrivals = json_events(generator)
        with watch.measure("decode"):
            decoded = decoder.decode(records, arrivals)
        with watch.measure("pseudonyms"):
            users = pseudonyms.of(decoded.users)
        with watch.measure("buffer"):
            buffer.add(users, decoded.items, decoded.times)
    whole = watch.median("receive")
    print(f"taking in batches of {BATCH:,} JSON events, median of {BATCHES}")
    print(f"  {'receive':24} {BATCH / whole:9,.0f} records/s")
    for part in ("decode", "pseudonyms", "buffer"):
        print(f"  {part:24} {100 * watch.median(part) / whole:9.0f} % of the time")


def json_events(generator: np.random.Generator) -> tuple[list[bytes], NDArray[np.int64]]:
    """A batch of events with times to the millisecond, each arriving at its time."""
    moments = START + np.sort(generator.integers(0, STEP_MS, BATCH))
    people = generator.integers(0, EVENTS, BATCH).tolist()
    items = generator.integers(0, ITEMS, BATCH).tolist()
    records = [
        f'{{"user":"u-{user}","item":"crash:NPE:Screen{item}.java:42",'
        f'"time":"{format_rfc3339(moment)}"}}'.encode()
        for user, item, moment in zip(people, items, moments.tolist(), strict=True)
    ]
    return records, moments


def verdict(value: float, most: float) -> str:
    return "kept" if value <= most else "MISSED"


def main() -> None:
    closing("closing a step, one event a user", several=0)
    closing("closing a step, 10% of users with several events", several=0.1)
    print("bytes of memory per buffered event, besides the names of items")
    for size in (500, 1):
        memory(size)
    intake_rate()


if __name__ == "__main__":
    main()
