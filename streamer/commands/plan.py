"""`streamer plan`: what a choice of ε, δ, k and period means, before anything is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamer.commands import options
from streamer.privacy.terms import Domain
from streamer.settings import LONGEST_SECONDS

if TYPE_CHECKING:
    from streamer.privacy.threshold import Plan

PERIODS = (1, 2, 7, 30, 365)
PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


def plan_command(
    epsilon: options.Epsilon = options.PRIVACY.epsilon,
    delta: options.Delta = options.PRIVACY.delta,
    contributions: options.Contributions = options.PRIVACY.contributions,
    neighbours: options.NeighboursChoice = options.PRIVACY.neighbours,
    period: options.Period = options.PRIVACY.period_steps,
    calibration: options.Calibration = options.PRIVACY.calibration,
    step: options.Step = options.STREAM.step_seconds,
    beta: options.Beta = options.PRIVACY.beta,
    items: options.ItemsCount = options.PRIVACY.items,
    users: options.Users = options.PRIVACY.users,
    domain: options.DomainChoice = Domain.OPEN,
    threshold: options.Threshold = options.PRIVACY.threshold,
    json: options.Json = False,
    plot: options.Plot = None,
) -> None:
    """Show the noise, the threshold and the detection probabilities of a guarantee."""
    from streamer.commands.output import print_json
    from streamer.privacy.guarantee import Guarantee, check_positive
    from streamer.privacy.threshold import Workload, plan

    check_positive("step", step, at_most=LONGEST_SECONDS)
    guarantee = Guarantee(epsilon, delta, contributions, neighbours)
    workload = Workload(period, items, beta, domain, users, step)
    planned = plan(guarantee, workload, calibration, threshold)
    report = plan_report(planned)
    if plot is not None:
        from streamer.plots import draw_plan

        draw_plan(planned, plot)
    if json:
        print_json(report)
    else:
        _print_tables(planned, report, step)


def plan_report(planned: Plan) -> dict[str, Any]:
    """What `plan --json` prints."""
    guarantee, noise = planned.guarantee, planned.calibration
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "contributions": guarantee.contributions,
        "neighbours": guarantee.neighbours,
        "calibration": noise.method,
        "domain": planned.workload.domain,
        "period_steps": planned.workload.period_steps,
        "items": planned.workload.items,
        "beta": planned.workload.beta,
        "users": planned.workload.users,
        "step_seconds": planned.workload.step_seconds,
        "noise_scale": noise.noise_scale,
        "delta1": noise.delta1,
        "delta2": noise.delta2,
        "delta_charge": noise.charge_delta,
        "delta_keys": noise.keys_delta,
        "unique_items_per_year": planned.unique_items_per_year,
        "threshold": planned.threshold,
        "margin": planned.law.margin(),
        "guaranteed_weight": planned.guaranteed_weight,
        "detection": [
            {"weight": weight, "probability": planned.detection(weight)}
            for weight in _shown_weights(planned)
        ],
        "periods": [{"count": count, "epsilon": planned.epsilon_after(count)} for count in PERIODS],
    }


def _shown_weights(planned: Plan) -> list[int]:
    """One user, the first weights that reach round probabilities, and the guaranteed weight."""
    from streamer.privacy.search import first_integer

    def first_to_reach(probability: float) -> int:
        return first_integer(lambda weight: planned.detection(weight) >= probability, least=1)

    weights = {first_to_reach(probability) for probability in PROBABILITIES}
    return sorted(weights | {1, planned.guaranteed_weight})


def _print_tables(planned: Plan, report: dict[str, Any], step_seconds: float) -> None:
    from rich.table import Table

    from streamer.commands.output import console
    from streamer.stream.timing import duration

    guarantee, unique = planned.guarantee, planned.unique_items_per_year
    length = duration(round(1000 * step_seconds * planned.workload.period_steps))
    console.print(
        f"Per user and period ({planned.workload.period_steps:,} steps of "
        f"{duration(round(1000 * step_seconds))}: {length}): whatever one user does, every output "
        f"is at most e^{guarantee.epsilon:g} times as likely as without it, give or take an "
        f"additive {guarantee.delta:g}. A stretch of time that reaches into two periods costs "
        f"the total of two: ε = {planned.epsilon_after(2):.3f}.\n"
    )
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column(style="bold")
    facts.add_column(justify="right")
    facts.add_column(style="dim")
    noise = planned.calibration
    for name, value, meaning in (
        ("noise scale", f"{noise.noise_scale:,.4f}", f"of w, {noise.method} calibration"),
        (
            "Δ₁, Δ₂",
            f"{noise.delta1:,.4f}, {noise.delta2:,.4f}",
            "cap and scale of the small noise v",
        ),
        ("δ for charges", f"{noise.charge_delta:.3g}", "covers what answers reveal about a user"),
        (
            "δ for the key set",
            f"{noise.keys_delta:.3g}",
            f"covers which items appear, {planned.workload.domain} domain",
        ),
        (
            "unique items",
            "no limit" if unique is None else f"{unique:.3g}",
            "items of single users expected to be published in a year, among "
            f"{planned.workload.users:,} users who always hold one",
        ),
        ("threshold", f"{planned.threshold:,}", "least noisy count that is reported"),
        ("margin", f"± {report['margin']:,}", "of an estimate, at 95% confidence"),
        (
            "guaranteed weight",
            f"{planned.guaranteed_weight:,}",
            f"users: no miss in a period with probability {1 - planned.workload.beta:g}",
        ),
    ):
        facts.add_row(name, value, meaning)
    console.print(facts)
    detection = Table("users who hold an item", "probability of a report in that step")
    for row in report["detection"]:
        detection.add_row(f"{row['weight']:,}", f"{row['probability']:.6g}")
    totals = Table("periods", "total ε", "at total δ")
    for row in report["periods"]:
        totals.add_row(
            str(row["count"]), f"{row['epsilon']:.3f}", f"{guarantee.delta * row['count']:.3g}"
        )
    for table in (detection, totals):
        for column in table.columns:
            column.justify = "right"
        console.print(table)
