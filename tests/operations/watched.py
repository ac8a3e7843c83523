"""An engine that metrics watch, and what Prometheus reads of them."""

from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from streamer.operations.metrics import Metrics, Situation
from streamer.stream.engine import Engine
from streamer.stream.publication import Recorder
from streamer.stream.timing import StepTiming
from tests.stream.making import TIMING, batch, record, started


def new_metrics(most_items=100):
    return Metrics("1.2.3", StepTiming(10), most_items, "https://crashes.example.com/{item}")


def families(metrics, situation=None):
    """By name, without the _total of counters; our own metrics only."""
    text = metrics.text(situation or Situation()).decode()
    return {
        family.name.removeprefix("streamer_"): family
        for family in text_string_to_metric_families(text)
        if family.name.startswith("streamer_")
    }


def shown(metrics, name, situation=None):
    """What a metric shows: its value, or the value for each value of its label."""
    found = {
        tuple(sample.labels.values()): sample.value
        for family in families(metrics, situation).values()
        for sample in family.samples
        if sample.name == f"streamer_{name}"
    }
    return found[()] if () in found else {label: value for (label,), value in found.items()}


@dataclass
class Watched:
    """An engine without noise that reports every item that is held, from step 0 on."""

    metrics: Metrics = field(default_factory=new_metrics)
    engine: Engine = field(default_factory=started)

    def __post_init__(self):
        self.metrics.started(self.engine)
        self.recorder = Recorder(TIMING, -1 if self.engine.closed is None else self.engine.closed)

    def read(self, records, arrivals=None, now=None):
        """Read records, as the service does."""
        read = batch(records, arrivals)
        self.metrics.received(read, self.engine.intake.receive(read, self.engine.closed, now))

    def hold(self, step, items):
        """Items with so many users each; the first user of each step is the same one."""
        held = [item for item, users in items.items() for _ in range(users)]
        self.read([record(f"u{n}", item, step=step) for n, item in enumerate(held)])

    def close(self, through):
        while not self.engine.has_closed(through):
            decided = self.engine.close_next(through)
            if decided.hitters:
                self.publish(self.recorder.with_results(decided))
            self.metrics.closed(decided, self.engine)
        self.publish(self.recorder.without_results(self.engine.closed, self.engine.period))

    def publish(self, publication):
        if publication is not None:
            self.recorder.recorded = publication.through
            self.metrics.hitters.published(publication)

    def shown(self, name, situation=None):
        return shown(self.metrics, name, situation)
