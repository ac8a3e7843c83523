"""What every source of a running stream must keep: one suite, which each source's tests inherit.

A source's tests give a fixture `rig`: the source, a clock that the test moves, and a way to
let the records of its script arrive.
"""

import asyncio
from collections import defaultdict
from itertools import pairwise
from typing import Protocol

import pytest

from streamer.errors import UnreachableError
from streamer.stream.sources import Source
from streamer.stream.timing import StepTiming
from tests.stream.scripted_source import Clock

DEADLINE = 60
TIMING = StepTiming(1000, lateness_ms=500)
START = 100_000
MOMENTS = range(START, START + 6000, 250)
END = MOMENTS[-1]
BEFORE, AFTER = START + 2700, START + 2950
"""In one step, and something arrives between them."""
# Unevenly: several at a time, and none for a while.
ARRIVALS = [START + 1000 + 37 * (number // 2) + (number // 40) * 900 for number in range(120)]


def script(partitions):
    """By partition: when each of its records arrives."""
    return {
        name: [
            (arrival + place, b"%s %d" % (name.encode(), number))
            for number, arrival in enumerate(ARRIVALS)
        ]
        for place, name in enumerate(partitions)
    }


class Rig(Protocol):
    """A source, and what a test needs to play the script to it."""

    source: Source
    clock: Clock
    script: dict[str, list[tuple[int, bytes]]]

    async def let_arrive(self, moment: int) -> None:
        """It is this moment now, and what arrives up to it is there."""
        ...


class Readings:
    """What polls returned, checked batch by batch."""

    def __init__(self, rig):
        self._rig = rig
        self.records = defaultdict(list)
        self.arrivals = defaultdict(list)
        self._offsets = defaultdict(list)
        self._drained_at = defaultdict(int)

    async def poll(self, timeout_ms=20, skip=()):
        """How many records came."""
        found = await self._rig.source.poll(timeout_ms, skip)
        for batch in found:
            name, arrivals = batch.partition, batch.arrivals.tolist()
            assert batch.partition not in skip
            assert len(batch.records) == len(batch.offsets) == len(arrivals) > 0
            assert max(arrivals) <= self._rig.clock(), "it comes from the future"
            assert min(arrivals) >= self._drained_at[name], "it was there when all was returned"
            self.records[name] += batch.records
            self.arrivals[name] += arrivals
            self._offsets[name] += batch.offsets.tolist()
            assert all(one < next_ for one, next_ in pairwise(self._offsets[name]))
            assert all(one <= next_ for one, next_ in pairwise(self.arrivals[name]))
        return sum(len(batch.records) for batch in found)

    async def drained(self):
        found = await self._rig.source.drained()
        for name in found:
            self._drained_at[name] = self._rig.clock()
        return found

    async def read_due(self, skip=()):
        """Poll until everything that has arrived by now was returned."""
        due = {
            name: sum(arrival <= self._rig.clock() for arrival, _ in rows)
            for name, rows in self._rig.script.items()
            if name not in skip
        }
        async with asyncio.timeout(DEADLINE):
            while any(len(self.records[name]) < number for name, number in due.items()):
                await self.poll(skip=skip)

    async def play(self, moments):
        for moment in moments:
            await self._rig.let_arrive(moment)
            await self.read_due()
            await self.drained()

    def check_complete(self):
        script = self._rig.script
        assert self.records == {name: [record for _, record in script[name]] for name in script}


def missing_of(readings, script):
    """Partitions of which not everything was returned."""
    return {name for name, rows in script.items() if len(readings.records[name]) < len(rows)}


async def until_drained(readings, partitions):
    async with asyncio.timeout(DEADLINE):
        while await readings.drained() != set(partitions):
            await readings.poll()


class SourceContract:
    """Every source."""

    async def test_every_record_is_returned_once_and_in_order(self, rig):
        readings = Readings(rig)
        await readings.play(MOMENTS)
        assert await readings.poll() == 0
        readings.check_complete()

    async def test_so_it_is_if_everything_is_there_at_once(self, rig):
        readings = Readings(rig)
        await readings.play([START, START + 900, END])
        assert await readings.poll() == 0
        readings.check_complete()

    async def test_all_partitions_are_listed(self, rig):
        assert sorted(await rig.source.partitions()) == sorted(rig.script)

    async def test_partitions_to_skip_are_left_alone_and_come_later(self, rig):
        readings = Readings(rig)
        first = min(rig.script)
        await readings.play([START, BEFORE])
        await until_drained(readings, rig.script)
        before = len(readings.records[first])
        await rig.let_arrive(AFTER)
        await readings.read_due(skip=[first])
        assert await readings.poll(skip=[first]) == 0
        assert len(readings.records[first]) == before
        await readings.play([AFTER, END])
        readings.check_complete()

    async def test_all_is_drained_when_all_was_returned(self, rig):
        readings = Readings(rig)
        for moment in (START, START + 2000, END):
            await rig.let_arrive(moment)
            await readings.read_due()
            await until_drained(readings, rig.script)

    async def test_it_has_not_ended_while_more_can_come(self, rig):
        readings = Readings(rig)
        assert not rig.source.ended
        await readings.play(MOMENTS)
        assert not rig.source.ended


class StoringSourceContract(SourceContract):
    """A source whose records arrive whether they are read or not."""

    async def test_a_partition_with_something_left_is_not_drained(self, rig):
        readings = Readings(rig)
        first = min(rig.script)
        await readings.play([START, BEFORE])
        await until_drained(readings, rig.script)
        await rig.let_arrive(AFTER)
        assert await readings.drained() == set()
        await readings.read_due(skip=[first])
        assert await readings.drained() == set(rig.script) - {first}
        await readings.read_due()
        await until_drained(readings, rig.script)

    async def test_nor_is_one_of_which_only_a_part_was_returned(self, rig):
        readings = Readings(rig)
        await readings.play([START])
        await rig.let_arrive(END)
        async with asyncio.timeout(DEADLINE):
            while missing := missing_of(readings, rig.script):
                assert not missing & await readings.drained()
                await readings.poll()


class DistantSourceContract(StoringSourceContract):
    """A source that can be out of reach: its rig has `go_away` and `come_back`."""

    @pytest.mark.parametrize("call", ["partitions", "poll", "drained"])
    async def test_what_fails_goes_on_later_and_nothing_is_lost_or_doubled(self, rig, call):
        readings = Readings(rig)
        asking = {
            "partitions": rig.source.partitions,
            "poll": lambda: rig.source.poll(20),
            "drained": rig.source.drained,
        }[call]
        await readings.play(MOMENTS[:6])
        for moment in (MOMENTS[8], MOMENTS[12], END):
            await rig.let_arrive(moment)
            rig.go_away()
            for _ in range(2):
                with pytest.raises(UnreachableError) as complaint:
                    await asking()
                assert complaint.value.__cause__ is not None
            rig.come_back()
            await readings.poll()
        await readings.read_due()
        assert await readings.poll() == 0
        readings.check_complete()
