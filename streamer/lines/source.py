"""Reads events from a file or standard input, one JSON object per line."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from streamer.errors import InputError
from streamer.stream.intake import Batch

PARTITION = "lines"
"""A file is one partition; record offsets are line numbers, starting at 0."""
_READ_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LineInput:
    """An open source; `size` is in bytes on disk, None for a pipe."""

    stream: BinaryIO
    raw: BinaryIO
    size: int | None

    @property
    def position(self) -> int:
        """Number of bytes read so far."""
        return self.raw.tell()

    def close(self) -> None:
        """Leaves standard input open: others own it."""
        if self.raw is not sys.stdin.buffer:
            self.stream.close()
            self.raw.close()


def open_lines(source: str) -> LineInput:
    """A `.jsonl` or `.jsonl.gz` file, or `-` for standard input."""
    if source == "-":
        return LineInput(sys.stdin.buffer, sys.stdin.buffer, None)
    path = Path(source)
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"source is {source}: name a .jsonl or .jsonl.gz file, or - for stdin")
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InputError(f"source is {source}: {error.strerror}") from None
    packed = path.name.endswith(".gz")
    stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb")) if packed else raw
    return LineInput(stream, raw, path.stat().st_size if path.is_file() else None)


def check_packed(source: str) -> None:
    """Refuse a .gz file that is not gzipped, before any output is created."""
    path = Path(source)
    if not (path.name.endswith(".jsonl.gz") and path.is_file()):
        return
    try:
        with path.open("rb") as file:
            start = file.read(len(_GZIP))
    except OSError as error:
        raise InputError(f"source is {source}: {error.strerror}") from None
    if start not in {_GZIP, b""}:
        raise InputError(f"source is {source}: it is not gzipped; rename it to .jsonl")


def read_batches(stream: BinaryIO, longest: int) -> Iterator[Batch]:
    """The lines of a stream, as they arrive. A line longer than `longest` is truncated to one
    byte more, so it is still too long. A last line without a newline counts.
    """
    splitter = LineSplitter(longest)
    # A pipe returns what is available, a file a whole block.
    read = getattr(stream, "read1", stream.read)
    number = 0
    while True:
        try:
            block = read(_READ_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot read the source any further: {error}") from None
        lines = splitter.feed(block) if block else splitter.end()
        kept = [place for place, line in enumerate(lines) if line.strip()]
        if kept:
            offsets = np.array(kept) + number
            yield Batch(PARTITION, offsets, [lines[place] for place in kept])
        number += len(lines)
        if not block:
            return


class LineSplitter:
    """Splits a byte stream into lines; keeps at most one truncated line in memory."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = b""

    def feed(self, block: bytes) -> list[bytes]:
        """The lines that this block completes."""
        most = self._longest + 1
        *lines, rest = (self._rest + block).split(b"\n")
        # Of an overlong line, keep just enough to show that it is too long.
        self._rest = rest[:most]
        return [line if len(line) <= most else line[:most] for line in lines]

    def end(self) -> list[bytes]:
        """What is left at the end of the stream."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []
