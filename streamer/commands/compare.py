"""`streamer compare`: the monitor and its baselines, measured on the paper's example."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.commands import options
from streamer.commands.compare_day import compare_day

if TYPE_CHECKING:
    from streamer.experiments.comparison import Row
    from streamer.experiments.paper_example import PaperExample

MOST_TRIALS = 1000
MOST_SEED = (1 << 64) - 1


def compare_command(
    users: Annotated[int, typer.Option(help="Number of users in the example.")] = 1_000_000,
    trials: Annotated[int, typer.Option(help="Number of runs; averages are printed.")] = 1,
    seed: options.Seed = None,
    epsilon: options.Epsilon = options.PRIVACY.epsilon,
    delta: options.Delta = options.PRIVACY.delta,
    neighbours: options.NeighboursChoice = options.PRIVACY.neighbours,
    beta: options.Beta = options.PRIVACY.beta,
    items_per_step: options.ItemsPerStep = 1,
    day: Annotated[
        bool,
        typer.Option(
            "--day",
            help="In place of the paper's example: a day of a real service, under the rules of "
            "0.1.0 and under the defaults.",
        ),
    ] = False,
    json: options.Json = False,
    plot: options.Plot = None,
) -> None:
    """Compare what each method finds in the paper's example under the same guarantee."""
    from rich.progress import Progress

    from streamer.commands.output import notes, print_json, warn_seeded
    from streamer.experiments.comparison import CONTRIBUTIONS, compare, enter
    from streamer.experiments.paper_example import paper_example
    from streamer.privacy.guarantee import Guarantee, check_whole
    from streamer.privacy.randomness import SeededBytes, secure_bytes

    check_whole("trials", trials, 1, MOST_TRIALS)
    if seed is not None:
        check_whole("seed", seed, 0, MOST_SEED)
    if plot is not None:
        from streamer.plots import check_plot

        check_plot(plot)
    warn_seeded(seed)
    random_bytes = secure_bytes if seed is None else SeededBytes(seed)
    if day:
        contributions = options.PRIVACY.contributions
        compare_day(
            *(Guarantee(epsilon, delta, contributions, neighbours), seed or 0, random_bytes),
            *(json, plot),
        )
        return
    guarantee = Guarantee(epsilon, delta, CONTRIBUTIONS, neighbours)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("planning", total=None)
        example = paper_example(users, guarantee, beta, items_per_step)
        total = len(enter(example, guarantee)) * example.steps * trials
        progress.update(bar, description="running", total=total)
        rows = compare(example, guarantee, trials, random_bytes, lambda: progress.advance(bar))
    if plot is not None:
        from streamer.plots import draw_comparison

        draw_comparison(rows, example, guarantee, plot)
    if json:
        print_json([_plain(row) for row in rows])
    else:
        _print_table(example, guarantee.epsilon, guarantee.delta, rows)


def _plain(row: Row) -> dict[str, Any]:
    """Print averages that are whole numbers without a fraction."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in asdict(row).items()
    }


def _in_millions(users: float) -> str:
    """Short enough for a terminal of 80 columns."""
    return f"{users / 1e6:,.2f}M" if users < 1e9 else f"{users / 1e6:,.0f}M"


def _short(users: float) -> str:
    """Whole users, or millions where these would take more than nine characters."""
    return f"{users:,.0f}" if users < 1e7 else f"{users / 1e6:,.1f}M"


def _print_table(example: PaperExample, epsilon: float, delta: float, rows: list[Row]) -> None:
    from rich import box
    from rich.table import Table

    from streamer.commands.output import console

    sizes = ", ".join(
        f"{family.name}: {family.sets:,} sets of {family.size:,}" for family in example.families
    )
    console.print(
        f"{example.users:,} users in {example.steps:,} steps. Three families of disjoint sets "
        f"({sizes}); the users of a set share an item in one step of their own, and in all "
        f"other steps nobody shares an item. Every user is part of 3 heavy hitters. "
        f"All methods are (ε={epsilon:g}, δ={delta:g})-private.\n"
    )
    table = Table(
        *("method", "set", "found", "false", "threshold", "reach", "users\nneeded"),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.columns[0].no_wrap = True
    for column in table.columns[2:]:
        column.justify, column.overflow = "right", "fold"  # never truncate a figure
    previous = ""
    for row in rows:
        if previous and row.method != previous:
            table.add_section()
        share = row.found / row.sets
        style = "green" if share == 1 else "red" if share == 0 else "yellow"
        table.add_row(
            row.method if row.method != previous else "",
            row.family,
            f"[{style}]{round(row.found, 1):,.10g}/{row.sets:,}[/]",
            f"{round(row.false_reports, 1):,.10g}",
            _short(row.threshold),
            _short(row.reach),
            _in_millions(row.users_needed),
        )
        previous = row.method
    console.print(table)
    console.print(
        "\nreach: the smallest set that the method is sure to find. users needed: how many users "
        "it takes to have as many sets of that size. The classic technique is tuned for each "
        "family. horizon: as the service runs it; every step: the same noise law, for answers "
        "about values alone."
    )
