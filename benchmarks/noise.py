"""How long a draw of noise takes, beside NumPy's Laplace (insecure) and OpenDP's.

    python -m benchmarks.noise [--rounds 5]

The contestants take turns, many rounds over, and their medians are compared: only
ratios within one run mean anything. OpenDP is measured if it is installed.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.table import Row, below, command_line
from streamer.privacy.noise import DiscreteLaplace

DRAWS = 100_000
USUAL = 31.38
"""The scale for ε = 1, δ = 1e-6, k = 10."""
SCALES = (0.1, 1.0, 20.97, USUAL, 150.0, 1_000.0, 190_702.0, 1e7)


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


def measure(rounds: int = 31) -> list[Row]:
    noises, others = {scale: ours(scale) for scale in SCALES}, [numpys(), *opendps()]
    contestants = [*others, *noises.values()]
    for contestant in contestants:
        contestant.draw()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.take_turn()
    usual, slowest = noises[USUAL], max(noises.values(), key=lambda noise: noise.median)
    told = (*others, slowest)
    return [
        Row(
            f"a draw of noise, scale {USUAL}",
            usual.median,
            "ns",
            below(25),
            f"{usual.median / others[0].median:.2f} of NumPy's Laplace; "
            + ", ".join(f"{one.name} {one.median:.1f} ns" for one in told),
        )
    ]


def ours(scale: float) -> Contestant:
    noise = DiscreteLaplace(scale)
    return Contestant(f"ours at scale {scale:g}", lambda: noise.draw(DRAWS))


def numpys() -> Contestant:
    generator = np.random.default_rng()
    return Contestant("NumPy's (insecure)", lambda: generator.laplace(0.0, USUAL, DRAWS))


def opendps() -> list[Contestant]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    draw = dp.m.make_laplace(*space, scale=USUAL)
    zeros = [0] * 1000
    return [Contestant("OpenDP's", lambda: draw(zeros), draws=1000)]


if __name__ == "__main__":
    command_line(measure)
