"""Exponential backoff: how long to wait between attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits of one kind of attempt, in seconds. No jitter, because there are few clients.

    Each series of failures uses its own iterator:

        waits = BACKOFF.waits()
        while not await attempt():
            await asyncio.sleep(next(waits))
    """

    first: float
    longest: float

    def waits(self) -> Iterator[float]:
        """The waits after the first failure, the second, and so on; doubling, without end."""
        wait = self.first
        while True:
            yield wait
            wait = min(2 * wait, self.longest)
