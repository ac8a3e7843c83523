"""The exact privacy loss of the monitor.

While a user is active, each answer that the user affects tells an adversary no more
than one randomized response with odds e^(1/b), where b is the scale of the noise w. Each
⊤ charges the user, and after k charges the user no longer affects any answer. So all that
an adaptive adversary can learn is the number n of ⊥ before the k-th ⊤ (docs/privacy.md,
theorem 1):

    present:  n ~ NB(k, q₁),  q₁ = e^(1/b) / (1 + e^(1/b))
    absent:   n ~ NB(k, q₀),  q₀ = 1 - q₁

with log-likelihood ratio (k - n)/b. Replacing a user removes one history and adds
another: two independent processes of this kind, with loss (n_B - n_A)/b.

Sums are truncated where the mass left out is below CUT. That mass, and an upper bound on
the rounding error, are added to δ, so every value here errs on the safe side.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamer.privacy.entropy import coin_entropy
from streamer.privacy.search import first_integer, first_power_of_two, smallest_true
from streamer.privacy.terms import Neighbours

CUT = 1e-24
# Above the relative error of any probability here (docs/privacy.md, 3.7).
ROUNDING = 1e-11


def charge_delta(
    epsilon: float, noise_scale: float, contributions: int, neighbours: Neighbours
) -> float:
    """The smallest δ for which noise of scale b with k contributions is (ε, δ)-private."""
    present, absent = _failures(noise_scale, contributions)
    if neighbours == Neighbours.REPLACE:
        delta = _replace_delta(epsilon, noise_scale, present, absent)
    else:
        delta = max(
            _present_delta(epsilon, noise_scale, contributions, present),
            _absent_delta(epsilon, noise_scale, contributions, absent),
        )
    return min(1.0, delta + 4 * CUT)


def total_epsilon(
    delta: float, noise_scale: float, contributions: int, neighbours: Neighbours, periods: int
) -> float:
    """The ε at this total δ after `periods` budget periods, each with fresh counters.

    The k-th success of a coin, P times over, is the (P·k)-th success: the P-fold
    composition of the loss is the loss of P·k contributions.
    """
    charges = contributions * periods

    def private(epsilon: float) -> bool:
        return charge_delta(epsilon, noise_scale, charges, neighbours) <= delta

    return smallest_true(private, 0.0, first_power_of_two(private), precision=1e-7)


class _Failures:
    """The distribution NB(k, q) of failures before the k-th success, without a mass of 2·CUT."""

    def __init__(self, successes: int, log_success: float, log_failure: float) -> None:
        self.first, last = _window(successes, math.exp(log_success))
        numbers = np.arange(self.first, last, dtype=np.float64)
        log_ratios = np.log((numbers + successes) / (numbers + 1)) + log_failure
        logs = np.append(0.0, np.cumsum(log_ratios))
        # All but 2·CUT of the mass is in the window, so the sum normalizes it.
        mass = np.exp(logs - logs.max())
        self.mass: NDArray[np.float64] = mass / mass.sum()
        self.numbers: NDArray[np.int64] = np.arange(self.first, last + 1)
        # above[i] is the mass of all numbers >= first + i, summed from the small end.
        self._above = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)

    def at_least(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        places = np.clip(numbers - self.first, 0, len(self.mass))
        return np.asarray(self._above[places])


@lru_cache(maxsize=8)
def _failures(noise_scale: float, contributions: int) -> tuple[_Failures, _Failures]:
    """The distributions of n for a user who is present and for one who is absent."""
    odds = 1 / noise_scale
    log_likely = -math.log1p(math.exp(-odds))
    log_unlikely = log_likely - odds
    present = _Failures(contributions, log_likely, log_unlikely)
    absent = _Failures(contributions, log_unlikely, log_likely)
    return present, absent


def _present_delta(epsilon: float, scale: float, charges: int, present: _Failures) -> float:
    losses = (charges - present.numbers) / scale
    return _hockey_stick(present.mass, losses, epsilon)


def _absent_delta(epsilon: float, scale: float, charges: int, absent: _Failures) -> float:
    losses = (absent.numbers - charges) / scale
    return _hockey_stick(absent.mass, losses, epsilon)


def _hockey_stick(mass: NDArray[np.float64], losses: NDArray[np.float64], epsilon: float) -> float:
    gain = losses > epsilon
    return float(np.sum(mass[gain] * -np.expm1(epsilon - losses[gain]))) * (1 + ROUNDING)


def _replace_delta(epsilon: float, scale: float, present: _Failures, absent: _Failures) -> float:
    """Pr[d > ε·b] - e^ε·Pr'[d > ε·b] for d = n_B - n_A; in Pr' the two are swapped."""
    gap = math.floor(epsilon * scale) + 1
    likely = float(np.sum(present.mass * absent.at_least(present.numbers + gap)))
    unlikely = float(np.sum(absent.mass * present.at_least(absent.numbers + gap)))
    # A difference of two probabilities that are close for small ε keeps their full error.
    error = ROUNDING * likely
    if unlikely == 0.0:
        return likely + error
    return max(0.0, likely - math.exp(epsilon + math.log(unlikely))) + error


def _window(successes: int, success: float) -> tuple[int, int]:
    """A range of failures outside which NB(k, q) has mass below CUT on either side.

    Chernoff's bound: n tosses with a share s of successes have probability at most
    exp(-n·KL(s‖q)), and the exponent grows with the distance from the mean.
    """
    mean = successes * (1 - success) / success
    exponent = -math.log(CUT)

    def few_successes(failures: int) -> bool:
        tosses = failures + successes - 1
        return (
            failures > mean and tosses * coin_entropy((successes - 1) / tosses, success) > exponent
        )

    def few_failures(failures: int) -> bool:
        tosses = failures + successes
        return failures < mean and tosses * coin_entropy(successes / tosses, success) > exponent

    # Both ends are outside the range: the first number above the mean with too few
    # successes, and the last number with too few failures, if there is one.
    inner = first_integer(lambda failures: not few_failures(failures), least=0)
    return max(0, inner - 1), first_integer(few_successes, least=math.ceil(mean))
