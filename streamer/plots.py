"""Plots of plans and of experiments, drawn with matplotlib (the `plot` extra)."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from streamer.errors import OutputError

if TYPE_CHECKING:
    from streamer.experiments.comparison import Row
    from streamer.experiments.paper_example import PaperExample
    from streamer.experiments.real_day import DayRow
    from streamer.experiments.smallest_outbreak import Smallest
    from streamer.fleet.fleet import Fleet
    from streamer.privacy.guarantee import Guarantee
    from streamer.privacy.threshold import Plan

SUFFIXES = (".png", ".svg", ".pdf")
# The live page's colours: dark enough for a projector, and safe for colour-blind readers.
_INK, _SOFT = "#17202a", "#5b6773"
_SHADES = ("#1d4f91", "#4a7fc1", "#9dbfe8")
_GREYS = ("#6b7580", "#98a1ab", "#c6ccd3")
_FAINT = "#e9ecef"


def check_plot(path: Path) -> None:
    """Fail before any work is done if the plot could not be saved afterwards."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"plot is {path}: use a file name that ends in {', '.join(SUFFIXES)}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"plot is {path}: it cannot be written; use another file")
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise OutputError(
            "plot needs matplotlib, which is not installed: pip install 'streamer[plot]'"
        ) from None


def draw_plan(planned: Plan, path: Path) -> None:
    """The probability of a report by number of holders, with threshold and guaranteed weight."""
    check_plot(path)
    guarantee = planned.guarantee
    figure, axes = _figure(
        "How many users must hold an item for it to be reported",
        f"ε = {guarantee.epsilon:g}, δ = {_small(guarantee.delta)}; a user counts for at most "
        f"{guarantee.contributions:,} reports in {planned.workload.period_steps:,} steps; noise of "
        f"scale {planned.calibration.noise_scale:,.1f} users",
    )
    last = round(1.45 * planned.guaranteed_weight)
    weights = np.unique(np.linspace(0, last, 600).astype(int))
    chances = np.array([planned.detection(int(weight)) for weight in weights])
    axes.fill_between(weights, chances, color=_SHADES[2], alpha=0.35, linewidth=0)
    axes.plot(weights, chances, color=_SHADES[0], linewidth=3, solid_capstyle="round")
    for weight, side, offset, text in (
        (planned.threshold, "right", -10, f"threshold\n{planned.threshold:,} users"),
        (
            *(planned.guaranteed_weight, "left", 10),
            f"{planned.guaranteed_weight:,} users:\nno item missed in a period\n"
            f"with probability {1 - planned.workload.beta:g}",
        ),
    ):
        axes.plot([weight, weight], [0, 1], color=_INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            *(text, (weight, 0.58), (offset, 0)),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=13,
            color=_INK,
        )
    axes.plot(planned.threshold, planned.detection(planned.threshold), "o", color=_SHADES[0], ms=9)
    axes.set_xlabel("users who hold an item in a step")
    axes.set_ylabel("probability that it is reported")
    axes.set_ylim(0, 1.04)
    axes.set_yticks(np.linspace(0, 1, 5), [f"{share}%" for share in range(0, 101, 25)])
    axes.set_xlim(0, last)
    axes.xaxis.set_major_formatter(lambda users, _: f"{users:,.0f}")
    _save(figure, path)


def draw_comparison(
    rows: list[Row], example: PaperExample, guarantee: Guarantee, path: Path
) -> None:
    """The share of each family that each method found. Our monitor is in colour."""
    check_plot(path)
    figure, axes = _figure(
        "Heavy hitters found under the same guarantee",
        f"{example.users:,} users, each in {len(example.families)} heavy hitters; ε = "
        f"{guarantee.epsilon:g}, δ = {_small(guarantee.delta)} for every method",
    )
    methods = list(dict.fromkeys(row.method for row in rows))
    families = list(dict.fromkeys(row.family for row in rows))
    width = 0.84 / len(families)
    for place, family in enumerate(families):
        mine = {row.method: row for row in rows if row.family == family}
        shares = [100 * mine[method].found / mine[method].sets for method in methods]
        left = np.arange(len(methods)) + (place - (len(families) - 1) / 2) * width
        size, sets = mine[methods[0]].size, mine[methods[0]].sets
        shade = min(place, len(_SHADES) - 1)
        colours = [(_GREYS if number else _SHADES)[shade] for number in range(len(methods))]
        bars = axes.bar(left, shares, 0.92 * width, color=colours)
        texts = [f"{share:.3g}%" for share in shares]
        axes.bar_label(bars, texts, fontsize=9, padding=3, color=_INK)
        axes.plot([], [], "s", ms=11, color=_GREYS[shade], label=f"{sets:,} sets of {size:,} users")
    axes.set_xticks(np.arange(len(methods)), [fill(method, width=15) for method in methods])
    axes.get_xticklabels()[0].set_fontweight("bold")
    for place, method in enumerate(methods):
        reach = min(row.reach for row in rows if row.method == method)
        axes.annotate(
            *(f"guaranteed from\n{reach:,} users", (place, 0), (0, -62)),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=11.5,
            color=_SOFT,
            annotation_clip=False,
        )
    axes.tick_params(axis="x", length=0, pad=8)
    axes.set_ylim(0, 122)
    axes.set_yticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, 1.02),
        ncols=len(families),
        frameon=False,
        fontsize=12,
        labelcolor=_INK,
        handletextpad=0.2,
        borderaxespad=0,
    )
    _save(figure, path)


