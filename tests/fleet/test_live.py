"""A simulated fleet as a source: it sends from the next step on, as its clock says."""

import asyncio
import threading
from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest

from streamer.fleet.endless import Sent
from streamer.fleet.live import PARTITION, LiveFleet
from streamer.fleet.truth import TrueStep
from tests.stream.scripted_source import Clock
from tests.stream.source_contract import (
    DEADLINE,
    END,
    START,
    TIMING,
    Readings,
    StoringSourceContract,
    script,
    until_drained,
)

FIRST = TIMING.step_at(START) + 1


def sent(step, rows):
    rows = sorted(rows, key=lambda row: row[0])
    return Sent(
        step,
        [record for _, record in rows],
        np.array([arrival for arrival, _ in rows]),
        TrueStep(step, {}, 0, 0),
        frozenset(),
    )


def steps_of(rows, first):
    """The rows as a fleet sends them: steps overlap, and none is empty."""
    for step in count(first):
        # Every third pair arrives up to 300 ms after its step.
        mine = [
            row
            for number, row in enumerate(rows)
            if max(FIRST, TIMING.step_at(row[0] - 300 * (number // 2 % 3 == 0))) == step
        ]
        yield sent(step, mine or [(TIMING.start(step) + 900, b"later")])


@dataclass
class FleetRig:
    source: LiveFleet
    clock: Clock
    script: dict
    announced: list

    async def let_arrive(self, moment):
        self.clock.now = moment


async def rest(seconds):
    """Let the thread that prepares steps work; no time passes."""
    del seconds
    await asyncio.sleep(0)


def fleet_of(steps_from, clock, announce=lambda _: None):
    return LiveFleet(steps_from, TIMING, clock, rest, announce)


@pytest.fixture
async def rig():
    clock, rows, announced = Clock(START), script([PARTITION]), []
    source = fleet_of(
        lambda number, first: steps_of(rows[PARTITION], first), clock, announced.append
    )
    yield FleetRig(source, clock, rows, announced)
    await source.stop()


class TestContract(StoringSourceContract):
    """See there."""


async def test_each_step_is_announced_before_its_time(rig):
    for moment in range(START, END, 1000):
        await rig.let_arrive(moment)
        await until_drained(Readings(rig), rig.script)
        assert [each.step for each in rig.announced] == list(
            range(FIRST, TIMING.step_at(moment) + 2)
        )


async def test_a_step_that_is_prepared_late_holds_up_what_arrives_after_its_first_records():
    """Or else a late record of the step before would close it."""
    prepared = threading.Event()

    def steps_from(number, first):
        del number
        yield sent(first, [(TIMING.end(first) + 1800, b"late")])
        assert prepared.wait(DEADLINE)
        yield sent(first + 1, [(TIMING.start(first + 1), b"in time")])
        for step in count(first + 2):
            yield sent(step, [(TIMING.end(step), b"later")])

    clock = Clock(START)
    fleet = fleet_of(steps_from, clock)
    clock.now = TIMING.end(FIRST) + 1800
    assert [await fleet.poll(1) for _ in range(20)] == [[]] * 20
    assert await fleet.drained() == set()
    prepared.set()
    found = []
    async with asyncio.timeout(DEADLINE):
        while not found:
            found = await fleet.poll(1)
    assert [batch.records for batch in found] == [[b"in time", b"late"]]
    await fleet.stop()


async def test_after_a_long_absence_another_fleet_begins_with_the_present():
    begun = []

    def steps_from(number, first):
        begun.append((number, first))
        return steps_of([], first)

    clock = Clock(START)
    fleet = fleet_of(steps_from, clock)
    assert fleet.first_step == FIRST
    clock.now = TIMING.start(FIRST + 100)
    await fleet.poll(1)
    assert begun == [(0, FIRST), (1, FIRST + 101)]
    assert fleet.left_out == TIMING.last_over(clock.now) - (FIRST - 1)
    await fleet.stop()


async def test_what_fails_while_steps_are_prepared_is_raised():
    def steps_from(number, first):
        raise ArithmeticError("broken")
        yield

    clock = Clock(START)
    fleet = fleet_of(steps_from, clock)

    async def keep_polling():
        while True:
            await fleet.poll(1)
            await asyncio.sleep(0)  # the thread reports

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(keep_polling(), DEADLINE)
    await fleet.stop()


async def test_records_are_handed_over_ten_times_a_second_not_one_by_one():
    def steps_from(number, first):
        del number
        for step in count(first):
            yield sent(step, [(TIMING.start(step) + 10 * n, b"%d" % n) for n in range(100)])

    clock = Clock(START)
    fleet = fleet_of(steps_from, clock)
    batches = []
    begin = TIMING.start(FIRST)
    for clock.now in range(begin, begin + 1000, 10):
        async with asyncio.timeout(DEADLINE):
            while not batches:  # the first step is being prepared
                batches += await fleet.poll(100)
        batches += await fleet.poll(100)
    assert [len(batch.records) for batch in batches] == [1, *[10] * 9]
    clock.now = begin + 1000
    last = []
    async with asyncio.timeout(DEADLINE):
        while not last:  # the next step may still be being prepared
            last += await fleet.poll(100)
    assert b"".join(last[0].records[:9]) == b"919293949596979899"
    await fleet.stop()
