"""Decoding events whose times are written in different forms of ISO 8601.

python -m benchmarks.event_times [--batches 10]
"""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from benchmarks.bare_engine import TIMING
from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, at_most, command_line
from streamer.stream.events import EventDecoder

SIZE = 5_000
MIXED = "mixed"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
Form = Callable[[datetime], str]


def _zulu(precision: str, more: str = "") -> Form:
    return lambda time: f"{time.replace(tzinfo=None).isoformat(timespec=precision)}{more}Z"


FORMS: dict[str, Form] = {
    "milliseconds": _zulu("milliseconds"),
    "seconds": _zulu("seconds"),
    "microseconds": _zulu("microseconds"),
    "nanoseconds": _zulu("microseconds", "789"),
    "offset": lambda time: time.isoformat(timespec="microseconds"),
    "space": lambda time: time.isoformat(sep=" ", timespec="milliseconds"),
}


def measure(batches: int = 100) -> list[Row]:
    """All forms in turns, and a batch in which they are mixed."""
    generator = random.Random(1)
    decoder, watch = EventDecoder(TIMING), Stopwatch()
    arrivals = np.zeros(SIZE, dtype=np.int64)
    for _ in range(batches):
        times = [BEGIN + timedelta(microseconds=generator.randrange(10**12)) for _ in range(SIZE)]
        users = [f"u-{generator.randrange(10**6)}" for _ in range(SIZE)]
        mixed = [generator.choice(list(FORMS.values())) for _ in range(SIZE)]
        for name, forms in (
            {name: [form] * SIZE for name, form in FORMS.items()} | {MIXED: mixed}
        ).items():
            records = [
                msgspec.json.encode(
                    {"user": user, "item": "crash:NPE:Foo.java:42", "time": form(time)}
                )
                for user, form, time in zip(users, forms, times, strict=True)
            ]
            with watch.measure(name):
                decoded = decoder.decode(records, arrivals)
            if len(decoded.users) != SIZE:
                raise RuntimeError("not every event was decoded: this is not the work to measure")
    fastest = min(map(watch.median, FORMS))
    shares = ", ".join(f"{name} {watch.median(name) / fastest:.2f}" for name in FORMS)
    detail = f"{shares}; medians of {batches} batches of {SIZE:,}"
    ratio = watch.median(MIXED) / fastest
    return [
        Row("decoding mixed forms of times, to the fastest", ratio, "times", at_most(1.15), detail)
    ]


if __name__ == "__main__":
    command_line(measure)
