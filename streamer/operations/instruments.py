"""Every metric of the service, declared once, with what it means."""

from __future__ import annotations

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from streamer.stream.events import Reason
from streamer.stream.watching import Phase

disable_created_metrics()  # type: ignore[no-untyped-call]  # twins that nobody asks for
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Instruments:
    """The metrics by name, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)
        self._declare_intake()
        self._declare_steps()
        self._declare_guarantee()
        self._declare_service()
        # A label that first appears with its first event hides that event from rate().
        for outcome in ("accepted", "duplicate", "late", "rejected"):
            self.events.labels(outcome)
        for reason in Reason:
            self.rejected.labels(reason.value)
        for phase in Phase:
            self.step_close_seconds.labels(phase.value)

    def _declare_intake(self) -> None:
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
        self.records_lost = self._counter(
            "records_lost_total", "Records that were deleted before they were read."
        )
        self.rejected = self._counter("rejected_total", "Rejected events by reason.", "reason")
        self.input_lag = self._gauge(
            "input_lag", "Records of the events topic that are not read yet.", "partition"
        )
        self.open_steps = self._gauge("open_steps", "Steps that have events and are not closed.")
        self.buffered_events = self._gauge("buffered_events", "Events of open steps, in memory.")
        self.clock_skew_seconds = self._gauge(
            "clock_skew_seconds", "How far the newest arrival is ahead of this machine's clock."
        )

    def _declare_steps(self) -> None:
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
        self.step_seconds = self._gauge("step_seconds", "Length of a step.")
        self.lateness_seconds = self._gauge(
            "lateness_seconds", "How long after its end a step waits for events."
        )
        self.watermark_lag_seconds = self._gauge(
            "watermark_lag_seconds", "How long ago the last closed step ended."
        )
        self.last_step_closed = self._gauge(
            "last_step_closed_timestamp_seconds", "When a step was closed last."
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

    def _declare_guarantee(self) -> None:
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

    def _declare_service(self) -> None:
        self.ready = self._gauge("ready", "1 while the service reads and closes steps.")
        self.restore_seconds = self._gauge(
            "restore_seconds", "Time that restoring the journal took at the last start."
        )
        self.kafka_errors = self._counter(
            "kafka_errors_total", "Errors of the broker's or on the way to it, by kind.", "kind"
        )
        self.journal_errors = self._counter(
            "journal_errors_total", "Attempts to write the journal or results that failed."
        )
        self.build_info = self._gauge("build_info", "Always 1.", "version", "python")

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"streamer_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"streamer_{name}", meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, *labels: str) -> Histogram:
        return Histogram(
            f"streamer_{name}", meaning, labels, registry=self.registry, buckets=_SECONDS
        )
