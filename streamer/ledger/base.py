"""The contract of a journal, and what can be had back from one.

The protocol of a step: the engine decides; `append` makes the decision durable; it is
published; `note_published` says so. A crash before `append` returns: the step was never
decided. A crash after it: the decision is had back by `restore` and published again as
it was. No step is decided twice, no published value changes, no charge is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.counters import Users
from streamer.stream.engine import EngineState
from streamer.stream.publication import Published
from streamer.stream.records import Decided, Entry


@dataclass(frozen=True, slots=True)
class Life:
    """What is fixed for a journal's life: how time is cut into steps."""

    length_ms: int
    epoch_ms: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The past, as a journal tells it."""

    state: EngineState
    last: Entry
    """The last decision, with where to read on. If it is ahead of what is published, it may
    or may not have been published: it is published again, as it was decided."""
    published: Published
    key: str
    """The fingerprint of the key that the pseudonyms of this period were made with."""


class Journal(Protocol):
    """Kept by one process at a time."""

    async def restore(self) -> Restored | None:
        """The past; None for a new journal. UnusableJournalError: it is left as it is."""
        ...

    async def append(self, entry: Entry) -> None:
        """Make a decision durable, all or nothing. JournalWriteError: the process must end."""
        ...

    async def note_published(self, published: Published) -> None:
        """Nothing up to here needs to be published again. Also before the first append."""
        ...

    @property
    def snapshot_due(self) -> bool:
        """Whether the charges since the last snapshot outweigh a new one."""
        ...

    async def snapshot(self, users: Users, charges: NDArray[np.uint16]) -> None:
        """Keep all counters as they are now, and forget the charges that led to them."""
        ...

    async def history(self, steps: int) -> Sequence[Decided]:
        """The last decisions, the oldest first, without whom they charged."""
        ...

    async def close(self) -> None: ...


class SnapshotRule:
    """A snapshot is due when the charges since the last one take half as much room as it.

    So a journal is never larger than about one and a half times its counters.
    """

    CHARGE_BYTES, COUNTER_BYTES = 8, 10
    LEAST_BYTES = 1 << 20

    def __init__(self) -> None:
        self._charges = 0
        self._users = 0

    @property
    def due(self) -> bool:
        counters = self.COUNTER_BYTES * self._users
        return self.CHARGE_BYTES * self._charges > counters / 2 + self.LEAST_BYTES

    def charged(self, users: int) -> None:
        """So many charges were appended."""
        self._charges += users

    def taken(self, users: int) -> None:
        """A snapshot of so many users was taken."""
        self._charges, self._users = 0, users

    def forget(self) -> None:
        """A new period: nobody is charged."""
        self.taken(0)
