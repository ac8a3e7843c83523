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

from streamer.monitors.states import State
from streamer.stream.reasons import Reason
from streamer.stream.watching import Phase

disable_created_metrics()  # type: ignore[no-untyped-call]  # nobody needs the *_created series
CHANGES = (State.NEW, State.BACK, State.GONE)
"""The states that are counted: how a stretch in which an item is public begins and ends."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Instruments:
    """The metrics by name, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)
        self._declare_intake()
        self._declare_steps()
        self._declare_hitters()
        self._declare_guarantee()
        self._declare_service()
        # rate() misses the first event of a label that first appears with that event.
        for outcome in ("accepted", "duplicate", "late", "ignored", "rejected"):
            self.events.labels(outcome)
        for why in ("read_again", "missed"):
            self.closed_step_events.labels(why)
        for reason in Reason:
            self.rejected.labels(reason.value)
        for state in CHANGES:
            self.changes.labels(state.value)
        for phase in Phase:
            self.step_close_seconds.labels(phase.value)

    def _declare_intake(self) -> None:
        self.records_read = self._counter(
            "records_read_total",
            "Records read from the source, including those re-read after a restart.",
        )
        self.events = self._counter(
            "events_total",
            "Events by outcome. Accepted and duplicate events are counted when their step closes.",
            "outcome",
        )
        self.closed_step_events = self._counter(
            "closed_step_events_total",
            "Events whose step was already closed when they were read. read_again: decided before "
            "a restart. missed: the step was closed without them.",
            "reason",
        )
        self.records_lost = self._counter(
            "records_lost_total", "Records deleted from the topic before they were read."
        )
        self.rejected = self._counter("rejected_total", "Rejected events by reason.", "reason")
        self.input_lag = self._gauge(
            "input_lag", "Records in the events topic not yet read.", "partition"
        )
        self.open_steps = self._gauge("open_steps", "Steps with events that are not yet closed.")
        self.buffered_events = self._gauge(
            "buffered_events", "Events of open steps, buffered in memory."
        )
        self.clock_skew_seconds = self._gauge(
            "clock_skew_seconds",
            "Seconds by which the newest arrival is ahead of this machine's clock.",
        )

    def _declare_steps(self) -> None:
        self.steps_closed = self._counter(
            "steps_closed_total", "Closed steps, including empty ones."
        )
        self.step_seconds = self._gauge("step_seconds", "Length of a step, in seconds.")
        self.lateness_seconds = self._gauge(
            "lateness_seconds",
            "Seconds after the end of a step during which its events may still arrive.",
        )
        self.watermark_lag_seconds = self._gauge(
            "watermark_lag_seconds", "Seconds since the end of the last closed step."
        )
        self.last_step_closed = self._gauge(
            "last_step_closed_timestamp_seconds", "Unix time at which a step was last closed."
        )
        self.step_close_seconds = self._histogram(
            "step_close_seconds", "Time to close a step, by phase.", "phase"
        )
        self.journal_write_seconds = self._histogram(
            "journal_write_seconds", "Time until a decision or a snapshot is durable."
        )
        self.publish_seconds = self._histogram(
            "publish_seconds", "Time until results and step records are published."
        )

    def _declare_hitters(self) -> None:
        self.hitters = self._counter("hitters_total", "Reports: published estimates of items.")
        self.changes = self._counter(
            "changes_total",
            "Items that became public (new, or back after they were gone), and that are gone. "
            "Items of attention every_step are never called gone.",
            "state",
        )
        self.hitters_current = self._gauge("hitters_current", "Public items.")
        self.hitters_shown = self._gauge(
            "hitters_shown",
            "Public items that the metrics with the label item show: the largest, up to "
            "metrics.items.",
        )
        self.hitter_estimate = self._gauge(
            "hitter_estimate",
            "Last estimate of the number of users of a public item, with noise.",
            "item",
        )
        self.hitter_low = self._gauge(
            "hitter_low",
            "Lower end of the 95% interval of the number of users of a public item, given that "
            "it was reported; of its last estimate.",
            "item",
        )
        self.hitter_high = self._gauge(
            "hitter_high",
            "Upper end of the 95% interval of the number of users of a public item, given that "
            "it was reported; of its last estimate.",
            "item",
        )
        self.hitter_since_seconds = self._gauge(
            "hitter_since_seconds",
            "Unix time of the start of the first step in which the item is public, without "
            "interruption.",
            "item",
        )
        self.hitter_growth = self._gauge(
            "hitter_growth",
            "Users by which an item has grown beyond what the intervals explain: low of its last "
            "estimate minus high of the one an hour or more before (or the first); 0 if less.",
            "item",
        )
        self.hitter_info = self._gauge(
            "hitter_info",
            "Always 1; the link of a public item, if http.link_template is set.",
            "item",
            "link",
        )
        self.hitter_margin = self._gauge(
            "hitter_margin",
            "Deprecated, use streamer_hitter_low and streamer_hitter_high: half-width of the 95% "
            "interval of the noise before selection, in users.",
        )

    def _declare_guarantee(self) -> None:
        self.epsilon = self._gauge("epsilon", "ε of this period's guarantee.")
        self.delta = self._gauge("delta", "δ of this period's guarantee.")
        self.contributions = self._gauge(
            "contributions", "k: a user's budget per period, in reports."
        )
        self.noise_scale = self._gauge(
            "noise_scale", "Scale of the noise in this period, in users."
        )
        self.threshold = self._gauge("threshold", "Estimates at or above this are reported.")
        self.period = self._gauge("period", "Number of the budget period.")
        self.period_remaining_steps = self._gauge(
            "period_remaining_steps", "Steps until budgets reset."
        )
        self.terms_pending = self._gauge(
            "terms_pending", "1 while changed privacy settings wait for the next period."
        )
        self.users_charged = self._gauge(
            "users_charged", "Users charged at least once in this period."
        )
        self.users_exhausted = self._gauge(
            "users_exhausted", "Users whose budget for this period is exhausted."
        )
        self.exhausted_ratio = self._gauge(
            "exhausted_ratio",
            "Share of the users in the last closed step whose budget is exhausted.",
        )

    def _declare_service(self) -> None:
        self.ready = self._gauge("ready", "1 while the service reads and closes steps.")
        self.restore_seconds = self._gauge(
            "restore_seconds", "Time to restore the journal at the last start."
        )
        self.kafka_errors = self._counter(
            "kafka_errors_total",
            "Kafka errors, by kind: from the broker or from the connection to it.",
            "kind",
        )
        self.journal_errors = self._counter(
            "journal_errors_total", "Failed attempts to write the journal or results."
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
