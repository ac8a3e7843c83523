"""`streamer audit`: attack our own monitor and print the privacy loss that can be proven."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.commands import options
from streamer.privacy.terms import Domain

if TYPE_CHECKING:
    from streamer.experiments.audit import Finding
    from streamer.privacy.guarantee import Guarantee

FEWEST_TRIALS, MOST_TRIALS = 1_000, 10_000_000


def audit_command(
    trials: Annotated[int, typer.Option(help="Trials per attack and world.")] = 200_000,
    epsilon: options.Epsilon = options.PRIVACY.epsilon,
    delta: options.Delta = options.PRIVACY.delta,
    contributions: options.Contributions = options.PRIVACY.contributions,
    neighbours: options.NeighboursChoice = options.PRIVACY.neighbours,
    period: options.Period = options.PRIVACY.period_steps,
    calibration: options.Calibration = options.PRIVACY.calibration,
    beta: options.Beta = options.PRIVACY.beta,
    items: options.ItemsCount = options.PRIVACY.items,
    domain: options.DomainChoice = Domain.OPEN,
    threshold: options.Threshold = options.PRIVACY.threshold,
    json: options.Json = False,
) -> None:
    """Attack the monitor, with its real noise, and report the privacy loss.

    Exits with code 1 if an attack proves a loss above the promised ε. The proven
    loss is a lower bound: a small number may only mean a weak attack or too few
    trials.
    """
    from rich.progress import Progress

    from streamer.commands.output import notes, print_json
    from streamer.experiments.attacks import attacks_on
    from streamer.experiments.audit import audit
    from streamer.privacy.guarantee import Guarantee, check_whole
    from streamer.privacy.threshold import Workload, plan

    check_whole("trials", trials, FEWEST_TRIALS, MOST_TRIALS)
    guarantee = Guarantee(epsilon, delta, contributions, neighbours)
    planned = plan(guarantee, Workload(period, items, beta, domain), calibration, threshold)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("attacking", total=len(attacks_on(planned, trials)))
        findings = audit(planned, trials, progress=lambda: progress.advance(bar))
    if json:
        attacks = [asdict(finding) for finding in findings]
        print_json({"epsilon": epsilon, "delta": delta, "attacks": attacks})
    else:
        _print_table(guarantee, findings)
    if any(finding.epsilon_lost > epsilon for finding in findings):
        raise typer.Exit(1)


def _print_table(guarantee: Guarantee, findings: list[Finding]) -> None:
    from rich.table import Table

    from streamer.commands.output import console
    from streamer.experiments.audit import DOUBT

    table = Table("attack", "trials", "ε proven lost", "ε promised")
    for column in table.columns[1:]:
        column.justify = "right"
    for finding in findings:
        style = "red" if finding.epsilon_lost > guarantee.epsilon else "green"
        lost = f"[{style}]{finding.epsilon_lost:.3f}[/]"
        table.add_row(finding.name, f"{finding.trials:,}", lost, f"{guarantee.epsilon:g}")
    console.print(table)
    broken = any(finding.epsilon_lost > guarantee.epsilon for finding in findings)
    verdict = "[bold red]The guarantee is broken.[/]" if broken else "No violation found."
    console.print(
        f"{verdict} The losses are lower bounds at δ={guarantee.delta:g}; all of them hold with "
        f"probability {1 - DOUBT:.6f}."
    )
