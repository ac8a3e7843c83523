"""What a table of cuts says about its law."""

from itertools import pairwise

WHOLE = 1 << 128


def widths(table) -> dict[int, int]:
    """How many of the 2^128 uniform numbers each symbol has."""
    ends = [0, *table._cuts, WHOLE]
    symbols = (int(symbol) for symbol in table._symbols)
    return dict(zip(symbols, (end - start for start, end in pairwise(ends)), strict=True))
