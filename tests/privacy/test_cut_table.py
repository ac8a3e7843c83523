"""Tables of cuts: every 128-bit number selects the symbol that a plain search finds."""

from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction

import pytest

from streamer.privacy.cut_table import CutTable
from streamer.privacy.gaussian_noise import DiscreteGaussian
from streamer.privacy.noise import _digit_tables
from streamer.privacy.randomness import SeededBytes
from tests.privacy.cuts import WHOLE, widths


def test_symbols_have_numbers_in_proportion_to_their_weights():
    table = CutTable([7, -3, 20], [Decimal(1), Decimal(2), Decimal(4)])
    shares = {7: Fraction(1, 7), -3: Fraction(2, 7), 20: Fraction(4, 7)}
    assert sum(widths(table).values()) == WHOLE
    for symbol, width in widths(table).items():
        assert abs(width - shares[symbol] * WHOLE) < 1


class Script:
    """A source that spells out the given 128-bit numbers, and counts what is read.

    The first read is the 16-bit prefixes of all of them; a second one gives, for those
    whose prefix is undecided, 48 bits (above 16 that nobody may look at) and 64.
    """

    def __init__(self, table, numbers: list[int]) -> None:
        undecided = [
            number
            for number in numbers
            if bisect_right(table._cuts, number >> 112 << 112)
            != bisect_right(table._cuts, number | (1 << 112) - 1)
        ]
        self.answers = [
            b"".join((number >> 112).to_bytes(2, "little") for number in numbers),
            b"".join(
                ((number >> 64 & (1 << 48) - 1) << 16 | 0xBEEF).to_bytes(8, "little")
                + (number & (1 << 64) - 1).to_bytes(8, "little")
                for number in undecided
            ),
        ]
        self.read = 0

    def __call__(self, size: int) -> bytes:
        answer = self.answers[self.read]
        self.read += 1
        assert len(answer) == size
        return answer


def drawn(table, numbers: list[int]) -> list[int]:
    return table.draw(len(numbers), Script(table, numbers)).tolist()


def looked_up(table, numbers: list[int]) -> list[int]:
    return [int(table._symbols[bisect_right(table._cuts, number)]) for number in numbers]


# Each digit of a one-digit, a two-digit and a three-digit scale; narrow and wide blocks.
DIGITS = [(0.1, 0), (20.97, 0), (150.0, 0), (1e4, 0), (1e4, 1), (1e7, 0), (1e7, 1), (1e7, 2)]
SIGMAS = [0.5, 70.0, 1000.0]


@pytest.fixture(params=[*DIGITS, *SIGMAS], ids=str)
def table(request):
    if isinstance(request.param, float):
        return DiscreteGaussian(request.param)._blocks._table
    scale, place = request.param
    return _digit_tables(scale)[place]


def test_uniform_numbers_are_decided_as_a_plain_search_decides_them(table):
    source = SeededBytes(4)
    numbers = [int.from_bytes(source(16), "little") for _ in range(10_000)]
    assert drawn(table, numbers) == looked_up(table, numbers)


def test_numbers_around_every_cut_are_decided_as_a_plain_search_decides_them(table):
    steps = (-(1 << 112), -(1 << 64), -1, 0, 1, 1 << 64, 1 << 112)
    numbers = [cut + step for cut in table._cuts for step in steps]
    numbers = [0, *(number for number in numbers if 0 <= number < WHOLE), WHOLE - 1]
    assert drawn(table, numbers) == looked_up(table, numbers)


def test_the_ends_of_every_prefix_are_decided_as_a_plain_search_decides_them(table):
    starts = [prefix << 112 for prefix in range(0, 1 << 16, 17)]
    numbers = starts + [start + (1 << 112) - 1 for start in starts]
    assert drawn(table, numbers) == looked_up(table, numbers)


def test_the_last_64_bits_decide_between_the_two_sides_of_a_cut(table):
    # Cuts in the thick of the table, where each one is alone in its upper 64 bits.
    inside = [
        place
        for place, (before, cut) in enumerate(zip([0, *table._cuts], table._cuts, strict=False))
        if cut - before > 1 << 65 and cut & (1 << 64) - 1 > 0
    ]
    assert inside
    for place in inside[:20]:
        cut = table._cuts[place]
        assert (cut - 1) >> 64 == cut >> 64
        assert drawn(table, [cut - 1]) == [table._symbols[place]]
        assert drawn(table, [cut]) == [table._symbols[place + 1]]


def test_a_decided_prefix_reads_no_more_than_its_two_bytes():
    table = _digit_tables(20.97)[0]
    decided = Script(table, [table._cuts[0] // 2] * 3)
    table.draw(3, decided)
    assert decided.read == 1
    undecided = Script(table, [table._cuts[0]] * 3)
    table.draw(3, undecided)
    assert undecided.read == 2
