"""A reader of a live page's API: the recent past first, then every publication as it happens.

Whatever breaks the connection, it is made again, and what was missed is had then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from streamer.backoff import Backoff
from streamer.errors import InputError
from streamer.web.answers import Promise, Published, Steps
from streamer.web.request import Address, answer_of

BACKOFF = Backoff(0.5, 10.0)
_MOST_BYTES = 64 << 20
"""Of one answer, or one event."""
_Kind = TypeVar("_Kind")


class Listener(Protocol):
    """Who is told."""

    def state(self, trouble: str) -> None:
        """Why nothing comes at the moment; "" if all is well."""
        ...

    def guarantee(self, promise: Promise) -> None: ...

    def published(self, published: Published) -> None: ...

    def reset(self) -> None:
        """What was told is of another stream than what comes now."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event."""

    name: str
    data: bytes


@dataclass(slots=True)
class Follower:
    """Follows one page, until it is cancelled."""

    address: Address
    past: int
    """So many records of closed steps are asked for at first."""
    listener: Listener
    backoff: Backoff = BACKOFF
    _since: int | None = None
    """The last step that the listener knows."""
    _reached: bool = False
    _waits: Iterator[float] = field(init=False)

    async def run(self) -> None:
        """InputError: there is nothing to follow. Once there was, it is waited for."""
        self._waits = self.backoff.waits()
        while True:
            try:
                await self._follow()
            except ConnectionError as trouble:
                if not self._reached:
                    raise InputError(f"{self.address.url} cannot be watched: {trouble}") from None
                self.listener.state(str(trouble))
                await asyncio.sleep(next(self._waits))

    async def _follow(self) -> None:
        """One connection, up to its end or to another stream."""
        if self._since is None:
            path = f"/api/steps?limit={self.past}"
            async with aclosing(answer_of(self.address, path, "application/json")) as body:
                known = _decoded(Steps, await _whole(body))
            self._reached = True
            self.listener.published(Published(known.steps, None))
            self._since = known.through
        path = "/api/events" if self._since is None else f"/api/events?since={self._since}"
        async with aclosing(answer_of(self.address, path, "text/event-stream")) as body:
            async for event in events_of(body):
                self._waits = self.backoff.waits()
                self.listener.state("")
                last = tell(self.listener, event)
                self._since = self._since if last is None else last
                if event.name == "reset":
                    self._since = None
                    return
        raise ConnectionError("it has ended the connection")


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """The events of a stream of bytes, as they are complete."""
    rest = b""
    async for chunk in chunks:
        *complete, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        if len(rest) > _MOST_BYTES:
            raise ConnectionError("it sends more than can be read")
        for text in complete:
            pairs = (line.partition(b":") for line in text.split(b"\n"))
            fields = {name: value.strip() for name, _, value in pairs}
            if b"event" in fields:
                yield Event(fields[b"event"].decode(errors="replace"), fields.get(b"data", b"{}"))


def tell(listener: Listener, event: Event) -> int | None:
    """Hand an event on; the last closed step, if it names one."""
    if event.name == "guarantee":
        listener.guarantee(_decoded(Promise, event.data))
    elif event.name == "reset":
        listener.reset()
    elif event.name == "published":
        published = _decoded(Published, event.data)
        listener.published(published)
        return published.steps[-1].step if published.steps else None
    return None


async def _whole(body: AsyncIterable[bytes]) -> bytes:
    whole = bytearray()
    async for chunk in body:
        whole += chunk
        if len(whole) > _MOST_BYTES:
            raise ConnectionError("it sends more than can be read")
    return bytes(whole)


def _decoded(kind: type[_Kind], data: bytes) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConnectionError("it does not speak as a live page of streamer does") from None
