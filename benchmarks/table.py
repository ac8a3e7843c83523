"""Rows of the benchmarks' table: what was measured, the bar, and whether it is kept."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Side(StrEnum):
    """On which side of its bar a figure is to be."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Bar:
    side: Side
    value: float

    def kept_by(self, value: float) -> bool:
        if self.side is Side.AT_LEAST:
            return value >= self.value
        return value < self.value if self.side is Side.BELOW else value <= self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `detail`: what it was made of, in words; a row without a bar only tells."""

    what: str
    value: float
    unit: str
    bar: Bar | None = None
    detail: str = ""

    @property
    def measured(self) -> str:
        return written(self.value, self.unit)

    @property
    def wanted(self) -> str:
        return "" if self.bar is None else f"{self.bar.side} {written(self.bar.value, self.unit)}"

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "kept" if self.bar.kept_by(self.value) else "MISSED"


def at_least(value: float) -> Bar:
    return Bar(Side.AT_LEAST, value)


def at_most(value: float) -> Bar:
    return Bar(Side.AT_MOST, value)


def below(value: float) -> Bar:
    return Bar(Side.BELOW, value)


def written(value: float, unit: str) -> str:
    """Three digits that mean something; whole numbers as they are."""
    digits = 0 if value == int(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def show(rows: Sequence[Row]) -> None:
    """The table, for a terminal."""
    widest = max(len(row.what) for row in rows)
    for row in rows:
        figures = f"{row.measured:>20}  {row.wanted:24} {row.verdict:6}"
        print(f"{row.what:{widest}} {figures} {row.detail}".rstrip())


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| what | measured | bar | | |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | **{row.measured}** | {row.wanted} | {row.verdict} | {row.detail} |"
        for row in rows
    ]
    return "\n".join(lines)


def command_line(measure: Callable[..., list[Row]]) -> None:
    """Run one benchmark by itself: its numbers are options, so that a quick try is possible."""
    parser = argparse.ArgumentParser(description=inspect.getdoc(inspect.getmodule(measure)))
    for name, parameter in inspect.signature(measure).parameters.items():
        option = f"--{name.replace('_', '-')}"
        kind = type(parameter.default)
        parser.add_argument(option, type=kind, default=parameter.default, help="%(default)s")
    show(measure(**vars(parser.parse_args())))
