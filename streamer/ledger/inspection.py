"""Facts about a journal for operators: numbers only, never a user."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.ledger.contract import Restored
from streamer.monitors.counters import Counters
from streamer.stream.timing import StepTiming, format_rfc3339


@dataclass(frozen=True, slots=True)
class JournalFacts:
    """The state of a journal; one that is `ended` cannot be continued; `bytes` is its size."""

    ended: bool
    last_step: int
    last_step_end: str
    published_step: int
    period: int
    period_ends: str
    epsilon: float
    delta: float
    contributions: int
    noise_scale: float
    threshold: int
    users_charged: int
    users_exhausted: int
    bytes: int


def facts_of(
    restored: Restored, timing: StepTiming, size: int, ended: bool = False
) -> JournalFacts:
    state = restored.state
    terms = state.period.terms
    counters = Counters(terms.contributions)
    counters.restore(state.charges)
    return JournalFacts(
        ended=ended,
        last_step=state.closed,
        last_step_end=format_rfc3339(timing.end(state.closed)),
        published_step=restored.published,
        period=state.period.number,
        period_ends=format_rfc3339(timing.start(state.period.end)),
        epsilon=terms.epsilon,
        delta=terms.delta,
        contributions=terms.contributions,
        noise_scale=state.period.plan.calibration.noise_scale,
        threshold=state.period.plan.threshold,
        users_charged=counters.charged,
        users_exhausted=counters.exhausted,
        bytes=size,
    )
