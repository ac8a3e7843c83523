"""What the engine decides: raw, because it names the users whom it charges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamer.monitors.seam import Hitter, Users
from streamer.stream.periods import Period


@dataclass(frozen=True, slots=True)
class Decided:
    """A closed step, or a run of steps from `first` to `step` that nobody sent anything in.

    How such runs are cut is internal: see `publication` for what is published of them.

    `charged`: the pseudonyms of the users whom the decision charges, in rising order.
    The hitters' order, by item, is a function of the hitters alone.
    """

    step: int
    first: int
    period: Period
    hitters: tuple[Hitter[str], ...] = ()
    charged: Users = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
