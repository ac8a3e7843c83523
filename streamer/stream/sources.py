"""Where records come from: the contract of every source of a running stream."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from streamer.stream.intake import Batch


class Source(Protocol):
    """Records by partition, each with its arrival time, in order within a partition.

    A method may raise UnreachableError. It is then called again later and continues at the
    same position, so nothing is lost.
    """

    @property
    def ended(self) -> bool:
        """Whether there will be no more records."""
        ...

    async def partitions(self) -> list[str]:
        """All current partitions. A new partition is read from its beginning."""
        ...

    async def poll(self, timeout_ms: int, skip: Collection[str] = ()) -> list[Batch]:
        """Records that have arrived; waits up to the timeout for some. Partitions in `skip` are
        not read in this call."""
        ...

    async def drained(self) -> set[str]:
        """Partitions for which `poll` has returned everything that has arrived by now."""
        ...
