"""Parses server-sent events from a stream of bytes in chunks of any size."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

MOST_BYTES = 64 << 20
"""The limit for one event, or for any response that is held in memory as a whole."""


@dataclass(frozen=True, slots=True)
class Event:
    """A named event; the fields `id` and `retry` are not needed and ignored."""

    name: str
    data: bytes


async def events_of(
    chunks: AsyncIterable[bytes], most_bytes: int = MOST_BYTES
) -> AsyncIterator[Event]:
    """The named events, each as soon as it is complete. ConnectionError: one is too large."""
    rest = b""
    async for chunk in chunks:
        *complete, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        if len(rest) > most_bytes:
            raise ConnectionError("its response is too large")
        for text in complete:
            pairs = (line.partition(b":") for line in text.split(b"\n"))
            fields = {name: value.strip() for name, _, value in pairs}
            if b"event" in fields:
                yield Event(fields[b"event"].decode(errors="replace"), fields.get(b"data", b"{}"))
