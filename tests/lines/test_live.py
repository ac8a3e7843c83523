"""A pipe as a source: each event arrives at the moment of reading."""

import queue
from dataclasses import dataclass

import pytest

from streamer.lines.live import LiveLines
from streamer.lines.source import PARTITION
from tests.stream.scripted_source import Clock
from tests.stream.source_contract import DEADLINE, END, START, Readings, SourceContract, script

LONGEST = 100


class Pipe:
    """Blocks of bytes, handed over one a read; a read waits for the next."""

    def __init__(self):
        self._blocks = queue.Queue()

    def write(self, *blocks):
        for block in blocks:
            self._blocks.put(block)

    def close(self):
        self._blocks.put(b"")

    def read(self, size):
        del size
        return self._blocks.get(timeout=DEADLINE)


@dataclass
class LinesRig:
    source: LiveLines
    clock: Clock
    script: dict
    pipe: Pipe
    _written: int = 0

    async def let_arrive(self, moment):
        """In two blocks, the first of which ends within a line."""
        self.clock.now = moment
        due = [record for arrival, record in self.script[PARTITION] if arrival <= moment]
        content = b"".join(record + b"\n" for record in due[self._written :])
        self._written = len(due)
        if content:
            self.pipe.write(content[:3], content[3:])


@pytest.fixture
async def rig():
    clock, pipe = Clock(START), Pipe()
    source = LiveLines(pipe, LONGEST, clock)
    yield LinesRig(source, clock, script([PARTITION]), pipe)
    pipe.close()  # or else a thread would wait for it


class TestContract(SourceContract):
    """See there."""


async def end(rig):
    """Close the pipe and poll until that is noticed; returns what came."""
    rig.pipe.close()
    readings = Readings(rig)
    while not rig.source.ended:
        await readings.poll(timeout_ms=1000 * DEADLINE)
    return readings


async def test_it_ends_when_the_pipe_is_closed_and_everything_was_returned(rig):
    await rig.let_arrive(END)
    (await end(rig)).check_complete()
    assert await rig.source.poll(1) == []


async def test_a_last_line_without_its_end_counts(rig):
    rig.pipe.write(b"one\n\ntw", b"o")
    assert (await end(rig)).records == {PARTITION: [b"one", b"two"]}


async def test_what_is_read_later_arrives_later_so_all_is_drained_at_any_time(rig):
    rig.pipe.write(b"one\n")
    assert await rig.source.drained() == {PARTITION}
    rig.clock.now += 5
    readings = Readings(rig)
    while not await readings.poll():
        pass
    assert readings.arrivals == {PARTITION: [START + 5]}


async def test_nothing_is_read_of_a_pipe_that_is_to_be_skipped(rig):
    rig.pipe.write(b"one\n")
    assert await rig.source.poll(1, skip=[PARTITION]) == []
    assert not rig.source.ended
