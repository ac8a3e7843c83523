"""Taking in JSON events, and which part of it takes how long.

python -m benchmarks.intake [--batches 10]
"""

import numpy as np

from benchmarks.bare_engine import TIMING, new_intake
from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, command_line
from benchmarks.workload import START, STEP_MS, Workload, render
from streamer.stream.buffer import StepBuffer
from streamer.stream.events import EventDecoder
from streamer.stream.intake import Batch, Intake
from streamer.stream.pseudonyms import Pseudonyms

SIZE = 5_000
"""As many as the service takes from the broker at a time."""


def measure(batches: int = 100) -> list[Row]:
    """The whole, and in turns with it the parts on other events of the same kind."""
    events = 2 * batches * SIZE
    columns = Workload(events, 1_000_000, 100_000, per_step=events).columns
    watch = Stopwatch()
    intake = new_intake(Intake)
    decoder, pseudonyms, buffer = EventDecoder(TIMING), Pseudonyms(bytes(32)), StepBuffer()
    for start in range(0, events, 2 * SIZE):
        part = columns.part(slice(start, start + SIZE))
        batch = Batch("0", np.arange(start, start + SIZE), render(part), part.times)
        with watch.measure("receive"):
            received = intake.receive(batch, None, START + STEP_MS)
        if received.accepted != SIZE:
            raise RuntimeError("not every event was accepted: this is not the work to be measured")
        part = columns.part(slice(start + SIZE, start + 2 * SIZE))
        records = render(part)
        with watch.measure("decode"):
            decoded = decoder.decode(records, part.times)
        with watch.measure("pseudonyms"):
            users = pseudonyms.of(decoded.users)
        with watch.measure("buffer"):
            buffer.add(users, decoded.items, decoded.times)
    whole = watch.median("receive")
    parts = ", ".join(
        f"{part} {100 * watch.median(part) / whole:.0f}%"
        for part in ("decode", "pseudonyms", "buffer")
    )
    detail = f"{parts}; median of {batches} batches of {SIZE:,}"
    return [
        Row("taking in JSON events, without the broker", SIZE / whole, "events/s", None, detail)
    ]


if __name__ == "__main__":
    command_line(measure)
