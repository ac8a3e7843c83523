"""Discrete Laplace noise: the law it promises, bit by bit and in the large."""

import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from streamer.errors import SettingError
from streamer.privacy.noise import LARGEST_SCALE, SMALLEST_SCALE, DiscreteLaplace, _digit_tables
from streamer.privacy.randomness import SeededBytes
from tests.monitors.chance import implausible
from tests.privacy.cuts import WHOLE, widths

DRAWS = 1_000_000
FALSE_ALARM = 1e-9
SCALES = [0.1, 1.0, 20.97, 150.0, 181.0, 1000.0, 1e5, 1e7]


# 1. In the large


def events(noise: np.ndarray, scale: float) -> list[tuple[float, float]]:
    """Shares of the draws for which something holds, each with its probability."""
    rate = 1 / scale
    side = 1 / (1 + math.exp(-rate))  # Pr[x >= 0]
    found = [(float(np.mean(noise == 0)), -math.expm1(-rate) * side)]
    for far in sorted({math.ceil(scale * c) for c in (0.02, 0.1, 0.3, 0.7, 1, 1.5, 2, 3, 5, 8)}):
        tail = math.exp(-far * rate) * side  # Pr[x >= far] = r^far/(1+r)
        found.append((float(np.mean(noise >= far)), tail))
        found.append((float(np.mean(noise <= -far)), tail))
        found.append((float(np.mean(np.abs(noise) >= far)), 2 * tail))
    # The sixteenths of the lowest digit of the magnitude, which is x or -1 - x.
    sixteenths = np.bincount((np.where(noise < 0, -1 - noise, noise) & 255) >> 4, minlength=16)
    block = -math.expm1(-16 * rate) / -math.expm1(-256 * rate)
    found += [
        (count / len(noise), math.exp(-16 * place * rate) * block)
        for place, count in enumerate(sixteenths)
    ]
    return found


def rejected(noise: np.ndarray, scale: float) -> bool:
    """Whether the draws cannot come from the law of this scale.

    Chernoff: n·KL(seen share ‖ probability) exceeds c with probability at most 2e^-c for
    each event. A union over the events makes the false-alarm rate at most FALSE_ALARM, one
    in a billion.
    """
    tested = events(noise, scale)
    limit = math.log(2 * len(tested) / FALSE_ALARM)
    return any(len(noise) * divergence(*event) > limit for event in tested)


def divergence(share: float, probability: float) -> float:
    """KL of two coins; a probability so small or large that it rounds away allows no error."""
    total = 0.0
    for seen, expected in ((share, probability), (1 - share, 1 - probability)):
        if seen > 0:
            total += seen * math.log(seen / expected) if expected > 0 else math.inf
    return total


def seeded(scale: float) -> np.ndarray:
    # Of a small scale nearly all draws are 0: the few others need more to show a law.
    return DiscreteLaplace(scale, SeededBytes(1)).draw(DRAWS if scale >= 1 else 4 * DRAWS)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law_of_their_scale(scale):
    assert not rejected(seeded(scale), scale)


@pytest.mark.parametrize("scale", [20.97, 1e5])
def test_draws_from_the_secure_source_follow_the_law_of_their_scale(scale):
    assert not rejected(DiscreteLaplace(scale).draw(DRAWS), scale)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.95, 1.05])
@pytest.mark.parametrize("scale", SCALES)
def test_draws_of_a_scale_five_percent_off_are_rejected(scale, wrong):
    assert rejected(seeded(scale * wrong), scale)


# A zero is too rare to be missed or noticed above this scale.
@pytest.mark.parametrize("scale", [scale for scale in SCALES if 1 <= scale <= 1000])
def test_a_random_sign_on_a_geometric_magnitude_counts_zero_twice_and_is_rejected(scale):
    noise = seeded(scale)
    magnitude = np.where(noise < 0, -1 - noise, noise)
    sign = 1 - 2 * (np.frombuffer(SeededBytes(2)(DRAWS), dtype=np.uint8) & 1).astype(np.int64)
    assert rejected(sign * magnitude, scale)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_a_sign_that_prefers_one_side_is_rejected(scale):
    noise = seeded(scale)
    noise[::50] = np.abs(noise[::50])
    assert rejected(noise, scale)


