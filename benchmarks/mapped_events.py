"""Decoding mapped JSON records of 1 kB, beside a msgspec struct written by hand.

python -m benchmarks.mapped_events [--batches 10]
"""

import random

import msgspec
import numpy as np

from benchmarks.bare_engine import TIMING
from benchmarks.stopwatch import Stopwatch
from benchmarks.table import Row, at_least, command_line
from benchmarks.workload import START
from streamer.stream.decoding import Limits
from streamer.stream.json_reader import JsonReader
from streamer.stream.mapped_events import MappedDecoder
from streamer.stream.mapping import Mapping, item_places, time_places, user_places

SIZE = 5_000
MAPPING = Mapping(
    user_places(["context.user.id"]),
    item_places(["error.exception.type"]),
    time_places(["meta.created.at"]),
)


class User(msgspec.Struct, gc=False):
    id: str


class Context(msgspec.Struct, gc=False):
    user: User


class Thrown(msgspec.Struct, gc=False):
    type: str


class Error(msgspec.Struct, gc=False):
    exception: Thrown


class Created(msgspec.Struct, gc=False):
    at: int


class Meta(msgspec.Struct, gc=False):
    created: Created


class ByHand(msgspec.Struct, gc=False):
    """What a programmer would write for these records."""

    context: Context
    error: Error
    meta: Meta


def measure(batches: int = 100) -> list[Row]:
    """In turns, on the same records."""
    generator = random.Random(1)
    watch, by_hand = Stopwatch(), msgspec.json.Decoder(ByHand)
    decoder = MappedDecoder(MAPPING, JsonReader, TIMING, Limits())
    arrivals = np.full(SIZE, START)
    for _ in range(batches):
        records = [_record(generator) for _ in range(SIZE)]
        with watch.measure("by hand"):
            columns = [
                (event.context.user.id, event.error.exception.type, event.meta.created.at)
                for event in map(by_hand.decode, records)
            ]
        with watch.measure("mapped"):
            decoded = decoder.decode(records, arrivals)
        if decoded.users != [user for user, _, _ in columns]:
            raise RuntimeError("both ways must find the same events")
    ratio = watch.median("by hand") / watch.median("mapped")
    detail = (
        f"{SIZE / watch.median('mapped'):,.0f} events/s, by hand "
        f"{SIZE / watch.median('by hand'):,.0f}; medians of {batches} batches of {SIZE:,} records "
        f"of {len(records[0]):,} bytes"
    )
    what = "decoding mapped JSON, to a struct written by hand"
    return [Row(what, ratio, "times", at_least(0.6), detail)]


def _record(generator: random.Random) -> bytes:
    """Three fields that count, and what else programs write."""
    tags = {f"tag-{number}": f"{generator.getrandbits(64):016x}" for number in range(12)}
    frames = [{"file": f"Foo{n}.java", "line": n, "in_app": True} for n in range(6)]
    return msgspec.json.encode(
        {
            "id": f"{generator.getrandbits(128):032x}",
            "context": {"tags": tags, "user": {"id": f"u-{generator.randrange(10**6)}"}},
            "error": {"exception": {"frames": frames, "type": "NullPointerException"}},
            "meta": {"sdk": "java", "created": {"at": START + generator.randrange(60_000)}},
            "message": "x" * 120,
        }
    )


if __name__ == "__main__":
    command_line(measure)
