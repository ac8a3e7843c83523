"""A simulated fleet that sends in real time: its records arrive when the clock says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager

import numpy as np

from streamer.fleet.endless import Sent, sent_by
from streamer.stream.intake import Batch
from streamer.stream.timing import StepTiming

PARTITION = "fleet"
_AHEAD = 2
"""Steps that are prepared before their time."""
_ROWS = 8_192
"""Records in a batch."""
_TICK_SECONDS = 0.1
"""Records are handed over this often: in many small batches they would cost more."""
_LONGEST_LAG = 5
"""Steps. Who is further behind has slept, or is too slow, and goes on with the present."""


class LiveFleet:
    """Implements `Source`: one partition, from the next step on. Made by `live_fleet`."""

    ended = False

    def __init__(
        self,
        steps_from: Callable[[int, int], Iterator[Sent]],
        timing: StepTiming,
        clock: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
        announce: Callable[[Sent], None],
    ) -> None:
        self._steps_from = steps_from
        self._timing = timing
        self._clock = clock
        self._sleep = sleep
        self._announce = announce
        self._fleets = 0
        self._ready: asyncio.Queue[Sent] = asyncio.Queue(_AHEAD)
        self._preparing: asyncio.Task[None] | None = None
        self._known = -1
        self._waiting: list[Sent] = []
        self._offset = 0
        self._handed_over = 0
        self.first_step = self._begin()
        """The step in which the fleet begins to send."""
        self.left_out = 0
        """Steps in which the fleet was not simulated, because we were behind."""

    async def partitions(self) -> list[str]:
        return [PARTITION]

    async def poll(self, timeout_ms: int, skip: Collection[str] = ()) -> list[Batch]:
        if self._preparing is not None and self._preparing.done():
            await self._preparing  # it failed, and so does this
        now = self._clock()
        behind = self._timing.last_over(now) - self._known
        if behind > _LONGEST_LAG:
            self.left_out += behind
            await self.stop()
            self._begin()
        while self._known < self._timing.step_at(now) + 1 and not self._ready.empty():
            sent = self._ready.get_nowait()
            self._announce(sent)
            self._waiting.append(sent)
            self._known = sent.step
        # A step that is still being prepared holds up those before it: records come in the order
        # of their arrival, and steps overlap.
        is_time = not 0 <= now - self._handed_over < 1000 * _TICK_SECONDS
        is_ready = is_time and PARTITION not in skip and self._knows(now)
        batches = self._due(now) if is_ready else []
        if batches:
            self._handed_over = now
        else:
            await self._sleep(min(timeout_ms / 1000, _TICK_SECONDS))
        return batches

    async def drained(self) -> set[str]:
        now = self._clock()
        is_left = any(np.any(sent.arrivals[:1] <= now) for sent in self._waiting)
        return {PARTITION} if self._knows(now) and not is_left else set()

    async def stop(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing])

    def _begin(self) -> int:
        """Another fleet, from the next step on. Its users do something else than the last one's."""
        first = self._timing.step_at(self._clock()) + 1
        steps = self._steps_from(self._fleets, first)
        self._fleets += 1
        self._known, self._waiting = first - 1, []
        ready = self._ready = asyncio.Queue(_AHEAD)

        async def prepare() -> None:
            # In a thread, so that the page is answered meanwhile.
            while True:
                await ready.put(await asyncio.to_thread(next, steps))

        self._preparing = asyncio.create_task(prepare())
        return first

    def _knows(self, now: int) -> bool:
        """Whether everything that arrives up to now is prepared: a fast clock sends a little of
        the next step."""
        return self._known > self._timing.step_at(now)

    def _due(self, now: int) -> list[Batch]:
        """All that has arrived by now. Steps overlap: some records are early, some late."""
        records: list[bytes] = []
        arrivals, waiting = [], []
        for sent in self._waiting:
            due = int(np.searchsorted(sent.arrivals, now, side="right"))
            records += sent.records[:due]
            arrivals.append(sent.arrivals[:due])
            if due < len(sent.records):
                waiting.append(sent.after(due))
        self._waiting = waiting
        if not records:
            return []
        together = np.concatenate(arrivals)
        order = np.argsort(together, kind="stable")
        offsets = np.arange(self._offset, self._offset + len(records))
        self._offset += len(records)
        return [
            Batch(
                PARTITION,
                offsets[start : start + _ROWS],
                [records[row] for row in order[start : start + _ROWS].tolist()],
                together[order[start : start + _ROWS]],
            )
            for start in range(0, len(records), _ROWS)
        ]


@asynccontextmanager
async def live_fleet(
    users: int,
    seed: int,
    timing: StepTiming,
    clock: Callable[[], int],
    announce: Callable[[Sent], None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[LiveFleet]:
    """A fleet that sends from the next step on. `announce` is called with what each step sends,
    and what is true of it, before its time."""
    fleet = LiveFleet(
        lambda number, first: sent_by(users, seed + number, first, timing),
        *(timing, clock, sleep, announce),
    )
    try:
        yield fleet
    finally:
        await fleet.stop()
