"""An engine without a broker, for the benchmarks of its parts."""

from typing import TypeVar

from benchmarks.workload import START, STEP_MS
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.buffer import StepBuffer
from streamer.stream.events import EventDecoder
from streamer.stream.fate import FateRule
from streamer.stream.intake import Intake
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.timing import StepTiming

TIMING = StepTiming(STEP_MS, START, lateness_ms=STEP_MS)
TERMS = Terms(
    epsilon=1,
    delta=1e-6,
    contributions=10,
    neighbours=Neighbours.REPLACE,
    calibration=Method.EXACT,
    period_steps=1440,
    refresh_steps=1,
    beta=0.05,
    items=100_000,
    items_per_step=3,
)


class FilledSteps(Intake):
    """An intake whose steps are filled with columns: what was decoded does not matter here."""

    def fill(self, step: int, buffer: StepBuffer) -> None:
        self._open[step] = buffer


Kind = TypeVar("Kind", bound=Intake)


def new_intake(kind: type[Kind]) -> Kind:
    return kind(EventDecoder(TIMING), FateRule(TIMING, STEP_MS), Pseudonyms(bytes(32)))
