"""Noise that is written down in advance, so that a monitor can be followed line by line."""

from collections.abc import Iterable

import numpy as np


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