def draw_outbreaks(measured: list[Smallest], guarantee: Guarantee, path: Path) -> None:
    """The smallest outbreak that is found, by length of the period. Today's is in colour."""
    check_plot(path)
    figure, axes = _figure(
        "The smallest outbreak that is found",
        f"users who hold one item in one step, found in 95% of trials; ε = {guarantee.epsilon:g}, "
        f"δ = {_small(guarantee.delta)}, k = {guarantee.contributions:,}",
    )
    periods = sorted({each.period_steps for each in measured})
    methods = list(dict.fromkeys(each.method for each in measured))
    colours = (*_GREYS[1 : len(methods)], _SHADES[0])
    for place, (method, colour) in enumerate(zip(methods, colours, strict=True)):
        users = {each.period_steps: each.users for each in measured if each.method == method}
        left = np.arange(len(periods)) + (place - (len(methods) - 1) / 2) * 0.4
        heights = [users[steps] for steps in periods]
        bars = axes.bar(left, heights, 0.37, color=colour, label=f"{method} calibration")
        axes.bar_label(
            bars, [f"{height:,}" for height in heights], fontsize=13, padding=3, color=_INK
        )
    axes.set_xticks(np.arange(len(periods)), [f"{steps:,} steps a period" for steps in periods])
    axes.tick_params(axis="x", length=0, pad=8)
    axes.set_ylabel("users")
    axes.yaxis.set_major_formatter(lambda users, _: f"{users:,.0f}")
    axes.legend(loc="upper left", frameon=False, fontsize=13, labelcolor=_INK)
    _save(figure, path)


def draw_day(fleet: Fleet, rows: list[DayRow], guarantee: Guarantee, path: Path) -> None:
    """What was there on a day, in grey, and over it what each rule made public."""
    check_plot(path)
    figure, axes = _figure(
        "What is public during a day",
        f"grey: {len(fleet.lasting)} items that last, and outbreaks, of {fleet.users:,} users; "
        f"ε = {guarantee.epsilon:g}, δ = {_small(guarantee.delta)}, "
        f"k = {guarantee.contributions:,}",
    )
    catalogue = fleet.catalogue()
    outbreaks = [catalogue.number(each.item) for each in fleet.outbreaks]
    lanes = [[catalogue.number(each.item)] for each in fleet.lasting] + [outbreaks]
    there = [[(0, fleet.steps)]] * len(fleet.lasting)
    there.append([(each.start, each.length) for each in fleet.outbreaks])
    hour = 3_600 / fleet.step_seconds
    for place, row in enumerate(rows):
        colour = _SHADES[0] if place == len(rows) - 1 else _GREYS[0]
        bottom = (len(rows) - 1 - place) * (len(lanes) + 1.6)
        for lane, (items, truth) in enumerate(zip(lanes, there, strict=True)):
            height = bottom + len(lanes) - 1 - lane
            axes.broken_barh(_hours(truth, hour), (height, 0.8), color=_FAINT)
            shown = [(step, 1) for step, item in row.result.public if item in items]
            axes.broken_barh(_hours(shown, hour), (height, 0.8), color=colour)
        axes.text(
            *(0, bottom + len(lanes) + 0.15, _day_words(row)),
            fontsize=13,
            color=_INK,
            fontweight="bold" if place == len(rows) - 1 else "normal",
        )
    axes.set_yticks([])
    axes.set_xlim(0, fleet.steps / hour)
    axes.set_xticks(range(0, 25, 3), [f"{at:02}:00" for at in range(0, 25, 3)])
    axes.grid(visible=False)
    _save(figure, path)


def _hours(spans: list[tuple[int, int]], hour: float) -> list[tuple[float, float]]:
    """Spans of steps as spans of hours."""
    return [(begin / hour, length / hour) for begin, length in spans]


def _day_words(row: DayRow) -> str:
    result = row.result
    return (
        f"{row.name}: {result.public_share:.1%} of the time public, {result.found} of "
        f"{result.outbreaks} outbreaks found, {result.exhausted_share:.0%} without budget at noon"
    )


def _figure(title: str, subtitle: str) -> tuple[Any, Any]:
    """Sized for a slide: wide, with text that can be read from the last row."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    layout = ConstrainedLayoutEngine(w_pad=0.22, h_pad=0.22)
    figure = Figure(figsize=(11, 6.2), layout=layout, facecolor="white")
    axes = figure.subplots()
    for text, above, size, colour, weight in (
        (title, 46, 20, _INK, "bold"),
        (subtitle, 24, 13, _SOFT, "normal"),
    ):
        axes.annotate(
            *(text, (0, 1), (0, above), "axes fraction", "offset points"),
            fontsize=size,
            color=colour,
            fontweight=weight,
        )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_SOFT)
    axes.tick_params(colors=_SOFT, labelcolor=_INK, labelsize=13, left=False)
    axes.grid(axis="y", color="#e6e9ed")
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(fontsize=13, color=_INK)
    return figure, axes


def _small(number: float) -> str:
    """1e-06 as 1e-6."""
    return f"{number:g}".replace("e-0", "e-")


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise OutputError(f"plot is {path}: {error.strerror or error}") from None
