"""Why the broker could not be reached or did not answer, in words for people."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiokafka.errors import KafkaError

from streamer.errors import UnreachableError

_FAMILY = re.compile(r", <AddressFamily\.\w+: \d+>")


def reason_of(error: BaseException) -> str:
    """What aiokafka says, without the names of its constants; an error may say nothing."""
    return _FAMILY.sub("", str(error)) or type(error).__name__


@contextmanager
def broker_errors() -> Iterator[None]:
    """Whatever a broker that is away makes of a request is UnreachableError."""
    try:
        yield
    except (KafkaError, OSError, TimeoutError) as error:
        raise UnreachableError(f"waiting for the broker ({reason_of(error)})") from error


def pass_over_orphans(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle what nobody waits for: when a producer fails, so do futures inside of it."""
    if not isinstance(context.get("exception"), KafkaError):
        loop.default_exception_handler(context)
