"""A decider whose answers depend on nobody's data, to see what else does."""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from streamer.monitors.attention import Agenda
from streamer.monitors.deciding import Questions
from streamer.monitors.seam import Decision, Tally
from streamer.privacy.threshold import Plan


class FixedList:
    """Reports the same items and estimates in given steps, whatever anybody holds."""

    asks_unheld = True

    def __init__(self, hitters: Mapping[str, int], steps: Container[int]) -> None:
        self._hitters, self._steps = hitters, steps
        self.tallies: dict[int, dict[str, int]] = {}
        """By step, how many users hold each item: all that a real decider sees."""

    def __call__(self, plan: Plan, declared: Sequence[str]) -> Questions[str]:
        del plan, declared
        return self

    def ask(self, tally: Tally[str], agenda: Agenda[str]) -> Decision:
        del agenda
        names = tally.numbers.names(tally.items)
        self.tallies[tally.step] = dict(zip(names, tally.holders.tolist(), strict=True))
        reported = self._hitters if tally.step in self._steps else {}
        # Looking up an item that nobody holds gives it the next number.
        numbered = sorted((tally.numbers[item], number) for item, number in reported.items())
        items, estimates = np.array(numbered, dtype=np.int64).reshape(-1, 2).T
        return Decision.flat(tally.step, items, estimates)
