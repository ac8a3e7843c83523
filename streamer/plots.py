"""Pictures of a plan and of a comparison, drawn with matplotlib (the `plot` extra)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamer.errors import OutputError

if TYPE_CHECKING:
    from streamer.experiments.comparison import Row
    from streamer.privacy.threshold import Plan

SUFFIXES = (".png", ".svg", ".pdf")


def check_plot(path: Path) -> None:
    """Refuse before any work is done what could not be drawn after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"plot is {path}: name a file that ends in {', '.join(SUFFIXES)}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"plot is {path}: it cannot be written; name another file")
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise OutputError(
            "plot needs matplotlib, which is not installed: pip install 'streamer[plot]'"
        ) from None


def draw_plan(planned: Plan, path: Path) -> None:
    """The probability of a report over the number of holders, with the marks that matter."""
    check_plot(path)
    figure, axes = _figure()
    last = round(1.25 * planned.guaranteed_weight)
    weights = np.unique(np.linspace(0, last, 400).astype(int))
    axes.plot(weights, [planned.detection(int(w)) for w in weights], color="#0b6e4f", linewidth=2.5)
    for weight, text in (
        (planned.threshold, f"threshold {planned.threshold:,}"),
        (planned.guaranteed_weight, f"guaranteed {planned.guaranteed_weight:,}"),
    ):
        axes.axvline(weight, color="#888888", linewidth=1, linestyle="--")
        axes.annotate(
            text,
            (weight, 0.5),
            rotation=90,
            xytext=(-5, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color="#444444",
        )
    guarantee = planned.guarantee
    axes.set_xlabel("users who hold an item in a step")
    axes.set_ylabel("probability that it is reported")
    axes.set_ylim(-0.02, 1.04)
    axes.set_xlim(0, last)
    axes.set_title(
        f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}, k = {guarantee.contributions}, "
        f"{planned.workload.period_steps:,} steps a period: noise of scale "
        f"{planned.calibration.noise_scale:,.1f}"
    )
    _save(figure, path)


def draw_comparison(rows: list[Row], path: Path) -> None:
    """The share of each family that each method found."""
    check_plot(path)
    figure, axes = _figure()
    methods = list(dict.fromkeys(row.method for row in rows))
    families = list(dict.fromkeys(row.family for row in rows))
    colours = ("#0b6e4f", "#08a045", "#6bbf59")
    width = 0.8 / len(families)
    for place, family in enumerate(families):
        mine = {row.method: row for row in rows if row.family == family}
        shares = [100 * mine[method].found / mine[method].sets for method in methods]
        left = np.arange(len(methods)) + (place - (len(families) - 1) / 2) * width
        size, sets = mine[methods[0]].size, mine[methods[0]].sets
        label = f"{family}: {sets:,} sets of {size:,} users"
        bars = axes.bar(left, shares, 0.92 * width, label=label, color=colours[place % 3])
        axes.bar_label(bars, [f"{share:.3g}%" for share in shares], fontsize=8, padding=2)
    axes.set_xticks(np.arange(len(methods)), methods)
    axes.set_ylabel("heavy hitters found")
    axes.set_ylim(0, 118)
    axes.set_yticks(range(0, 101, 20), [f"{share}%" for share in range(0, 101, 20)])
    axes.legend(loc="upper center", ncols=len(families), frameon=False, fontsize=9)
    _save(figure, path)


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_axisbelow(True)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise OutputError(f"plot is {path}: {error.strerror or error}") from None
