"""What a live page sends, decoded and passed to a listener that shows it."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from streamer.web.answers import Promise, Published
from streamer.web.event_stream import Event

_Kind = TypeVar("_Kind")


class Listener(Protocol):
    """Shows a stream."""

    def state(self, trouble: str) -> None:
        """Why nothing is being received; "" in normal operation."""
        ...

    def guarantee(self, promise: Promise) -> None: ...

    def published(self, published: Published) -> None: ...

    def reset(self) -> None:
        """What follows belongs to another stream than what came before."""
        ...


def tell(listener: Listener, event: Event) -> int | None:
    """Pass an event on; returns the last closed step, if the event names one."""
    if event.name == "guarantee":
        listener.guarantee(decoded(Promise, event.data))
    elif event.name == "reset":
        listener.reset()
    elif event.name == "published":
        published = decoded(Published, event.data)
        listener.published(published)
        return published.steps[-1].step if published.steps else None
    return None


def decoded(kind: type[_Kind], data: bytes) -> _Kind:
    """Decode a response or the data of an event. ConnectionError: not from a live page."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConnectionError("it does not respond like a live page of streamer") from None
