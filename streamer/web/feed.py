"""The live stream of /api/events: each reader follows the board at its own speed.

There are no queues. A reader has a position in the board's history. When it is ready for
more, it gets everything since then in one message. So a slow or stalled reader costs one
message and delays nobody; one that falls behind the history continues with the oldest
step available.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from streamer.web.answers import Promise
from streamer.web.board import Board, Kept, join

HEARTBEAT_SECONDS = 15.0
"""Readers get a message at least this often, so they can detect a dead connection."""
RETRY_MS = 2_000
MOST_READERS = 500
"""Below the server's connection limit, so that other requests still get through."""
MESSAGE_STEPS, MESSAGE_BYTES = 1_000, 1 << 18
"""Limits of one message; it always contains at least one step if there is one."""

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
        """Messages starting after step `since`; without it, starting with the last step."""
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
                # The reader has data of another stream and must discard it.
                place = None
                yield _RESET
            elif board.revision != seen or self._is_behind(place):
                # Noted before sending: that can take long, and more can be published meanwhile.
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
        """What follows a position, and the next position; shared by all readers at `place`."""
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