@pytest.mark.parametrize("scale", [1e5, 1e7])
def test_a_lowest_digit_that_never_varies_is_rejected(scale):
    assert rejected(seeded(scale) & ~np.int64(255), scale)


# 2. Bit by bit


def ideal_digit(ratio: mpmath.mpf, symbols: list[int], last: bool) -> list[mpmath.mpf]:
    """The digit's probabilities: r^d·(1-r)/(1-r^256), or r^d·(1-r) for the highest.

    The signed lowest digit has 1/(1+r) of that for d >= 0, and r/(1+r) for -1-d.
    """
    weight = (1 - ratio) / (1 if last else 1 - ratio**256)
    signed = min(symbols) < 0
    probabilities = []
    for symbol in symbols:
        digit = symbol if symbol >= 0 else -1 - symbol
        side = (ratio if symbol < 0 else 1) / (1 + ratio) if signed else 1
        probabilities.append(weight * side * ratio**digit)
    return probabilities


def distance(scale: float) -> mpmath.mpf:
    """Total variation of all digits together from the ideal law, bounded by their sum."""
    with mpmath.workdps(90):
        tables, total = _digit_tables(scale), mpmath.mpf(0)
        for place, table in enumerate(tables):
            ratio = mpmath.exp(-mpmath.mpf(256**place) / mpmath.mpf(scale))
            symbols = [int(symbol) for symbol in table._symbols]
            ideal = ideal_digit(ratio, symbols, last=place == len(tables) - 1)
            differences = [
                abs(mpmath.mpf(width) / WHOLE - probability)
                for width, probability in zip(widths(table).values(), ideal, strict=True)
            ]
            # Symbols that the table does not have keep the rest of the ideal law.
            total += (mpmath.fsum(differences) + abs(1 - mpmath.fsum(ideal))) / 2
        return total


@pytest.mark.slow
@pytest.mark.parametrize("scale", [SMALLEST_SCALE, 0.05, *SCALES, 180.0, 32_405.0, LARGEST_SCALE])
def test_the_tables_are_within_2_to_the_minus_100_of_the_ideal_law(scale):
    assert distance(scale) < mpmath.mpf(2) ** -100


def test_the_distance_notices_one_cut_that_is_off_in_its_30th_digit(monkeypatch):
    table = _digit_tables(20.97)[0]
    cuts = list(table._cuts)
    cuts[5] += 1 << 29
    monkeypatch.setattr(table, "_cuts", cuts)
    assert distance(20.97) > mpmath.mpf(2) ** -100


