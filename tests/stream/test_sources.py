"""The scripted source keeps the contract, so that what is tested with it holds for others."""

from dataclasses import dataclass

import pytest

from tests.stream.scripted_source import Clock, ScriptedSource, away
from tests.stream.source_contract import (
    END,
    START,
    DistantSourceContract,
    Readings,
    script,
)


@dataclass
class ScriptedRig:
    source: ScriptedSource
    clock: Clock
    script: dict

    async def let_arrive(self, moment):
        self.clock.now = moment

    def go_away(self):
        self.source.failures.extend([away(), away()])

    def come_back(self):
        assert not self.source.failures


@pytest.fixture
def rig():
    async def no_time_passes(ms):
        del ms

    clock, rows = Clock(START), script(["p", "q"])
    source = ScriptedSource(clock, *rows, most_records=10, wait=no_time_passes)
    for partition, its in rows.items():
        for arrival, record in its:
            source.arrive(partition, arrival, record)
    return ScriptedRig(source, clock, rows)


class TestContract(DistantSourceContract):
    """See there."""


async def test_it_has_ended_when_everything_up_to_its_end_was_returned(rig):
    readings = Readings(rig)
    rig.source.ends_at = END
    await readings.play([START, END - 1])
    assert not rig.source.ended
    await rig.let_arrive(END)
    await readings.read_due()
    assert rig.source.ended
