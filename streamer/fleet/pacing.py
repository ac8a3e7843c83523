"""Simulated records in real time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import numpy as np

from streamer.fleet.simulation import Events

_SLICE_SECONDS = 0.05


async def paced(
    batches: Iterable[Events],
    clock: Callable[[], int],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[Events]:
    """Yield each record when the clock (milliseconds since 1970) reaches its arrival."""
    for events in batches:
        done = 0
        while done < len(events):
            due = int(np.searchsorted(events.arrivals, clock(), side="right"))
            if due > done:
                yield events.take(slice(done, due))
                done = due
            else:
                await sleep(_SLICE_SECONDS)
