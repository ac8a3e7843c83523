"""`streamer plan`: what a choice of ε, δ, k and period means, before anything is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamer.commands import options
from streamer.commands.planning import PlanOptions, with_plan_options
from streamer.privacy.terms import Domain

if TYPE_CHECKING:
    from streamer.privacy.threshold import Plan

PERIODS = (1, 2, 7, 30, 365)
PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


@with_plan_options
def plan_command(
    *, asked: PlanOptions, json: options.Json = False, plot: options.Plot = None
) -> None:
    """Show the noise, the threshold and the detection probabilities of a guarantee."""
    from streamer.commands.output import print_json

    planned = asked.plan()
    report = plan_report(planned)
    if plot is not None:
        from streamer.plots import draw_plan

        draw_plan(planned, plot)
    if json:
        print_json(report)
    else:
        _print_tables(planned, report)


def plan_report(planned: Plan) -> dict[str, Any]:
    """What `plan --json` prints."""
    guarantee, noise, workload = planned.guarantee, planned.calibration, planned.workload
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "contributions": guarantee.contributions,
        "neighbours": guarantee.neighbours,
        "calibration": noise.method,
        "noise": noise.noise,
        "attention": noise.attention,
        "domain": workload.domain,
        "period_steps": workload.period_steps,
        "items": workload.items,
        "items_per_step": workload.items_per_step,
        "declared": workload.declared,
        "beta": workload.beta,
        "users": workload.users,
        "step_seconds": workload.step_seconds,
        "noise_scale": noise.noise_scale,
        "delta1": noise.delta1,
        "delta2": noise.delta2,
        "delta_charge": noise.charge_delta,
        "delta_keys": noise.keys_delta,
        "loud_price": noise.loud_price,
        "unique_items_per_year": planned.unique_items_per_year,
        "threshold": planned.threshold,
        "exit_threshold": planned.exit_threshold,
        "declared_threshold": planned.declared_threshold,
        "value_every_steps": planned.value_every_steps if _has_states(planned) else None,
        "margin": planned.law.margin(),
        "guaranteed_weight": planned.guaranteed_weight,
        "detection": [
            {"weight": weight, "probability": planned.detection(weight)}
            for weight in _shown_weights(planned)
        ],
        "periods": [{"count": count, "epsilon": planned.epsilon_after(count)} for count in PERIODS],
        "calibrations": [
            {
                "calibration": each.calibration.method,
                "noise": each.calibration.noise,
                "noise_scale": each.calibration.noise_scale,
                "threshold": each.threshold,
                "guaranteed_weight": each.guaranteed_weight,
            }
            for each in _side_by_side(planned)
        ],
        "items_costs": _items_costs(planned),
    }


def _has_states(planned: Plan) -> bool:
    """Whether public items are asked whether they are still there."""
    return planned.exit_threshold is not None


def _budget_words(planned: Plan) -> str:
    """What a user's budget buys in a period."""
    from streamer.monitors.attention import value_is_due

    budget, price = planned.guarantee.contributions, planned.loud_price
    reports = "report" if budget == 1 else "reports"
    buys = f"A user's budget of {budget:,} buys {budget:,} {reports}"
    if not _has_states(planned):
        return f"{buys} of an item that it holds. Without budget it does not count."
    every = planned.value_every_steps
    values = 1 + sum(value_is_due(age, every) for age in range(1, planned.workload.period_steps))
    ended = f", {budget // 2:,} outbreaks that begin and end" if budget > 1 else ""
    # A user counts as long as a full charge is left.
    loud = round((budget - 1) / price) + 1
    fades = "" if values <= loud else " That is more than the budget: it fades from view."
    return (
        f"{buys}{ended}, or {loud:,} loud {'value' if loud == 1 else 'values'}. That an item is "
        f"still there costs nothing. One that lasts a whole period has {values:,} values, at most "
        f"{every:,} steps apart, which costs {values * price:,.1f} if they are loud.{fades}"
    )


def _side_by_side(planned: Plan) -> list[Plan]:
    """The same guarantee and workload under every calibration that the service offers."""
    from streamer.privacy.terms import Method
    from streamer.privacy.threshold import plan

    offered = (Method.HORIZON, Method.EXACT, Method.THEOREM)
    return [
        planned
        if planned.calibration.method is method
        else plan(planned.guarantee, planned.workload, method)
        for method in offered
    ]


def _items_costs(planned: Plan) -> list[dict[str, int]]:
    """What more items of a user cost: about the threshold for each number of them."""
    from streamer.privacy.threshold import threshold_with

    if planned.workload.domain is Domain.DECLARED:
        return []
    numbers = sorted({1, 3, 5, planned.workload.items_per_step})
    return [
        {
            "items_per_step": number,
            "threshold": planned.threshold
            if number == planned.workload.items_per_step
            else threshold_with(planned, number),
        }
        for number in numbers
    ]


