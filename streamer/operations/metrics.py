"""The metrics that the service exports to Prometheus.

For operators, on a separate port: except for the hitters, these are raw operational
numbers, which no dashboard for a wider audience should show.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import generate_latest

from streamer.operations.hitter_gauge import HitterGauge
from streamer.operations.instruments import Instruments
from streamer.stream.decided import Decided
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.periods import Period
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Phase, Watcher


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of the service at the time of a scrape."""

    ready: bool = False
    watermark_lag_seconds: float = 0.0
    clock_skew_seconds: float = 0.0
    records_lost: int = 0
    input_lag: Mapping[str, int] = field(default_factory=dict)


class Metrics(Watcher):
    """Watches one service, and updates its metrics."""

    def __init__(
        self,
        version: str,
        timing: StepTiming,
        most_items: int,
        link_template: str | None = None,
    ) -> None:
        self._instruments = Instruments()
        self.hitters = HitterGauge(self._instruments, timing, most_items, link_template)
        """The part that receives publications."""
        self._engine: Engine | None = None
        self._lost = 0
        self._instruments.build_info.labels(version, platform.python_version()).set(1)
        self._instruments.step_seconds.set(timing.length_ms / 1000)
        self._instruments.lateness_seconds.set(timing.lateness_ms / 1000)

    def restored(self, seconds: float) -> None:
        self._instruments.restore_seconds.set(seconds)

    def started(self, engine: Engine) -> None:
        self._engine = engine
        self._show_period(engine.period)

    def received(self, batch: Batch, received: Received) -> None:
        self._instruments.records_read.inc(len(batch.records))
        closed_step_events = self._instruments.closed_step_events
        closed_step_events.labels("read_again").inc(received.already_closed)
        closed_step_events.labels("missed").inc(received.missed)
        self._instruments.events.labels("late").inc(received.late)
        self._instruments.events.labels("ignored").inc(received.ignored)
        self._instruments.events.labels("rejected").inc(len(received.rejections))
        for rejection in received.rejections:
            self._instruments.rejected.labels(rejection.reason.value).inc()

    def timed(self, phase: Phase, seconds: float) -> None:
        self._instruments.step_close_seconds.labels(phase.value).observe(seconds)
        if phase is Phase.PUBLISH:
            self._instruments.publish_seconds.observe(seconds)
        elif phase in {Phase.APPEND, Phase.SNAPSHOT}:
            self._instruments.journal_write_seconds.observe(seconds)

    def closed(self, decided: Decided, engine: Engine) -> None:
        turnout = engine.turnout
        self._instruments.events.labels("accepted").inc(turnout.held)
        self._instruments.events.labels("duplicate").inc(turnout.events - turnout.held)
        self._instruments.steps_closed.inc(decided.step - decided.first + 1)
        reports = [hitter for hitter in decided.hitters if hitter.estimate is not None]
        self._instruments.hitters.inc(len(reports))
        self._instruments.exhausted_ratio.set(turnout.exhausted / max(1, turnout.users))
        self._instruments.last_step_closed.set_to_current_time()
        self._show_period(decided.period)

    def failed(self, error: BaseException, writing: bool) -> None:
        self._instruments.kafka_errors.labels(type(error).__name__).inc()
        if writing:
            self._instruments.journal_errors.inc()

    def text(self, situation: Situation) -> bytes:
        """All metrics, in the text format of Prometheus."""
        engine = self._engine
        if engine is not None:
            self._instruments.open_steps.set(len(engine.intake.open_steps))
            self._instruments.buffered_events.set(engine.intake.buffered)
            self._instruments.users_charged.set(engine.charged)
            self._instruments.users_exhausted.set(engine.exhausted)
            self._instruments.terms_pending.set(engine.terms_pending)
            if engine.period is not None and engine.closed is not None:
                self._instruments.period_remaining_steps.set(engine.period.end - engine.closed - 1)
        self._instruments.ready.set(situation.ready)
        self._instruments.watermark_lag_seconds.set(situation.watermark_lag_seconds)
        self._instruments.clock_skew_seconds.set(situation.clock_skew_seconds)
        # A restarted source counts from 0 again.
        before = self._lost if situation.records_lost >= self._lost else 0
        self._instruments.records_lost.inc(situation.records_lost - before)
        self._lost = situation.records_lost
        for partition, lag in situation.input_lag.items():
            self._instruments.input_lag.labels(partition).set(lag)
        return generate_latest(self._instruments.registry)

    def _show_period(self, period: Period | None) -> None:
        if period is None:
            return
        self._instruments.epsilon.set(period.terms.epsilon)
        self._instruments.delta.set(period.terms.delta)
        self._instruments.contributions.set(period.terms.contributions)
        self._instruments.noise_scale.set(period.plan.calibration.noise_scale)
        self._instruments.threshold.set(period.plan.threshold)
        self._instruments.period.set(period.number)
        self._instruments.hitter_margin.set(period.margin)
