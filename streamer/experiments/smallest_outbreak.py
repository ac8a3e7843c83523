"""How small an outbreak can be to be found, measured with the product's monitor and noise.

An outbreak is an item that a number of users hold in a single step. Before that step, these users
hold ordinary items, a few of which are reported and charge them. Outbreaks of several trials are
put into one run, each with users of its own: their items get independent noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.search import first_integer
from streamer.privacy.terms import Method
from streamer.privacy.threshold import Plan, Workload, plan

FOUND = 0.95
"""The share of outbreaks that must be found."""
PERIODS = (24, 168, 1440)
"""A day and a week of hours, a day of minutes."""
TRIALS = 1000
_ORDINARY_ITEMS = 10_000
_ORDINARY_STEPS = 3


@dataclass(frozen=True, slots=True)
class Smallest:
    """The users in the smallest outbreak that is found, by number of steps in a period."""

    method: Method
    period_steps: int
    users: int


def smallest_outbreaks(guarantee: Guarantee, rng: np.random.Generator) -> list[Smallest]:
    """Before and after: Laplace noise for any number of steps, and Gaussian noise for these."""
    return [
        Smallest(method, steps, smallest_outbreak(_planned(guarantee, steps, method), rng))
        for method in (Method.EXACT, Method.HORIZON)
        for steps in PERIODS
    ]


def smallest_outbreak(planned: Plan, rng: np.random.Generator) -> int:
    """The fewest users whose outbreak is found often enough."""
    return first_integer(lambda users: share_found(planned, users, rng) >= FOUND, least=1)


def share_found(planned: Plan, users: int, rng: np.random.Generator, trials: int = TRIALS) -> float:
    """The share of outbreaks with this many users that are reported in their step."""
    monitor = HeavyHitterMonitor(planned)
    everyone = np.arange(trials * users, dtype=np.uint64)
    for step in range(_ORDINARY_STEPS):
        ordinary = np.minimum(rng.zipf(1.5, len(everyone)), _ORDINARY_ITEMS)
        monitor.observe(step, everyone, ordinary)
    outbreaks = _ORDINARY_ITEMS + 1 + np.repeat(np.arange(trials), users)
    decision = monitor.observe(_ORDINARY_STEPS, everyone, outbreaks)
    return len(decision.items) / trials


def _planned(guarantee: Guarantee, steps: int, method: Method) -> Plan:
    return plan(guarantee, Workload(steps, _ORDINARY_ITEMS, 0.05), method)
