"""Events from a pipe, as they come: each arrives at the moment of reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import BinaryIO

import numpy as np

from streamer.errors import InputError
from streamer.lines.source import PARTITION, LineSplitter
from streamer.stream.intake import Batch

_READ_BYTES = 1 << 16


class LiveLines:
    """Implements `Source`: one partition, read in a thread, so that steps close on the clock
    while nothing comes."""

    def __init__(self, stream: BinaryIO, longest_line: int, clock: Callable[[], int]) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._splitter = LineSplitter(longest_line)
        self._clock = clock
        self._reading: asyncio.Task[bytes] | None = None
        self._number = 0
        self.ended = False

    async def partitions(self) -> list[str]:
        return [PARTITION]

    async def poll(self, timeout_ms: int, skip: Collection[str] = ()) -> list[Batch]:
        if PARTITION in skip or self.ended:
            return []
        if self._reading is None:
            self._reading = asyncio.create_task(asyncio.to_thread(self._read, _READ_BYTES))
        done, _ = await asyncio.wait([self._reading], timeout=timeout_ms / 1000)
        if not done:
            return []
        reading, self._reading = self._reading, None
        try:
            block = reading.result()
        except OSError as error:
            raise InputError(f"the source cannot be read: {error.strerror}") from None
        self.ended = not block
        lines = self._splitter.feed(block) if block else self._splitter.end()
        records = [line for line in lines if line.strip()]
        if not records:
            return []
        offsets = np.arange(self._number, self._number + len(records))
        self._number += len(records)
        return [Batch(PARTITION, offsets, records, np.full(len(records), self._clock()))]

    async def drained(self) -> set[str]:
        """Always: what is read later arrives later."""
        return {PARTITION}
