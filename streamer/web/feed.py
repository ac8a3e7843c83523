"""The live stream of /api/events: each reader goes through the board at its own speed.

There are no queues. A reader has a place in the board's past, and when it is ready for
more it is sent what has come since, in one message. So a reader that is slow, or does not
read at all, costs one message and slows nobody; one that falls behind the past goes on
with the oldest step there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from streamer.web.answers import Promise
from streamer.web.board import Board, Kept, join

HEARTBEAT_SECONDS = 15.0
"""So often a reader hears something, so that it can tell silence from a dead connection."""
RETRY_MS = 2_000
MOST_READERS = 500
"""Below the server's limit of connections, so that other requests still get through."""
MESSAGE_STEPS, MESSAGE_BYTES = 1_000, 1 << 18
"""Of one message, if it is more than one step."""

_ALIVE = b"event: alive\ndata: {}\n\n"
_RESET = b"event: reset\ndata: {}\n\n"


class Feed:
    """The readers of one board."""

    def __init__(
        self,
        board: Board,
        most_readers: int = MOST_READERS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._board = board
        self._most_readers = most_readers
        self._heartbeat_seconds = heartbeat_seconds
        self.readers = 0
        self._messages: dict[int | None, tuple[bytes, int | None]] = {}
        self._revision = 0

    @property
    def is_full(self) -> bool:
        return self.readers >= self._most_readers

    async def read(self, since: int | None) -> AsyncIterator[bytes]:
        """Messages from the step after `since` on; without it, from the last one on."""
        self.readers += 1
        try:
            yield b"retry: %d\n\n" % RETRY_MS
            async for message in self._messages_from(since):
                yield message
        finally:
            self.readers -= 1

    async def _messages_from(self, place: int | None) -> AsyncIterator[bytes]:
        board, promise, seen = self._board, None, -1
        while not board.ended:
            if board.promise != promise and board.promise is not None:
                promise = board.promise
                yield _guarantee(promise)
            elif place is not None and board.through is not None and place > board.through:
                # Another stream than the one that the reader knows: it must forget that.
                place = None
                yield _RESET
            elif board.revision != seen or self._is_behind(place):
                # Read before the message is sent: it may take long, and more may come.
                seen = board.revision
                message, place = self._message(place)
                yield message
            else:
                try:
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await board.news()
                except TimeoutError:
                    yield _ALIVE

    def _is_behind(self, place: int | None) -> bool:
        through = self._board.through
        return place is not None and through is not None and place < through

    def _message(self, place: int | None) -> tuple[bytes, int | None]:
        """What comes after a place, and the place after it: the same for all who are there."""
        if self._revision != self._board.revision:
            self._revision = self._board.revision
            self._messages.clear()
        if place not in self._messages:
            self._messages[place] = self._make(place)
        return self._messages[place]

    def _make(self, place: int | None) -> tuple[bytes, int | None]:
        board = self._board
        steps = board.newest(1) if place is None else board.after(place, MESSAGE_STEPS)
        steps = _cut(steps)
        if steps:
            place = steps[-1].step
        hitters = b"null" if self._is_behind(place) else board.current_json
        data = b'{"steps":' + join(steps) + b',"hitters":' + hitters + b"}"
        number = b"" if place is None else b"id: %d\n" % place
        return number + b"event: published\ndata: " + data + b"\n\n", place


def _cut(steps: list[Kept]) -> list[Kept]:
    """As many as fit into one message, and at least one."""
    size = 0
    for place, kept in enumerate(steps):
        size += len(kept.json)
        if place and size > MESSAGE_BYTES:
            return steps[:place]
    return steps


def _guarantee(promise: Promise) -> bytes:
    return b"event: guarantee\ndata: " + msgspec.json.encode(promise) + b"\n\n"
