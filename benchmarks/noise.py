"""How long a draw of noise takes, beside NumPy's Laplace (insecure) and OpenDP's.

    python benchmarks/noise.py

The contestants take turns, many rounds over, and their medians are compared: only
ratios within one run mean anything. OpenDP is measured if it is installed.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from streamer.privacy.noise import DiscreteLaplace

DRAWS = 100_000
ROUNDS = 31
SCALES = (0.1, 1.0, 20.97, 31.38, 150.0, 1_000.0, 190_702.0, 1e7)


@dataclass
class Contestant:
    name: str
    draw: Callable[[], object]
    draws: int = DRAWS
    nanoseconds: list[float] = field(default_factory=list)

    def take_turn(self) -> None:
        start = time.perf_counter()
        self.draw()
        self.nanoseconds.append((time.perf_counter() - start) / self.draws * 1e9)

    @property
    def median(self) -> float:
        return statistics.median(self.nanoseconds)


def ours(scale: float) -> Contestant:
    noise = DiscreteLaplace(scale)
    return Contestant(f"streamer, scale {scale:g}", lambda: noise.draw(DRAWS))


def numpys() -> Contestant:
    generator = np.random.default_rng()
    return Contestant("NumPy laplace (insecure)", lambda: generator.laplace(0.0, 20.97, DRAWS))


def opendps() -> list[Contestant]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measure = dp.m.make_laplace(*space, scale=20.97)
    zeros = [0] * 1000
    return [Contestant("OpenDP laplace, scale 20.97", lambda: measure(zeros), draws=1000)]


def main() -> None:
    reference = numpys()
    contestants = [reference, *(ours(scale) for scale in SCALES), *opendps()]
    for contestant in contestants:
        contestant.draw()
    for _ in range(ROUNDS):
        for contestant in contestants:
            contestant.take_turn()
    for contestant in contestants:
        ratio = contestant.median / reference.median
        print(f"{contestant.name:28} {contestant.median:9.2f} ns a draw, {ratio:7.2f} of NumPy's")


if __name__ == "__main__":
    main()
