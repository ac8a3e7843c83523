"""The contract of a ledger, which makes decisions durable and publishes them.

The protocol of a step: the engine decides; `append` makes the decision durable; `publish`
publishes it and records that. After a crash before `append` returns, the step was never
decided. After a later crash, `restore` returns the decision, and it is published again,
unchanged. No step is decided twice, no published value changes, no charge is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from streamer.monitors.counters import Charges
from streamer.stream.decided import Decided
from streamer.stream.engine import EngineState
from streamer.stream.publication import Publication


@dataclass(frozen=True, slots=True)
class Life:
    """What is fixed for the life of a ledger: how time is divided into steps."""

    length_ms: int
    epoch_ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a ledger stores for a closed step: the decision, and the offsets to continue from.

    `read`: how far each partition was read when the step was closed, which may be further than
    `offsets`. Only a ledger of a source that continues by offsets needs to store it.
    """

    decided: Decided
    offsets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    read: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Restored:
    """The past, as a ledger recorded it."""

    state: EngineState
    last: Entry
    """The last decision, with the offsets to continue from. If it is later than `published`,
    it may or may not have been published: it is published again, unchanged."""
    published: int
    """The last step that is known to be published."""
    key: str
    """The fingerprint of the key that this period's pseudonyms were made with."""
    history: Sequence[Decided] = ()
    """The last decisions, oldest first, without the users that they charged."""


class Ledger(Protocol):
    """Used by one process at a time: first `restore`, then `claim`, then everything else."""

    async def restore(self) -> Restored | None:
        """The past; None for a new ledger. Changes nothing. UnusableJournalError: the ledger
        cannot be used, or results were published that it does not contain."""
        ...

    async def claim(self) -> None:
        """Take over: remove what a crash left half written, convert a ledger of an older format,
        and let an older process that is still running detect that it was replaced."""
        ...

    async def append(self, entry: Entry) -> None:
        """Make a decision durable, all or nothing. JournalWriteError: the process must stop."""
        ...

    async def publish(self, publication: Publication) -> None:
        """Publish records durably, and record that everything up to them is published."""
        ...

    @property
    def snapshot_due(self) -> bool:
        """Whether there are enough charges since the last snapshot for a new one."""
        ...

    async def snapshot(self, charges: Charges) -> None:
        """Store all counters as they are now, and delete the charges that led to them."""
        ...


class SnapshotRule:
    """A snapshot is due when the charges since the last one take up half as much space as it.

    So a ledger is never larger than about 1.5 times its counters.
    """

    USER_BYTES = 10
    """Of a user and the units, in a charge as in a snapshot."""
    LEAST_BYTES = 1 << 20

    def __init__(self) -> None:
        self._charges = 0
        self._users = 0

    @property
    def due(self) -> bool:
        return self.USER_BYTES * (self._charges - self._users / 2) > self.LEAST_BYTES

    def charged(self, charges: int) -> None:
        """This many charges were appended."""
        self._charges += charges

    def taken(self, users: int) -> None:
        """A snapshot of this many users was taken."""
        self._charges, self._users = 0, users

    def forget(self) -> None:
        """A new period: nobody has been charged."""
        self.taken(0)
