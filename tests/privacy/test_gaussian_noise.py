"""Discrete Gaussian noise: the law it promises, bit by bit and in the large."""

import math
import time

import mpmath
import numpy as np
import pytest

from streamer.errors import SettingError
from streamer.privacy import gaussian_mass
from streamer.privacy.gaussian_noise import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    DiscreteGaussian,
    _Blocks,
    _blocks,
)
from streamer.privacy.randomness import SeededBytes
from tests.monitors.chance import implausible
from tests.privacy.cuts import WHOLE, widths

DRAWS = 1_000_000
SIGMAS = [0.5, 5.0, 70.498, 256.0, 257.0, 700.0, 1e4, 1e6]
# Narrow and wide blocks; bounds of both signs, near and far; 0 inside a block.
BOUNDS = [
    *((0.5, 1), (0.5, 20), (5.0, -3), (70.498, 452), (70.498, 2819)),
    *((700.0, -1001), (700.0, 0), (700.0, 4001), (700.0, 28_000), (1e4, 123_457)),
]


# 1. In the large


def tail(sigma: float, bound: int) -> mpmath.mpf:
    """Σ_{x >= bound} e^(-x²/2σ²), with an error of the fraction (bound/σ²)²/24 for a large σ."""
    if sigma > 1000:
        return sigma * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc((bound - 0.5) / sigma / 2**0.5)
    far = math.ceil(math.sqrt(max(bound, 0) ** 2 + 200 * sigma**2))
    squares = np.arange(max(bound, -far), far + 1, dtype=np.int64) ** 2
    nearest = int(squares.min())
    scaled = np.exp((nearest - squares) / (2 * sigma**2)).sum()
    return float(scaled) * mpmath.exp(-mpmath.mpf(nearest) / (2 * mpmath.mpf(sigma) ** 2))


def rejected(noise: np.ndarray, sigma: float, bound: int | None = None) -> bool:
    """Whether the draws cannot come from the law of this σ, above the bound if there is one.

    Looks at the share of draws above each of 49 places and, without a bound, at the lowest
    four bits. A correct sampler is rejected with a probability below one in a billion.
    """
    least = -math.ceil(15 * sigma) if bound is None else bound
    whole, mode = tail(sigma, least), max(least, 0)
    # Above a far bound the law is nearly geometric, with this scale.
    scale = min(sigma, sigma**2 / (mode + 1))
    places = {mode + math.ceil(scale * quarter / 4) for quarter in range(-24, 25)}
    events = [
        (int(np.sum(noise >= place)), min(1.0, float(tail(sigma, place) / whole)))
        for place in places
        if place > least
    ]
    if bound is None and sigma > 64:
        # Uniform up to e^(-2π²σ²/16²).
        events += [(int(count), 1 / 16) for count in np.bincount(noise & 15, minlength=16)]
    return any(implausible(count, len(noise), share, len(events)) for count, share in events)


def seeded(sigma: float) -> np.ndarray:
    return DiscreteGaussian(sigma, SeededBytes(1)).draw(DRAWS)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_draws_follow_the_law_of_their_sigma(sigma):
    assert not rejected(seeded(sigma), sigma)


@pytest.mark.parametrize("sigma", [70.498, 1e4])
def test_draws_from_the_secure_source_follow_the_law_of_their_sigma(sigma):
    assert not rejected(DiscreteGaussian(sigma).draw(DRAWS), sigma)


@pytest.mark.parametrize(("sigma", "bound"), BOUNDS)
def test_draws_above_a_bound_follow_the_law_above_it(sigma, bound):
    noise = DiscreteGaussian(sigma, SeededBytes(2)).draw_at_least(bound, 100_000)
    assert noise.min() >= bound
    assert not rejected(noise, sigma, bound)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.98, 1.02])
@pytest.mark.parametrize("sigma", SIGMAS[1:-1])
def test_draws_of_a_sigma_two_percent_off_are_rejected(sigma, wrong):
    assert rejected(seeded(sigma * wrong), sigma)


@pytest.mark.parametrize("sigma", [0.5, 70.498, 1e4])
def test_draws_reach_a_bound_as_often_as_the_precise_probability_says(sigma):
    noise = seeded(sigma)
    bounds = [round(place * sigma) for place in (-2, 0, 0.02, 1, 3)]
    for bound in bounds:
        reached = int(np.sum(noise >= bound))
        probability = float(gaussian_mass.precise_at_least(sigma, bound))
        assert not implausible(reached, DRAWS, probability, len(bounds))


def test_draws_above_a_bound_that_is_off_by_one_are_rejected():
    noise = DiscreteGaussian(70.498, SeededBytes(2)).draw_at_least(453, 100_000)
    assert rejected(noise, 70.498, 452)


