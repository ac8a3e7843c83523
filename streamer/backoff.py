"""How long to wait between attempts: a little at first, then twice as long each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits of one kind of attempt, in seconds. There is no jitter: clients are few.

    One run of failures takes its waits from one iterator; the next run begins a new one:

        waits = BACKOFF.waits()
        while not await attempt():
            await asyncio.sleep(next(waits))
    """

    first: float
    longest: float

    def waits(self) -> Iterator[float]:
        """The waits after the first failure, the second, and so on, without an end."""
        wait = self.first
        while True:
            yield wait
            wait = min(2 * wait, self.longest)
