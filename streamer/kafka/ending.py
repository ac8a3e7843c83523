"""Ending clients of aiokafka, which does not always go well when the broker is away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streamer.kafka.clients import client_of

_SECONDS = 2.0


async def end_client(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    """An end that must not fail, nor take long: what it ends is useless anyway."""
    if not await _done(client.stop()):
        # Half stopped, it would go on reconnecting in the background for ever.
        inner = client_of(client) if isinstance(client, AIOKafkaConsumer) else client.client
        await _done(inner.close())


async def _done(ending: Coroutine[Any, Any, None]) -> bool:
    """Whether it came to its end.

    In a task of its own: aiokafka lets the cancellation of its own tasks out, and here it
    would be taken for ours and end the service.
    """
    task = asyncio.create_task(ending)
    await asyncio.wait([task], timeout=_SECONDS)
    if not task.done():
        task.cancel()
        return False
    return not task.cancelled() and task.exception() is None