def _shown_weights(planned: Plan) -> list[int]:
    """One user, the first weights that reach round probabilities, and the guaranteed weight."""
    from streamer.privacy.search import first_integer

    def first_to_reach(probability: float) -> int:
        return first_integer(lambda weight: planned.detection(weight) >= probability, least=1)

    weights = {first_to_reach(probability) for probability in PROBABILITIES}
    return sorted(weights | {1, planned.guaranteed_weight})


def _print_tables(planned: Plan, report: dict[str, Any]) -> None:
    from rich.table import Table

    from streamer.commands.output import console
    from streamer.stream.timing import duration

    guarantee, unique = planned.guarantee, planned.unique_items_per_year
    workload = planned.workload
    step, length = (
        duration(round(1000 * workload.step_seconds * steps))
        for steps in (1, workload.period_steps)
    )
    console.print(
        f"Per user and period ({workload.period_steps:,} steps of {step}: {length}): whatever one "
        f"user does, every output is at most e^{guarantee.epsilon:g} times as likely as without "
        f"it, give or take an additive {guarantee.delta:g}. A stretch of time that reaches into "
        f"two periods costs the total of two: ε = {planned.epsilon_after(2):.3f}.\n"
    )
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column(style="bold")
    facts.add_column(justify="right")
    facts.add_column(style="dim")
    noise = planned.calibration
    small = (
        "Δ₁, Δ₂",
        f"{noise.delta1:,.4f}, {noise.delta2:,.4f}",
        "cap and scale of the small noise v",
    )
    declared = planned.declared_threshold
    for name, value, meaning in (
        (
            "noise scale",
            f"{noise.noise_scale:,.4f}",
            f"of {noise.noise} noise, {noise.method} calibration",
        ),
        *([small] if noise.delta2 else []),
        ("δ for charges", f"{noise.charge_delta:.3g}", "covers what answers reveal about a user"),
        (
            "δ for the key set",
            f"{noise.keys_delta:.3g}",
            f"covers which items appear, {workload.domain} domain",
        ),
        (
            "unique items",
            "no limit" if unique is None else f"{unique:.3g}",
            "items of single users expected to be published in a year, among "
            f"{workload.users:,} users who always hold {workload.items_per_step}",
        ),
        (
            "items per step",
            f"{workload.items_per_step:,}",
            "of a user count in a step, the latest ones",
        ),
        ("threshold", f"{planned.threshold:,}", "least noisy count that is reported"),
        *(
            [("declared items", f"{declared:,}", "threshold of items that are declared")]
            if declared
            else []
        ),
        (
            "loud reports",
            f"{planned.threshold + noise.loud_excess:,}",
            f"from this noisy count on, a report costs {noise.loud_price:g} of a contribution",
        ),
        *(
            [
                (
                    "gone",
                    f"{planned.exit_threshold:,}",
                    "a public item with a lower noisy count is called gone",
                )
            ]
            if _has_states(planned)
            else []
        ),
        ("margin", f"± {report['margin']:,}", "of the noise before selection, at 95% confidence"),
        (
            "guaranteed weight",
            f"{planned.guaranteed_weight:,}",
            f"users: no miss in a period with probability {1 - workload.beta:g}",
        ),
    ):
        facts.add_row(name, value, meaning)
    console.print(facts)
    console.print(f"\n{_budget_words(planned)}\n")
    detection = Table("users who hold an item", "probability of a report in that step")
    for row in report["detection"]:
        detection.add_row(f"{row['weight']:,}", f"{row['probability']:.6g}")
    totals = Table("periods", "total ε", "at total δ")
    for row in report["periods"]:
        totals.add_row(
            str(row["count"]), f"{row['epsilon']:.3f}", f"{guarantee.delta * row['count']:.3g}"
        )
    offers = Table("calibration", "noise", "scale", "threshold", "surely found from")
    for row in report["calibrations"]:
        offers.add_row(
            *(row["calibration"], row["noise"], f"{row['noise_scale']:,.2f}"),
            *(f"{row['threshold']:,}", f"{row['guaranteed_weight']:,} users"),
        )
    costs = Table("items of a user per step", "threshold")
    for row in report["items_costs"]:
        costs.add_row(str(row["items_per_step"]), f"{row['threshold']:,}")
    for table in (detection, totals, offers, *([costs] if costs.rows else [])):
        for column in table.columns:
            column.justify = "right"
        console.print(table)
