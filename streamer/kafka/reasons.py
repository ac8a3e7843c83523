"""Why the broker could not be reached or did not answer, in readable words."""

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
    """The message of aiokafka without the names of its constants; without one, the type."""
    return _FAMILY.sub("", str(error)) or type(error).__name__


@contextmanager
def broker_errors() -> Iterator[None]:
    """Any error of a broker that is away becomes UnreachableError."""
    try:
        yield
    except (KafkaError, OSError, TimeoutError) as error:
        raise UnreachableError(f"waiting for the broker ({reason_of(error)})") from error


def pass_over_orphans(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore Kafka errors that nobody awaits: futures inside a producer fail along with it."""
    if not isinstance(context.get("exception"), KafkaError):
        loop.default_exception_handler(context)
