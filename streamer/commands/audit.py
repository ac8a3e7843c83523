"""`streamer audit`: attack our own monitor, and say whether an attack broke the promise."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.commands import options
from streamer.commands.planning import PlanOptions, with_plan_options

if TYPE_CHECKING:
    from streamer.experiments.audit import Audit, NoiseFinding
    from streamer.privacy.guarantee import Guarantee

FEWEST_TRIALS, MOST_TRIALS = 1_000, 10_000_000


@with_plan_options
def audit_command(
    *,
    trials: Annotated[
        int, typer.Option(help="Trials per attack and world; long attacks have fewer.")
    ] = 400_000,
    asked: PlanOptions,
    json: options.Json = False,
) -> None:
    """Attack the monitor, with its real noise, and test the promise.

    Every attack is tested against the whole promised curve δ(ε′). Exits with code 1 if one of
    them breaks the promise, or if the noise is narrower than planned. What is proven is a lower
    bound: a small number may only mean a weak attack or too few trials.
    """
    from rich.progress import Progress

    from streamer.commands.output import notes, print_json
    from streamer.experiments.attacks import attacks_on
    from streamer.experiments.audit import audit
    from streamer.privacy.guarantee import check_whole

    check_whole("trials", trials, FEWEST_TRIALS, MOST_TRIALS)
    planned = asked.plan()
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("attacking", total=len(attacks_on(planned, trials)))
        found = audit(planned, trials, progress=lambda: progress.advance(bar))
    if json:
        attacks = [asdict(finding) for finding in found.findings]
        noise = asdict(found.noise) | {"narrower": found.noise.narrower}
        promise = {"epsilon": planned.guarantee.epsilon, "delta": planned.guarantee.delta}
        print_json(promise | {"attacks": attacks, "noise": noise})
    else:
        _print_table(planned.guarantee, found)
    if not found.passed:
        raise typer.Exit(1)


def _print_table(guarantee: Guarantee, found: Audit) -> None:
    from rich.table import Table

    from streamer.commands.output import console
    from streamer.experiments.audit import DOUBT

    table = Table("attack", "trials", "ε lost", "at ε′", "δ proven", "δ promised")
    for column in table.columns[1:]:
        column.justify = "right"
    for finding in found.findings:
        style = "red" if finding.broken else "green"
        table.add_row(
            *(finding.name, f"{finding.trials:,}", f"[{style}]{finding.epsilon_lost:.3f}[/]"),
            f"{finding.tested_epsilon:.2f}",
            f"[{style}]{finding.delta_proven:.3g}[/]",
            f"{finding.delta_promised:.3g}",
        )
    console.print(table)
    console.print(f"{_verdict(found)} {_noise(found.noise)}")
    console.print(
        f"ε lost: a lower bound at δ={guarantee.delta:g}, to compare with ε={guarantee.epsilon:g}. "
        "δ proven: a lower bound at ε′, where the attack comes closest to the promised curve "
        f"δ(ε′). All of this holds with probability {1 - DOUBT:.6f}."
    )


def _verdict(found: Audit) -> str:
    if not found.broken_by:
        return "No attack broke the promise."
    return f"[bold red]The promise was broken by: {', '.join(found.broken_by)}.[/]"


def _noise(noise: NoiseFinding) -> str:
    if not noise.narrower:
        return f"The noise is not narrower than planned (scale {noise.scale:,.4g})."
    return (
        f"[bold red]The noise is narrower than planned:[/] at least {noise.share_proven:.3f} of it "
        f"is within ± {noise.within:,}, not {noise.share_promised:.3f}."
    )
