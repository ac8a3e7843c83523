"""Stops clients of aiokafka, which may fail or hang while the broker is away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streamer.kafka.clients import client_of

_SECONDS = 2.0


async def end_client(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    """Stop a client that is no longer needed. Never fails, and never takes long."""
    if not await _done(client.stop()):
        # A half-stopped client keeps reconnecting in the background.
        inner = client_of(client) if isinstance(client, AIOKafkaConsumer) else client.client
        await _done(inner.close())


async def _done(ending: Coroutine[Any, Any, None]) -> bool:
    """Whether it finished, in time and without an error.

    It runs in its own task: aiokafka lets the cancellation of its internal tasks escape,
    which would look like a cancellation of the caller and stop the service.
    """
    task = asyncio.create_task(ending)
    await asyncio.wait([task], timeout=_SECONDS)
    if not task.done():
        task.cancel()
        return False
    return not task.cancelled() and task.exception() is None
