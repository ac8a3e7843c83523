"""When a number of successes is too far from what it should be to be chance.

Chernoff: n tosses of a coin with probability p have n·KL(share ‖ p) > c with probability
at most 2e^(-c). All checks here raise a false alarm with probability below FALSE_ALARM.
"""

import math
from collections.abc import Iterable

FALSE_ALARM = 1e-9


def implausible(successes: int, trials: int, probability: float, checks: int = 1) -> bool:
    """Whether this many successes contradict the probability, over `checks` checks in total."""
    return trials * _divergence(successes / trials, probability) > math.log(
        2 * checks / FALSE_ALARM
    )


def implausible_law(counts: Iterable[int], trials: int, law: Iterable[float]) -> bool:
    """Whether any of these outcomes occurred too rarely or too often for its probability."""
    pairs = list(zip(counts, law, strict=True))
    return any(implausible(count, trials, share, len(pairs)) for count, share in pairs)


def differ(first: int, second: int, trials: int, checks: int = 1) -> bool:
    """Whether two coins, each tossed this often, cannot have the same probability.

    The share of both together minimises the sum of the two divergences, so under the
    true probability the sum is not smaller; it exceeds c with probability 4e^(-c/2).
    """
    both = (first + second) / (2 * trials)
    spread = sum(trials * _divergence(count / trials, both) for count in (first, second))
    return spread > 2 * math.log(4 * checks / FALSE_ALARM)


def _divergence(share: float, probability: float) -> float:
    if probability in (0, 1):
        return 0.0 if share == probability else math.inf
    ones = share * math.log(share / probability) if share else 0.0
    zeros = (1 - share) * math.log((1 - share) / (1 - probability)) if share < 1 else 0.0
    return ones + zeros
