"""The guarantee and its numbers, in words for readers of the page."""

from __future__ import annotations

import math
from fractions import Fraction

from streamer.privacy.terms import Attention, Neighbours
from streamer.privacy.threshold import Plan
from streamer.stream.periods import Period, Terms
from streamer.stream.publication import PublicSettings
from streamer.stream.timing import StepTiming, duration
from streamer.web.answers import Promise

_LARGEST_WRITTEN_OUT = 14.0


def promise_of_period(period: Period, timing: StepTiming, trusts_producers: bool) -> Promise:
    return _promise(period.terms, period.plan, period.margin, timing, period, trusts_producers)


def promise_to_come(settings: PublicSettings, timing: StepTiming) -> Promise:
    """For a stream whose first period has not started."""
    terms = settings.terms
    plan = terms.plan()
    return _promise(terms, plan, plan.law.margin(), timing, None, settings.trusts_producers)


def _promise(
    terms: Terms,
    plan: Plan,
    margin: int,
    timing: StepTiming,
    period: Period | None,
    trusts_producers: bool,
) -> Promise:
    has_states = terms.attention is Attention.CHANGES
    return Promise(
        sentence=sentence(terms, plan, timing),
        epsilon=terms.epsilon,
        delta=terms.delta,
        contributions=terms.contributions,
        neighbours=terms.neighbours.value,
        step_seconds=timing.length_ms / 1000,
        period_steps=terms.period_steps,
        refresh_steps=terms.refresh_steps,
        threshold=plan.threshold,
        margin=margin,
        noise_scale=plan.calibration.noise_scale,
        users=plan.workload.users or None,
        unique_items_per_year=plan.unique_items_per_year,
        noise=plan.calibration.noise.value,
        attention=terms.attention.value,
        value_every_steps=terms.pace(plan).value_every_steps if has_states else None,
        exit_threshold=plan.exit_threshold if has_states else None,
        items_per_step=terms.items_per_step,
        loud_price=plan.calibration.loud_price,
        loud_excess=plan.calibration.loud_excess if plan.calibration.loud_price < 1 else None,
        declared_items=len(terms.declared_items),
        declared_threshold=plan.threshold_of(is_declared=True) if terms.declared_items else None,
        open_domain=terms.open_domain,
        period=period.number if period else None,
        first=period.first if period else None,
        trusts_producers=trusts_producers,
    )


def sentence(terms: Terms, plan: Plan, timing: StepTiming) -> str:
    """What is promised to one user, in one sentence."""
    change = {
        Neighbours.REPLACE: "If everything one user did in {} were replaced by anything else",
        Neighbours.ADD_REMOVE: "If everything one user did in {} were removed",
    }[terms.neighbours].format(duration(terms.period_steps * timing.length_ms))
    return (
        f"{change}, nothing shown here would become more than {_factor(terms.epsilon)} times as "
        f"likely or as unlikely, give or take an additive {_chance(terms.delta)}, and the "
        f"user counts in at most {_reports(terms, plan)} in that time."
    )


def _reports(terms: Terms, plan: Plan) -> str:
    """How many reports a user can count in; more, if they are loud."""
    most = terms.contributions
    reports = f"{most:,} {'report' if most == 1 else 'reports'}"
    if terms.attention is Attention.CHANGES:
        reports += " that an item is there or gone"
    price = plan.calibration.loud_price
    if price == 1:
        return reports
    loud = plan.threshold + plan.calibration.loud_excess
    return f"{reports}, or {most / price:,.0f} of {loud:,} users or more,"


def _factor(epsilon: float) -> str:
    """e^ε with three digits, rounded up because it is a bound."""
    if epsilon > _LARGEST_WRITTEN_OUT:
        return f"e^{epsilon:g}"
    factor = math.exp(epsilon)
    size = 10 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / size) * size:,.10g}"


def _chance(delta: float) -> str:
    """As "one in N" if N is a whole number, as for 1e-6."""
    odds = 1 / Fraction(repr(delta))
    return f"one in {odds.numerator:,}" if odds.denominator == 1 else f"{delta:g}"
