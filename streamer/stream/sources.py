"""Where records come from: the contract that every source of a running stream keeps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from streamer.stream.intake import Batch


class Source(Protocol):
    """Records by partition, each with the moment of its arrival; a partition's in order.

    A method may raise UnreachableError. Then it is called again later, goes on where reading
    was, and nothing is lost.
    """

    @property
    def ended(self) -> bool:
        """Whether nothing more can come."""
        ...

    async def partitions(self) -> list[str]:
        """All partitions that there are now. A new one is read from its beginning."""
        ...

    async def poll(self, timeout_ms: int, skip: Collection[str] = ()) -> list[Batch]:
        """What has arrived; waits up to the timeout for something. Partitions to `skip` are
        left alone this time."""
        ...

    async def drained(self) -> set[str]:
        """Partitions of which everything that has arrived by now was returned by `poll`."""
        ...
