"""Times of the parts of a benchmark, in turns, compared by their medians."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part].append(time.perf_counter() - start)

    def measured(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured whenever it is called."""

        def wrapped(*arguments: Any) -> Any:
            with self.measure(part):
                return function(*arguments)

        return wrapped

    def median(self, part: str) -> float:
        return statistics.median(self.seconds[part])
