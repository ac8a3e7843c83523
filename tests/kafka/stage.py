"""A service on a topic that keeps its producers' timestamps, with a clock of the test's.

So each test says when each record arrives and what time it is.
"""

from dataclasses import dataclass, field

from streamer.stream.timing import format_rfc3339
from tests.kafka.conftest import World
from tests.kafka.harness import (
    Clock,
    Record,
    event,
    eventually,
    make_topic,
    produce,
    running,
    values_of,
)
from tests.stream.making import RepeatingDecider

EPOCH, LATENESS, SKEW, AHEAD = 1_700_000_000_000, 200, 50, 300_000
STEP = 1000
"""The step in which the tests begin."""


def at(step, ms=0):
    """So long after the beginning of a step."""
    return EPOCH + 1000 * step + ms


def over(step):
    """When our clock says that nothing more can arrive for a step."""
    return at(step + 1, LATENESS + SKEW)


@dataclass
class Stage:
    """A world with a topic of events, a clock, and a decider that tells the truth."""

    world: World
    kafka: dict = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(at(STEP, 500)))
    decider: RepeatingDecider = field(default_factory=lambda: RepeatingDecider(threshold=1))
    start: str | None = field(default_factory=lambda: format_rfc3339(at(STEP - 1)))
    sent: int = 0
    events: dict = field(default_factory=dict)
    """The settings of events."""

    @classmethod
    async def make(cls, world: World, partitions: int = 1, **kafka: object) -> "Stage":
        """With a new topic, and settings such as max_poll_records."""
        await make_topic(
            world.bootstrap,
            world.topic("events"),
            partitions,
            message_timestamp_type="CreateTime",
            retention_ms="-1",  # the records are years old
        )
        return cls(world, kafka)

    def run(self, **changes):
        """One service after the other: each with the same clock and decider."""
        settings = self.world.settings(
            stream={
                "epoch": format_rfc3339(EPOCH),
                "start": self.start,
                "ahead_seconds": AHEAD / 1000,
                # With a clock that stands still nothing else would be published.
                "publish_delay_seconds": 0.0,
            },
            kafka={"trust_producer_timestamps": True} | self.kafka | changes,
            # Nobody is asked about in a step without events.
            privacy={"attention": "every_step"},
            events=self.events,
        )
        return running(settings, clock=self.clock, asked_by=self.decider)

    async def send(self, arrival, partition=0, number=1, item="x", **more):
        """Events of so many users, all of them new."""
        users = range(self.sent, self.sent + number)
        self.sent += number
        await self.put([Record(event(u, item, **more), partition, arrival) for u in users])

    async def put(self, records):
        await produce(self.world.bootstrap, self.world.topic("events"), records)

    async def turns(self, number=5):
        """Let the service look around some more times: at the clock three times each."""
        looks = self.clock.looks + 3 * number
        await eventually(lambda: self.clock.looks > looks)

    async def steps(self):
        return await values_of(self.world.bootstrap, self.world.topic("steps"))

    @property
    def counts(self):
        """How many users were counted in each step that had any."""
        return {step: items["x"] for step, items in self.decider.counts.items()}
