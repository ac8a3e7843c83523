"""From records to the buffers of open steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from streamer.monitors.seam import Users
from streamer.stream.buffer import StepBuffer
from streamer.stream.decoding import Decoder, Envelopes, Rejection
from streamer.stream.fate import FateRule
from streamer.stream.file_range import FileRange
from streamer.stream.moments import Moments
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.reasons import Reason


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one partition. Arrivals and envelopes are None for a file."""

    partition: str
    offsets: NDArray[np.int64]
    records: Sequence[bytes | None]
    arrivals: Moments | None = None
    envelopes: Envelopes | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """What happened to the records of a batch.

    `already_closed` events belong to a step that was closed before this process started: they
    are read again. `missed` events belong to a step that was closed without them: they could
    not be read in time. `left` events belong to a step after the end of this run over a file:
    they are left for the next run. `ignored` events are not wanted: the settings say so.
    """

    accepted: int
    late: int
    already_closed: int
    missed: int
    left: int
    ignored: int
    rejections: list[Rejection]


class Intake:
    """Decodes records, judges each event independently, and buffers those that count."""

    def __init__(
        self,
        decoder: Decoder,
        rule: FateRule,
        pseudonyms: Pseudonyms,
        file_range: FileRange | None = None,
    ) -> None:
        """`file_range`: which events of a file are for this run; None if there is no file."""
        self._decoder = decoder
        self._rule = rule
        self._file_range = file_range
        self._pseudonyms = pseudonyms
        self._open: dict[int, StepBuffer] = {}
        self._first_offsets: dict[int, dict[str, int]] = {}
        self._positions: dict[str, int] = {}
        self._read_before: Mapping[str, int] = {}
        """Per partition, where reading was when the last step before the restart was closed."""
        self._first: int | None = None
        """The first step that this process closes; None before there is one."""

    @property
    def buffered(self) -> int:
        """How many events are buffered. Safe to call while another thread takes a step."""
        return sum(map(len, tuple(self._open.values())))

    @property
    def open_steps(self) -> list[int]:
        """The steps that have events, in ascending order."""
        return sorted(self._open)

    def resume(self, offsets: Mapping[str, int], read: Mapping[str, int] | None = None) -> None:
        """Reading continues at `offsets`; an idle partition keeps its offset. What is before
        `read` was read by the process before; without any, that is not known."""
        self._positions = dict(offsets)
        self._read_before = read or {}

    def begin(self, step: int) -> None:
        """This is the first step that this process closes."""
        self._first = step

    def receive(self, batch: Batch, closed: int | None, now: int | None) -> Received:
        """Take in a batch. `closed`: the last closed step; `now`: this machine's clock."""
        if len(batch.records):
            self._positions[batch.partition] = int(batch.offsets[-1]) + 1
        decoded = self._decoder.decode(batch.records, batch.arrivals, batch.envelopes)
        arrivals = None if batch.arrivals is None else batch.arrivals[decoded.places]
        fates = self._rule.judge(decoded.times, arrivals, now)
        if self._file_range is not None:
            fates = self._file_range.judge(fates, decoded.users)
        counts = fates.counts
        fresh = counts if closed is None else counts & (fates.steps > closed)
        if fresh.any():
            users = self._pseudonyms.of(_chosen(decoded.users, fresh))
            names = _chosen(decoded.items, fresh)
            offsets = batch.offsets[decoded.places[fresh]]
            steps, times = fates.steps[fresh], decoded.times[fresh]
            self._buffer(batch.partition, steps, users, names, times, offsets)
        rejections = decoded.rejections + [
            decoded.rejection(index, reason)
            for mask, reason in (
                (fates.time_ahead, Reason.TIME_AHEAD),
                (fates.arrival_ahead, Reason.ARRIVAL_AHEAD),
            )
            for index in np.flatnonzero(mask).tolist()
        ]
        again = self._read_again(batch, decoded.places, fates.steps) & counts & ~fresh
        accepted, already_closed = int(fresh.sum()), int(again.sum())
        return Received(
            accepted=accepted,
            late=int(fates.late.sum()),
            already_closed=already_closed,
            missed=int(counts.sum()) - accepted - already_closed,
            left=int(fates.left.sum()),
            ignored=decoded.ignored,
            rejections=sorted(rejections, key=Rejection.position),
        )

    def take(self, step: int) -> StepBuffer | None:
        """Remove and return the buffer of a step that is being closed."""
        self._first_offsets.pop(step, None)
        return self._open.pop(step, None)

    def offsets(self) -> dict[str, int]:
        """Per partition, where to continue after a restart: events that are only in memory must
        be read again, so this is the smallest offset of an event in an open step."""
        offsets = dict(self._positions)
        for firsts in self._first_offsets.values():
            for partition, first in firsts.items():
                offsets[partition] = min(first, offsets[partition])
        return offsets

    def read(self) -> dict[str, int]:
        """Per partition, how far it was ever read: also by the process before."""
        return {
            partition: max(self._positions.get(partition, 0), self._read_before.get(partition, 0))
            for partition in self._positions.keys() | self._read_before.keys()
        }

    def _read_again(
        self, batch: Batch, places: NDArray[np.intp], steps: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which events the process before has read, as far as that is known."""
        if self._first is None:
            return np.ones(len(steps), dtype=np.bool_)
        again = steps < self._first
        if self._read_before:
            again &= batch.offsets[places] < self._read_before.get(batch.partition, 0)
        return again

    def _buffer(
        self,
        partition: str,
        steps: NDArray[np.int64],
        users: Users,
        names: list[str],
        times: Moments,
        offsets: NDArray[np.int64],
    ) -> None:
        for step in np.unique(steps).tolist():
            here = steps == step
            buffer = self._open.setdefault(step, StepBuffer())
            buffer.add(users[here], _chosen(names, here), times[here])
            firsts = self._first_offsets.setdefault(step, {})
            first = int(offsets[here].min())
            firsts[partition] = min(first, firsts.get(partition, first))


def _chosen(texts: list[str], which: NDArray[np.bool_]) -> list[str]:
    """The selected texts; usually that is all of them."""
    return texts if which.all() else list(compress(texts, which))