@pytest.mark.parametrize("scale", [0.1, 20.97, 181.0, 1e5, 1e7])
def test_digits_together_have_the_probability_of_their_number(scale):
    tables = _digit_tables(scale)
    chances = [
        {symbol: Fraction(width, WHOLE) for symbol, width in widths(table).items()}
        for table in tables
    ]
    far = round(scale)
    with mpmath.workdps(90):
        ratio = mpmath.exp(-1 / mpmath.mpf(scale))
        for number in (0, 1, -1, 255, 256, -256, -257, far, -far, 5 * far, -5 * far - 1):
            magnitude = number if number >= 0 else -1 - number
            digits = [magnitude // 256**place % 256 for place in range(len(tables) - 1)]
            digits.append(magnitude // 256 ** (len(tables) - 1))
            if number < 0:
                digits[0] = -1 - digits[0]
            chance = math.prod(
                chance.get(digit, Fraction(0))
                for chance, digit in zip(chances, digits, strict=True)
            )
            ideal = (1 - ratio) / (1 + ratio) * ratio ** abs(number)
            exact = mpmath.mpf(chance.numerator) / chance.denominator
            assert abs(exact - ideal) < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("scale", [181.0, 1e5, 1e7])
def test_a_draw_is_its_digits_put_together(scale):
    source = SeededBytes(3)
    lowest, *higher = (table.draw(1000, source).astype(int) for table in _digit_tables(scale))
    expected = []
    for place, low in enumerate(lowest.tolist()):
        magnitude = low if low >= 0 else -1 - low
        magnitude += sum(int(d[place]) * 256**i for i, d in enumerate(higher, start=1))
        expected.append(magnitude if low >= 0 else -1 - magnitude)
    assert DiscreteLaplace(scale, SeededBytes(3)).draw(1000).tolist() == expected


# 3. Above a bound


def above(scale: float, bound: int, far: int) -> float:
    """Pr[x >= far | x >= bound], by (0) of docs/privacy.md."""

    def tail(least: int) -> float:
        side = 1 / (1 + math.exp(-1 / scale))
        if least > 0:
            return math.exp(-least / scale) * side
        return 1 - math.exp((least - 1) / scale) * side

    # Of two bounds above 0 only the difference matters; both may be too far for a float.
    return math.exp((bound - far) / scale) if bound >= 0 else tail(far) / tail(bound)


@pytest.mark.parametrize("scale", [1.0, 20.97, 1000.0])
@pytest.mark.parametrize("place", [-3, -0.3, 0, 1, 40, 2000])
def test_draws_above_a_bound_follow_the_law_above_it(scale, place):
    number, bound = 100_000, round(place * scale)
    drawn = DiscreteLaplace(scale, SeededBytes(8)).draw_at_least(bound, number)
    assert drawn.dtype == np.int64
    assert len(drawn) == number
    assert drawn.min() >= bound
    places = [math.ceil(bound + scale * c) for c in (0.02, 0.1, 0.3, 0.7, 1, 2, 3, 5, 8)]
    for far in places:
        reached = int(np.sum(drawn >= far))
        assert not implausible(reached, number, above(scale, bound, far), len(places))


# 4. Around it


@pytest.mark.parametrize("scale", [20.97, 1e7])
@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_as_many_integers_are_drawn_as_asked_for(scale, size):
    noise = DiscreteLaplace(scale).draw(size)
    assert noise.shape == (size,)
    assert noise.dtype == np.int64


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, 0.9e-3, 1.1e15, math.inf, -math.inf, math.nan], ids=str
)
def test_a_scale_out_of_range_is_refused(scale):
    with pytest.raises(SettingError) as caught:
        DiscreteLaplace(scale)
    assert caught.value.setting == "noise scale"
    assert f"noise scale is {scale}" in str(caught.value)


@pytest.mark.parametrize("scale", [SMALLEST_SCALE, 0.01, 0.025])
def test_noise_of_a_tiny_scale_is_zero(scale):
    # A thousand draws have any other number with probability below 1e-14.
    assert not DiscreteLaplace(scale).draw(1000).any()


def test_noise_of_the_largest_scale_can_be_drawn():
    noise = DiscreteLaplace(LARGEST_SCALE, SeededBytes(5)).draw(DRAWS)
    assert not rejected(noise, LARGEST_SCALE)


@pytest.mark.parametrize("scale", [20.97, 1e5])
def test_the_same_seed_draws_the_same_noise_and_another_one_other_noise(scale):
    one, same, other = (DiscreteLaplace(scale, SeededBytes(seed)).draw(100) for seed in (6, 6, 7))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


# Two honest lists of 64 draws at scale 1000 agree with probability below 2^-600.
@pytest.mark.parametrize("size", [64, 5000], ids=["few", "bulk"])
def test_unseeded_noise_never_repeats(size):
    noise = DiscreteLaplace(1000.0)
    assert noise.draw(size).tolist() != noise.draw(size).tolist()
    assert noise.draw(size).tolist() != DiscreteLaplace(1000.0).draw(size).tolist()


FORKING = """
import os, sys
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.randomness import SeededBytes

noise = DiscreteLaplace(1000.0, *([SeededBytes(1)] if sys.argv[1] == "seeded" else []))
size = int(sys.argv[2])
noise.draw(size)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.write(writing, noise.draw(size)[-64:].tobytes())
    os._exit(0)
mine = noise.draw(size)[-64:].tobytes()
os.waitpid(child, 0)
theirs = os.read(reading, 512)
assert len(theirs) == len(mine) == 512
print("same" if mine == theirs else "different")
"""


def drawn_by_parent_and_child(source: str, size: int) -> str:
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", FORKING, source, str(size)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("size", [64, 5000], ids=["few", "bulk"])
def test_a_forked_child_and_its_parent_draw_different_noise(size):
    assert drawn_by_parent_and_child("secure", size) == "different"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_source_that_keeps_state_over_a_fork_is_caught():
    assert drawn_by_parent_and_child("seeded", 64) == "same"