@pytest.mark.parametrize("sigma", SIGMAS[1:])
def test_a_sign_that_prefers_one_side_is_rejected(sigma):
    noise = seeded(sigma)
    noise[::50] = np.abs(noise[::50])
    assert rejected(noise, sigma)


@pytest.mark.parametrize("sigma", [1e4, 1e6])
def test_low_bits_that_never_vary_are_rejected(sigma):
    assert rejected(seeded(sigma) & ~np.int64(15), sigma)


@pytest.fixture
def coarse(monkeypatch):
    """Four to eight blocks to a σ: a draw in eight is in a wedge."""
    monkeypatch.setattr(gaussian_mass, "_FINEST", 8)
    return _Blocks(700.0, -80 * 128)


def test_draws_with_many_wedges_follow_the_law_of_their_sigma(coarse):
    assert not rejected(coarse.draw(100_000, SeededBytes(3)), 700.0)


@pytest.mark.parametrize("always", [True, False])
def test_wedges_that_are_all_accepted_or_all_drawn_again_are_rejected(coarse, monkeypatch, always):
    def accept(blocks, places, random_bytes):
        # What is drawn again is drawn correctly, or it would never end.
        monkeypatch.undo()
        return np.full(len(blocks), always)

    monkeypatch.setattr(coarse, "_accept", accept)
    assert rejected(coarse.draw(100_000, SeededBytes(3)), 700.0)


# 2. Bit by bit


def mass(blocks: _Blocks, x: int) -> mpmath.mpf:
    return mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(blocks._sigma) ** 2))


