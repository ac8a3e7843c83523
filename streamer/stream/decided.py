"""What the engine decides. Not publishable: it names the charged users."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamer.monitors.seam import Hitter, Users
from streamer.stream.periods import Period


@dataclass(frozen=True, slots=True)
class Decided:
    """A closed step, or a run of empty steps from `first` to `step`.

    How runs are split is internal: see `publication` for what is published about them.

    `charged`: the pseudonyms of the users that the decision charges, in ascending order.
    Hitters are ordered by item, so their order reveals nothing else.
    """

    step: int
    first: int
    period: Period
    hitters: tuple[Hitter[str], ...] = ()
    charged: Users = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
