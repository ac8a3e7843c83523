"""A source whose records arrive when a test says so: the reference for the contract of sources."""

import asyncio
from collections import deque

from streamer.errors import UnreachableError
from tests.stream.making import batch


class Clock:
    """Shows what the test says, in milliseconds since 1970."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now

    async def wait(self, ms):
        """Time passes at once; others have a turn."""
        self.now += ms
        await asyncio.sleep(0)


class ScriptedSource:
    """Implements `Source` in memory. `wait`: waits for some milliseconds if nothing is there."""

    def __init__(self, clock, *partitions, most_records=100, wait=None):
        self._clock = clock
        self._wait = wait or clock.wait
        self._most_records = most_records
        self.slow = {}
        """Of these partitions a poll returns at most this many records."""
        self._records = {}
        self._since = {}
        self._returned = {}
        self.ends_at = None
        """From this moment on nothing more comes."""
        self.failures = deque()
        """Raised by the next calls, one each; None: that call works."""
        self.polls = []
        """The moment of each poll, its timeout and what it was to skip."""
        self.asked = []
        """The moments at which somebody asked what is drained."""
        for partition in partitions:
            self.add(partition)
        self._known = list(partitions)

    def add(self, partition, since=0):
        """A partition that is there from this moment on."""
        self._records[partition], self._since[partition] = [], since
        self._returned[partition] = 0

    def arrive(self, partition, arrival, *records):
        self._records[partition] += [(arrival, record) for record in records]

    @property
    def ended(self):
        is_over = self.ends_at is not None and self._clock() >= self.ends_at
        return is_over and not any(self._left(partition) for partition in self._records)

    async def partitions(self):
        self._fail()
        self._known = [name for name, since in self._since.items() if since <= self._clock()]
        return list(self._known)

    async def poll(self, timeout_ms, skip=()):
        self.polls.append((self._clock(), timeout_ms, list(skip)))
        self._fail()
        found = self._take(skip)
        if not found:
            await self._wait(timeout_ms)
            found = self._take(skip)
        return found

    async def drained(self):
        self.asked.append(self._clock())
        self._fail()
        return {partition for partition in self._known if not self._left(partition)}

    def _take(self, skip):
        found = []
        for partition in self._known:
            most = self.slow.get(partition, self._most_records)
            rows = [] if partition in skip else self._left(partition)[:most]
            if rows:
                arrivals, records = zip(*rows, strict=True)
                found.append(batch(records, arrivals, partition, self._returned[partition]))
                self._returned[partition] += len(rows)
        return found

    def _left(self, partition):
        """What has arrived and was not returned."""
        rows = self._records[partition][self._returned[partition] :]
        return [(arrival, record) for arrival, record in rows if arrival <= self._clock()]

    def _fail(self):
        failure = self.failures.popleft() if self.failures else None
        if failure is not None:
            raise failure


def away(reason="gone"):
    """What a source raises that cannot be reached."""
    error = UnreachableError(f"waiting for the source ({reason})")
    error.__cause__ = OSError(reason)
    return error
