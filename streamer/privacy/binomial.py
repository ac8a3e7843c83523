"""Exact draws for a probability that is known to 50 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

from streamer.privacy.randomness import RandomBytes, secure_bytes

_BYTES = 24


def draw_binomial(
    trials: int, probability: Decimal, random_bytes: RandomBytes = secure_bytes
) -> int:
    """The number of successes, by inversion of a uniform 192-bit number.

    The time is proportional to the result, which is small for all callers.
    """
    with localcontext(prec=60):
        uniform = Decimal(int.from_bytes(random_bytes(_BYTES), "little")) / (1 << 8 * _BYTES)
        odds = probability / (1 - probability)
        mass = below = (1 - probability) ** trials
        successes = 0
        while uniform >= below and successes < trials:
            mass *= odds * (trials - successes) / (successes + 1)
            below += mass
            successes += 1
    return successes


def draw_below(bound: int, random_bytes: RandomBytes = secure_bytes) -> int:
    """A uniform integer from 0 to bound - 1."""
    if bound < 1:
        raise ValueError(f"there is no whole number from 0 to {bound - 1}")
    bits = (bound - 1).bit_length()
    while True:
        number = int.from_bytes(random_bytes(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if number < bound:
            return number
