"""`streamer compare --day`: what is public on a day of a real service, rule by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from streamer.experiments.real_day import DayRow
    from streamer.fleet.fleet import Fleet
    from streamer.privacy.guarantee import Guarantee
    from streamer.privacy.randomness import RandomBytes


def compare_day(
    guarantee: Guarantee, seed: int, random_bytes: RandomBytes, json: bool, plot: Path | None
) -> None:
    """`seed`: of the day, that is, of who has what."""
    from rich.progress import Progress

    from streamer.commands.output import notes, print_json
    from streamer.experiments.real_day import COMPARED_REFRESHES, compare_rules
    from streamer.fleet.day import day_fleet

    fleet = day_fleet(seed)
    total = (len(COMPARED_REFRESHES) + 1) * fleet.steps
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("running", total=total)
        rows = compare_rules(fleet, guarantee, random_bytes, lambda: progress.advance(bar))
    if plot is not None:
        from streamer.plots import draw_day

        draw_day(fleet, rows, guarantee, plot)
    if json:
        print_json([_plain(row) for row in rows])
    else:
        _print_table(fleet, guarantee, rows)


def _plain(row: DayRow) -> dict[str, Any]:
    result = row.result
    return {
        "rule": row.name,
        "threshold": row.threshold,
        "pairs": result.pairs,
        "public_pairs": result.public_pairs,
        "public_share": result.public_share,
        "outbreaks": result.outbreaks,
        "found": result.found,
        "exhausted_share": result.exhausted_share,
    }


def _print_table(fleet: Fleet, guarantee: Guarantee, rows: list[DayRow]) -> None:
    from rich import box
    from rich.table import Table

    from streamer.commands.output import console

    console.print(
        f"{fleet.users:,} users in {fleet.steps:,} steps: {len(fleet.lasting)} items last all day, "
        f"and {len(fleet.outbreaks)} outbreaks of {fleet.outbreaks[0].size:,} users take "
        f"{fleet.outbreaks[0].length} steps each. All rules are (ε={guarantee.epsilon:g}, "
        f"δ={guarantee.delta:g})-private with k={guarantee.contributions}.\n"
    )
    table = Table(
        *("rule", "threshold", "public", "outbreaks\nfound", "without budget\nat noon"),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        result = row.result
        table.add_row(
            row.name,
            f"{row.threshold:,}",
            f"{result.public_share:.1%}",
            f"{result.found}/{result.outbreaks}",
            f"{result.exhausted_share:.1%}",
        )
    console.print(table)
    console.print(
        "\npublic: of all pairs of a step and an item with enough users to be surely found, the "
        "share in which the item was public. found: reported in the first two steps."
    )
