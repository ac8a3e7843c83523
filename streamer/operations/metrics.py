"""Every metric of the service, declared once, with what it means.

For operators, on a port of its own: apart from the hitters, these are raw operational
numbers, which no dashboard for a wider audience should show.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from streamer.operations.current import CurrentHitters
from streamer.stream.engine import Engine
from streamer.stream.events import Reason
from streamer.stream.intake import Batch, Received
from streamer.stream.periods import Period
from streamer.stream.records import Decided
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Phase, Watcher

disable_created_metrics()  # type: ignore[no-untyped-call]  # twins that nobody asks for
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the service stands at the moment of a scrape."""

    ready: bool = False
    watermark_lag_seconds: float = 0.0
    clock_skew_seconds: float = 0.0
    restore_seconds: float = 0.0
    records_lost: int = 0
    input_lag: Mapping[str, int] = field(default_factory=dict)


class Metrics(Watcher):
    """Watches one service, and tells Prometheus."""

    def __init__(self, version: str, timing: StepTiming, most_items: int) -> None:
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)
        self._current = CurrentHitters(most_items)
        self._engine: Engine | None = None
        self._declare()
        self.build_info.labels(version, platform.python_version()).set(1)
        self.step_seconds.set(timing.length_ms / 1000)
        self.lateness_seconds.set(timing.lateness_ms / 1000)
        # A label that first appears with its first event hides that event from rate().
        for outcome in ("accepted", "duplicate", "late", "rejected"):
            self.events.labels(outcome)
        for reason in Reason:
            self.rejected.labels(reason.value)
        for phase in Phase:
            self.step_close_seconds.labels(phase.value)

    def _declare(self) -> None:
        self.records_read = self._counter(
            "records_read_total", "Records read from the source, also those read again."
        )
        self.events = self._counter(
            "events_total",
            "Events by what became of them; accepted and duplicate ones when their step closes.",
            "outcome",
        )
        self.closed_step_events = self._counter(
            "closed_step_events_total",
            "Events whose step was closed when they were read: read again after a restart, or held "
            "back by a producer's transaction.",
        )
        self.records_lost = self._gauge(
            "records_lost", "Records that were deleted before they were read, since the start."
        )
        self.rejected = self._counter("rejected_total", "Rejected events by reason.", "reason")
        self.steps_closed = self._counter("steps_closed_total", "Closed steps, empty ones too.")
        self.hitters = self._counter("hitters_total", "Reported heavy hitters.")
        self.hitter_estimate = self._gauge(
            "hitter_estimate",
            "Noisy number of users who hold an item that is reported now.",
            "item",
        )
        self.hitter_margin = self._gauge(
            "hitter_margin", "Half-width of the 95% interval around every estimate."
        )
        self.step_close_seconds = self._histogram(
            "step_close_seconds", "Time that closing a step takes, by phase.", "phase"
        )
        self.journal_write_seconds = self._histogram(
            "journal_write_seconds", "Time until a decision or a snapshot is durable."
        )
        self.publish_seconds = self._histogram(
            "publish_seconds", "Time until results and step records are published."
        )
        self.restore_seconds = self._gauge(
            "restore_seconds", "Time that restoring the journal took at the last start."
        )
        self.watermark_lag_seconds = self._gauge(
            "watermark_lag_seconds", "How long ago the last closed step ended."
        )
        self.last_step_closed = self._gauge(
            "last_step_closed_timestamp_seconds", "When a step was closed last."
        )
        self.step_seconds = self._gauge("step_seconds", "Length of a step.")
        self.lateness_seconds = self._gauge(
            "lateness_seconds", "How long after its end a step waits for events."
        )
        self.input_lag = self._gauge(
            "input_lag", "Records of the events topic that are not read yet.", "partition"
        )
        self.open_steps = self._gauge("open_steps", "Steps that have events and are not closed.")
        self.buffered_events = self._gauge("buffered_events", "Events of open steps, in memory.")
        self.users_charged = self._gauge(
            "users_charged", "Users who were charged at least once in this period."
        )
        self.users_exhausted = self._gauge(
            "users_exhausted", "Users whose budget of this period is used up."
        )
        self.exhausted_ratio = self._gauge(
            "exhausted_ratio",
            "Share of the users of the last closed step who no longer count in this period.",
        )
        self.epsilon = self._gauge("epsilon", "ε of this period's guarantee.")
        self.delta = self._gauge("delta", "δ of this period's guarantee.")
        self.contributions = self._gauge(
            "contributions", "Reports that a user counts for in a period (k)."
        )
        self.noise_scale = self._gauge("noise_scale", "Scale of the noise of this period.")
        self.threshold = self._gauge("threshold", "Estimates from here on are reported.")
        self.period = self._gauge("period", "Number of the budget period.")
        self.period_remaining_steps = self._gauge(
            "period_remaining_steps", "Steps until budgets start anew."
        )
        self.terms_pending = self._gauge(
            "terms_pending", "1 while changed privacy settings wait for the next period."
        )
        self.kafka_errors = self._counter(
            "kafka_errors_total", "Errors of the broker's or on the way to it, by kind.", "kind"
        )
        self.journal_errors = self._counter(
            "journal_errors_total", "Attempts to write the journal or results that failed."
        )
        self.clock_skew_seconds = self._gauge(
            "clock_skew_seconds", "How far the newest arrival is ahead of this machine's clock."
        )
        self.ready = self._gauge("ready", "1 while the service reads and closes steps.")
        self.build_info = self._gauge("build_info", "Always 1.", "version", "python")

    def restored(self, history: Sequence[Decided], published: int) -> None:
        del published
        for decided in history:
            # Of a long history only what is still current is worth the time at a start.
            if decided.step + decided.period.terms.refresh_steps > history[-1].step:
                self._show_hitters(decided)

    def started(self, engine: Engine) -> None:
        self._engine = engine
        self._show_period(engine.period)

    def received(self, batch: Batch, received: Received) -> None:
        self.records_read.inc(len(batch.records))
        self.closed_step_events.inc(received.decided)
        self.events.labels("late").inc(received.late)
        self.events.labels("rejected").inc(len(received.rejections))
        for rejection in received.rejections:
            self.rejected.labels(rejection.reason.value).inc()

    def timed(self, phase: Phase, seconds: float) -> None:
        self.step_close_seconds.labels(phase.value).observe(seconds)
        if phase is Phase.PUBLISH:
            self.publish_seconds.observe(seconds)
        elif phase in {Phase.APPEND, Phase.SNAPSHOT}:
            self.journal_write_seconds.observe(seconds)

    def closed(self, decided: Decided, engine: Engine) -> None:
        turnout = engine.turnout
        self.events.labels("accepted").inc(turnout.users)
        self.events.labels("duplicate").inc(turnout.events - turnout.users)
        self.steps_closed.inc(decided.step - decided.first + 1)
        self.hitters.inc(len(decided.hitters))
        self.exhausted_ratio.set(turnout.exhausted / max(1, turnout.users))
        self.last_step_closed.set_to_current_time()
        self._show_period(decided.period)
        self._show_hitters(decided)

    def failed(self, error: BaseException, writing: bool) -> None:
        self.kafka_errors.labels(type(error).__name__).inc()
        if writing:
            self.journal_errors.inc()

    def text(self, situation: Situation) -> bytes:
        """Everything, as Prometheus reads it."""
        engine = self._engine
        if engine is not None:
            self.open_steps.set(len(engine.intake.open_steps))
            self.buffered_events.set(engine.intake.buffered)
            self.users_charged.set(engine.charged)
            self.users_exhausted.set(engine.exhausted)
            self.terms_pending.set(engine.terms_pending)
            if engine.period is not None and engine.closed is not None:
                self.period_remaining_steps.set(engine.period.end - engine.closed - 1)
        self.ready.set(situation.ready)
        self.watermark_lag_seconds.set(situation.watermark_lag_seconds)
        self.clock_skew_seconds.set(situation.clock_skew_seconds)
        self.restore_seconds.set(situation.restore_seconds)
        self.records_lost.set(situation.records_lost)
        for partition, lag in situation.input_lag.items():
            self.input_lag.labels(partition).set(lag)
        return generate_latest(self.registry)

    def _show_period(self, period: Period | None) -> None:
        if period is None:
            return
        self.epsilon.set(period.terms.epsilon)
        self.delta.set(period.terms.delta)
        self.contributions.set(period.terms.contributions)
        self.noise_scale.set(period.plan.calibration.noise_scale)
        self.threshold.set(period.plan.threshold)
        self.period.set(period.number)
        self.hitter_margin.set(period.margin)

    def _show_hitters(self, decided: Decided) -> None:
        before = self._current.items
        now = self._current.after(decided)
        for item in before - now.keys():
            self.hitter_estimate.remove(item)
        for item, estimate in now.items():
            self.hitter_estimate.labels(item).set(estimate)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"streamer_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"streamer_{name}", meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, *labels: str) -> Histogram:
        return Histogram(
            f"streamer_{name}", meaning, labels, registry=self.registry, buckets=_SECONDS
        )