def extremes(blocks: _Blocks, block: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The smallest and the largest p in a block."""
    start = blocks._first + block * blocks._width
    end = start + blocks._width - 1
    ends = mass(blocks, start), mass(blocks, end)
    return min(ends), mpmath.mpf(1) if start <= 0 <= end else max(ends)


def distance(blocks: _Blocks) -> mpmath.mpf:
    """Total variation from the ideal law above `first`, bounded as docs/privacy.md does.

    A comparison in a wedge is within 2^-127 of its share, which a test below shows.
    """
    found = widths(blocks._table)
    count = max(found) // 2 + 1
    lows, highs = zip(*(extremes(blocks, block) for block in range(count)), strict=True)
    under_highs = mpmath.fsum(highs)
    error = mpmath.mpf(2) ** -127
    for block, (low, high) in enumerate(zip(lows, highs, strict=True)):
        parts = (
            {2 * block: low, 2 * block + 1: high - low} if blocks._width > 1 else {2 * block: low}
        )
        for symbol, weight in parts.items():
            error += abs(mpmath.mpf(found.pop(symbol)) / WHOLE - weight / under_highs) / 2
    assert not found
    accepted = mpmath.fsum(lows) / under_highs
    end = blocks._first + count * blocks._width
    left_out = tail(blocks._sigma, end) / tail(blocks._sigma, blocks._first)
    if blocks._first < -13 * blocks._sigma:
        left_out *= 2
    return 2 * error / accepted + left_out


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [*SIGMAS, 0.7, 1023.9])
def test_the_tables_are_within_2_to_the_minus_100_of_the_ideal_law(sigma):
    with mpmath.workdps(90):
        assert distance(DiscreteGaussian(sigma)._blocks) < mpmath.mpf(2) ** -100


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "bound"), [*BOUNDS, (1e6, 40_000_000)])
def test_the_tables_above_a_bound_are_within_2_to_the_minus_111_of_the_ideal_law(sigma, bound):
    with mpmath.workdps(90):
        assert distance(_blocks(sigma, bound)) < mpmath.mpf(2) ** -111


def test_the_distance_notices_one_cut_that_is_off_in_its_30th_digit(monkeypatch):
    blocks = DiscreteGaussian(70.498)._blocks
    cuts = list(blocks._table._cuts)
    cuts[900] += 1 << 29
    monkeypatch.setattr(blocks._table, "_cuts", cuts)
    with mpmath.workdps(90):
        assert distance(blocks) > mpmath.mpf(2) ** -100


# σ, first: in the middle, at a side, above a far bound, and with 0 inside a block.
WIDE = [(257.0, -3600), (700.0, -1001), (1e4, 123_457), (1e6, -14_000_000)]


@pytest.fixture(params=WIDE, ids=str)
def wide(request):
    return _blocks(*request.param)


def some_places(blocks: _Blocks) -> list[tuple[int, int]]:
    """Blocks on both sides and around 0, each with places at its ends and between."""
    count, width = len(blocks._slacks), blocks._width
    middle = -blocks._first // blocks._width
    numbers = {0, 1, count // 9, count // 3, count // 2, count - 1}
    numbers |= {middle - 1, middle, middle + 1, 2 * middle // 3}
    places = {0, 1, width // 3, width // 2, width - 2, width - 1} & set(range(width))
    return [(n, place) for n in sorted(numbers) if 0 <= n < count for place in sorted(places)]


def accepted_numbers(blocks: _Blocks, block: int, place: int) -> int:
    """How many of the 2^128 uniform numbers accept a place in a wedge."""
    low, high = 0, WHOLE
    while low < high:
        number = (low + high) // 2
        if blocks._is_under(block, place, number):
            low = number + 1
        else:
            high = number
    return low


@pytest.mark.slow
def test_a_place_in_a_wedge_is_accepted_with_the_share_that_is_under_the_law(wide):
    with mpmath.workdps(90):
        for block, place in some_places(wide):
            low, high = extremes(wide, block)
            x = wide._first + block * wide._width + place
            share = (mass(wide, x) - low) / (high - low)
            assert abs(accepted_numbers(wide, block, place) - share * WHOLE) < 2


@pytest.mark.slow
def test_two_integers_have_probabilities_in_the_ratio_of_the_law(wide):
    found = widths(wide._table)

    def probability(block: int, place: int) -> mpmath.mpf:
        wedge = mpmath.mpf(found[2 * block + 1]) * accepted_numbers(wide, block, place) / WHOLE
        return (found[2 * block] + wedge) / WHOLE

    with mpmath.workdps(90):
        thick = [place for place in some_places(wide) if found[2 * place[0]] > WHOLE >> 20]
        block, place = thick[0]
        unit = probability(block, place) / mass(wide, wide._first + block * wide._width + place)
        for block, place in thick[1:]:
            ideal = mass(wide, wide._first + block * wide._width + place) * unit
            assert abs(probability(block, place) / ideal - 1) < mpmath.mpf(2) ** -90


def close_numbers(blocks: _Blocks, block: int, place: int) -> list[int]:
    """Uniform numbers around those where the straight line begins and ceases to decide."""
    run = blocks._width - 1
    falling = blocks._first + block * blocks._width >= 0
    line = ((run - place if falling else place) << 32) // run
    slack = int(blocks._slacks[block]) // run
    firsts = {line + side * slack + off for side in (-1, 0, 1) for off in range(-2, 3)}
    firsts |= {0, (1 << 32) - 1}
    return [
        first << 96 | rest
        for first in sorted(firsts)
        if 0 <= first < 1 << 32
        for rest in (0, (1 << 96) - 1)
    ]


def disagreements(blocks: _Blocks) -> int:
    """How many close calls the line decides otherwise than the exact comparison."""
    calls = [
        (block, place, number)
        for block, place in some_places(blocks)
        for number in close_numbers(blocks, block, place)
    ]
    numbers = b"".join(
        (number >> 64).to_bytes(8, "little") + (number & (1 << 64) - 1).to_bytes(8, "little")
        for _, _, number in calls
    )
    chosen = np.array([call[:2] for call in calls], dtype=np.int64)
    found = blocks._accept(chosen[:, 0], chosen[:, 1], lambda size: numbers[:size])
    return sum(one != blocks._is_under(*call) for one, call in zip(found, calls, strict=True))


@pytest.mark.slow
def test_the_straight_line_decides_as_the_exact_comparison_does(wide):
    assert disagreements(wide) == 0


def test_a_line_that_is_trusted_too_much_decides_otherwise(monkeypatch):
    blocks = _blocks(1e4, -150_000)
    monkeypatch.setattr(blocks, "_slacks", blocks._slacks * 0)
    assert disagreements(blocks) > 0


# 3. Draw by draw


class Script:
    """Gives these symbols as a table and these bytes as a source, and nothing else."""

    def __init__(self, symbols: list[list[int]], answers: list[bytes]) -> None:
        self.symbols, self.answers = symbols, answers

    def draw(self, size: int, random_bytes) -> np.ndarray:
        assert len(self.symbols[0]) == size
        return np.array(self.symbols.pop(0), dtype=np.int16)

    def __call__(self, size: int) -> bytes:
        assert len(self.answers[0]) == size
        return self.answers.pop(0)


def scripted(monkeypatch, symbols, *answers) -> list[int]:
    """What blocks of four, the first at -9600, draw from the script; all of it is used."""
    blocks = _Blocks(700.0, -9600)
    assert blocks._width == 4
    script = Script(symbols, list(answers))
    monkeypatch.setattr(blocks, "_table", script)
    drawn = blocks.draw(len(symbols[0]), script).tolist()
    assert not script.symbols
    assert not script.answers
    return drawn


def places(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "little") for number in numbers)


ACCEPTS, REFUSES = bytes(16), b"\xff" * 16


def test_a_place_in_a_rectangle_is_the_draw(monkeypatch):
    drawn = scripted(monkeypatch, [[0, 0, 2000, 4800]], places(0, 3, 2, 1))
    assert drawn == [-9600, -9597, -5598, 1]


def test_only_the_lowest_bits_of_a_place_count(monkeypatch):
    assert scripted(monkeypatch, [[2000]], places(0xFFFE)) == [-5598]


def test_an_accepted_place_in_a_wedge_is_the_draw(monkeypatch):
    drawn = scripted(monkeypatch, [[2000, 2001, 6001]], places(1, 2, 1), ACCEPTS * 2)
    assert drawn == [-5599, -5598, 2401]


def test_a_refused_place_is_drawn_again_with_its_block(monkeypatch):
    drawn = scripted(
        monkeypatch,
        [[2000, 2001, 2001, 6001], [4000, 6001], [2]],
        places(1, 1, 2, 1),
        REFUSES + ACCEPTS + REFUSES,
        places(3, 2),
        REFUSES,
        places(0),
    )
    assert drawn == [-5599, -1597, -5598, -9596]


@pytest.mark.parametrize(("symbol", "tall", "short"), [(2001, 3, 0), (6001, 0, 3)])
def test_the_end_that_is_nearer_to_0_is_always_accepted_and_the_other_never(
    monkeypatch, symbol, tall, short
):
    start = -9600 + 4 * (symbol // 2)
    assert scripted(monkeypatch, [[symbol]], places(tall), REFUSES) == [start + tall]
    refused = scripted(monkeypatch, [[symbol], [0]], places(short), ACCEPTS, places(0))
    assert refused == [-9600]


@pytest.mark.parametrize("sigma", [257.0, 700.0, 1e6])
def test_few_draws_need_the_exact_comparison(monkeypatch, sigma):
    blocks = DiscreteGaussian(sigma)._blocks
    compared, is_under = [], blocks._is_under
    monkeypatch.setattr(blocks, "_is_under", lambda *call: compared.append(call) or is_under(*call))
    blocks.draw(100_000, SeededBytes(4))
    assert len(compared) < 10


# 4. Around it


@pytest.mark.parametrize("sigma", [70.498, 1e4])
@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_as_many_integers_are_drawn_as_asked_for(sigma, size):
    for noise in (
        DiscreteGaussian(sigma).draw(size),
        DiscreteGaussian(sigma).draw_at_least(400, size),
    ):
        assert noise.shape == (size,)
        assert noise.dtype == np.int64


@pytest.mark.parametrize("sigma", [0.0, -1.0, 0.49, 1.1e6, math.inf, -math.inf, math.nan], ids=str)
def test_a_sigma_out_of_range_is_refused(sigma):
    with pytest.raises(SettingError) as caught:
        DiscreteGaussian(sigma)
    assert caught.value.setting == "noise scale"
    assert str(caught.value) == (
        f"noise scale is {sigma}: for Gaussian noise it must be from 0.5 to 1e+06"
    )


@pytest.mark.parametrize("sigma", [SMALLEST_SIGMA, LARGEST_SIGMA])
def test_the_limits_themselves_are_allowed(sigma):
    assert len(DiscreteGaussian(sigma).draw(10)) == 10


def test_a_bound_beyond_40_sigma_is_refused():
    noise = DiscreteGaussian(70.5)
    assert noise.draw_at_least(2820, 5).min() >= 2820
    with pytest.raises(ValueError, match=r"bound is 2821: it must be at most 40·70\.5"):
        noise.draw_at_least(2821, 5)


@pytest.mark.parametrize("sigma", [70.498, 1e4])
def test_a_bound_below_everything_changes_nothing(sigma):
    free = DiscreteGaussian(sigma, SeededBytes(5)).draw(1000)
    bound = DiscreteGaussian(sigma, SeededBytes(5)).draw_at_least(-(10**15), 1000)
    assert free.tolist() == bound.tolist()


@pytest.mark.parametrize("sigma", [70.498, 1e4])
def test_the_same_seed_draws_the_same_noise_and_another_one_other_noise(sigma):
    one, same, other = (DiscreteGaussian(sigma, SeededBytes(seed)).draw(100) for seed in (6, 6, 7))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


# Two honest lists of 64 draws at σ = 1000 agree with probability below 2^-600.
@pytest.mark.parametrize("size", [64, 5000], ids=["few", "bulk"])
def test_unseeded_noise_never_repeats(size):
    noise = DiscreteGaussian(1000.0)
    assert noise.draw(size).tolist() != noise.draw(size).tolist()


@pytest.mark.parametrize(("sigma", "seconds"), [(70.0, 0.2), (512.0, 1.0), (1e6, 1.0)])
def test_a_sampler_is_made_in_a_moment(sigma, seconds):
    _blocks.cache_clear()
    start = time.process_time()
    DiscreteGaussian(sigma)
    assert time.process_time() - start < seconds
