"""What the engine decides. Not publishable: it names the charged users."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.stream.periods import Period


@dataclass(frozen=True, slots=True)
class Decided:
    """A closed step, or a run of empty steps from `first` to `step`.

    How runs are split is internal: see `publication` for what is published about them.

    `charges`: the pseudonyms of the users that the decision charges, and how much each.
    `hitters`: what the step says about each item that is public or has just gone, ordered by
    item, so that their order reveals nothing else.
    """

    step: int
    first: int
    period: Period
    hitters: tuple[Hitter[str], ...] = ()
    charges: Charges = field(default_factory=Charges.none)
