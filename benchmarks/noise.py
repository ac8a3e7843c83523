"""How long a draw of noise takes, beside NumPy's (insecure) and OpenDP's.

    python -m benchmarks.noise [--rounds 5]

The contestants take turns, many rounds over, and their medians are compared: only
ratios within one run mean anything. OpenDP is measured if it is installed.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.table import Bar, Row, below, command_line
from streamer.privacy.gaussian_noise import DiscreteGaussian
from streamer.privacy.noise import DiscreteLaplace

DRAWS = 100_000
USUAL_SCALE = 31.38
"""The scale for ε = 1, δ = 1e-6, k = 10."""
SCALES = (0.1, 1.0, 20.97, USUAL_SCALE, 150.0, 1_000.0, 190_702.0, 1e7)
USUAL_SIGMA = 70.0
"""About the σ for the same and 1,440 steps."""
SIGMAS = (0.5, 5.0, USUAL_SIGMA, 700.0, 1e4, 1e6)


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

    def __str__(self) -> str:
        return f"{self.name} {self.median:.1f} ns"


def measure(rounds: int = 31) -> list[Row]:
    laplaces = {scale: ours(DiscreteLaplace(scale), f"scale {scale:g}") for scale in SCALES}
    gaussians = {sigma: ours(DiscreteGaussian(sigma), f"σ {sigma:g}") for sigma in SIGMAS}
    generator = np.random.default_rng()
    numpys_laplace = Contestant(
        "NumPy's (insecure)", lambda: generator.laplace(0.0, USUAL_SCALE, DRAWS)
    )
    numpys_normal = Contestant(
        "NumPy's, rounded (insecure)",
        lambda: np.rint(generator.normal(0.0, USUAL_SIGMA, DRAWS)).astype(np.int64),
    )
    opendps_laplace, opendps_gaussian = opendps()
    contestants = [
        *(numpys_laplace, *opendps_laplace, *laplaces.values()),
        *(numpys_normal, *opendps_gaussian, *gaussians.values()),
    ]
    for contestant in contestants:
        contestant.draw()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.take_turn()
    slowest = max(laplaces.values(), key=lambda noise: noise.median)
    return [
        row(
            f"a draw of noise, scale {USUAL_SCALE}",
            laplaces[USUAL_SCALE],
            below(25),
            [numpys_laplace, *opendps_laplace, slowest],
        ),
        row(
            f"a draw of Gaussian noise, σ {USUAL_SIGMA:g}",
            gaussians[USUAL_SIGMA],
            below(25),
            [numpys_normal, *opendps_gaussian],
        ),
        row(
            "a draw of Gaussian noise, slowest σ",
            max(gaussians.values(), key=lambda noise: noise.median),
            below(500),
            [numpys_normal, *gaussians.values()],
        ),
        Row("a Gaussian sampler, made for σ 999,999", making(999_999), "ms", below(1000)),
    ]


def row(what: str, measured: Contestant, bar: Bar, beside: Sequence[Contestant]) -> Row:
    """`beside`: what the figure is to be compared with, NumPy first."""
    ratio = f"{measured.median / beside[0].median:.2f} of NumPy's; "
    return Row(what, measured.median, "ns", bar, ratio + ", ".join(map(str, beside)))


def ours(noise: DiscreteLaplace | DiscreteGaussian, width: str) -> Contestant:
    return Contestant(f"ours at {width}", lambda: noise.draw(DRAWS))


def making(sigma: float) -> float:
    """Milliseconds to make the sampler of a σ that was not used before."""
    start = time.perf_counter()
    DiscreteGaussian(sigma)
    return (time.perf_counter() - start) * 1000


def opendps() -> tuple[list[Contestant], list[Contestant]]:
    """OpenDP's Laplace and Gaussian noise; nothing if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return [], []
    dp.enable_features("contrib")
    integers, zeros = dp.vector_domain(dp.atom_domain(T=int)), [0] * 1000
    laplace = dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=USUAL_SCALE)
    gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T=int), scale=USUAL_SIGMA)
    return (
        [Contestant("OpenDP's", lambda: laplace(zeros), draws=1000)],
        [Contestant("OpenDP's", lambda: gaussian(zeros), draws=1000)],
    )


if __name__ == "__main__":
    command_line(measure)
