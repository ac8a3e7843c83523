"""Noise that is written down in advance, so that a monitor can be followed line by line."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from streamer.monitors.seam import Decision


class ScriptedNoise:
    """Hands out the given numbers in order and notes how many each call asked for."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self.calls: list[int] = []
        self.rewrite(numbers)

    def rewrite(self, numbers: Iterable[int]) -> None:
        self._numbers = list(numbers)

    def draw(self, size: int) -> np.ndarray:
        assert size <= len(self._numbers), "the script is too short"
        self.calls.append(size)
        drawn, self._numbers = self._numbers[:size], self._numbers[size:]
        return np.array(drawn, dtype=np.int64)


class NoNoise:
    """Every draw is 0: a monitor that tells the truth."""

    def draw(self, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def draw_at_least(self, bound: int, number: int) -> np.ndarray:
        return np.full(number, bound, dtype=np.int64)


def answered(tally, agenda, threshold, exit_threshold, noise=lambda item: 0) -> Decision:
    """The rule of questions in plain Python: what is held or public is asked, each item once.

    `noise`: by item. Every report has the full price.
    """
    names = tally.numbers.names(tally.items)
    counts = dict(zip(names, tally.holders.tolist(), strict=True))
    counts |= {item: 0 for item in (*agenda.values, *agenda.checks) if item not in counts}
    noisy = {
        item: count + noise(item) for item, count in counts.items() if item not in agenda.resting
    }
    reported = {
        tally.numbers[item]: count
        for item, count in noisy.items()
        if item not in agenda.checks and count >= threshold
    }
    gone = [tally.numbers[item] for item in agenda.checks if noisy[item] < exit_threshold]
    items = np.array(sorted(reported), dtype=np.int64)
    estimates = np.array([reported[item] for item in sorted(reported)], dtype=np.int64)
    return replace(
        Decision.flat(tally.step, items, estimates), gone=np.array(sorted(gone), dtype=np.int64)
    )
