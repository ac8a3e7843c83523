"""The paper's example: three families of sets of users, at a given number of users.

Each family splits all users into disjoint sets. Each set holds its own item exactly once,
in its own step; in all other steps every user holds an item that nobody else holds. So each
user is part of three heavy hitters, k* = 3, while the stream has many.

The sizes test the paper's claim. A is just above what the monitor guarantees. C is just above
what the classic technique can reach with the halts that C alone costs. B is between them,
below what the classic technique can reach with the halts of B and C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.privacy.baseline_plans import plan_restarts
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.search import smallest_true
from streamer.privacy.terms import Method
from streamer.privacy.threshold import Workload, plan

FEWEST_USERS = 20_000
MOST_USERS = 100_000_000


@dataclass(frozen=True, slots=True)
class Family:
    """Disjoint sets of at least `size` users each that together contain all users."""

    name: str
    size: int
    sets: int


@dataclass(frozen=True, slots=True)
class PaperExample:
    """The families, the smallest sets first, and the workload that methods are planned for."""

    users: int
    families: tuple[Family, Family, Family]
    workload: Workload

    @property
    def steps(self) -> int:
        return sum(family.sets for family in self.families)

    def halts(self, goal: int) -> int:
        """How many steps have a set of the goal's family or of a family with larger sets."""
        return sum(family.sets for family in self.families[goal:])

    def ignored(self, goal: int) -> int:
        """The largest weight below the goal, at which the classic technique must not halt."""
        return _largest_set(self.users, self.families[goal - 1].sets) if goal > 0 else 1

    def members(self, rng: np.random.Generator) -> list[NDArray[np.uint64]]:
        """For each step, family by family, the users who hold that step's item."""
        return [
            np.sort(part)
            for family in self.families
            for part in np.array_split(rng.permutation(self.users).astype(np.uint64), family.sets)
        ]

    def family_of_step(self) -> NDArray[np.int64]:
        """For each step, in the order of `members`, the index of its family."""
        return np.repeat(np.arange(3), [family.sets for family in self.families])


def paper_example(
    users: int, guarantee: Guarantee, beta: float, items_per_step: int = 1
) -> PaperExample:
    """The example with sizes that fit this number of users and this guarantee.

    `items_per_step`: how many items of a user every method allows for, of which the example uses
    one.
    """
    if not FEWEST_USERS <= users <= MOST_USERS:
        raise SettingError(
            "users", users, f"it must be a whole number from {FEWEST_USERS:,} to {MOST_USERS:,}"
        )
    # The sizes depend on the number of steps and the steps on the sizes, but only through
    # a logarithm, so this converges in a few rounds. Planning for more steps is harmless.
    workload = Workload(users // 500, users, beta, items_per_step=items_per_step)
    example = _for_steps(users, guarantee, workload)
    while True:
        planned = example.steps + example.steps // 100 + 1
        example = _for_steps(users, guarantee, replace(workload, period_steps=planned))
        if example.steps <= planned:
            return example


def _for_steps(users: int, guarantee: Guarantee, workload: Workload) -> PaperExample:
    small = plan(guarantee, workload, Method.HORIZON).guaranteed_weight

    def reached(log_size: float) -> bool:
        large = math.ceil(math.exp(log_size))
        halts = max(1, users // large)
        ignored = _largest_set(users, users // math.isqrt(small * large))
        return plan_restarts(guarantee, workload, halts, ignored).reach <= large

    largest = smallest_true(reached, math.log(small), math.log(2 * users + 1e6), precision=2e-4)
    large = math.ceil(math.exp(largest))
    sizes = (small, math.isqrt(small * large), large)
    if users < 2 * large:
        raise SettingError(
            "users", users, f"at least {2 * large:,} are needed for two sets of the largest size"
        )
    families = [Family(name, size, users // size) for name, size in zip("ABC", sizes, strict=True)]
    return PaperExample(users, (families[0], families[1], families[2]), workload)


def _largest_set(users: int, sets: int) -> int:
    """The size of the largest of `sets` sets that divide all users as evenly as possible."""
    return -(-users // max(1, sets))
