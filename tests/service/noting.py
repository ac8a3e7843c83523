"""A ledger, an audience and a watcher that note, in one story, what they are asked and told."""

from dataclasses import dataclass, field

from streamer.ledger.contract import Restored
from streamer.stream.publication import Audience
from streamer.stream.watching import Watcher


@dataclass
class NotingLedger:
    """Implements `Ledger`, and keeps nothing but the story."""

    story: list = field(default_factory=list)
    past: Restored | None = None
    snapshot_due: bool = False

    async def restore(self):
        self.story.append("restore")
        return self.past

    async def claim(self):
        self.story.append("claim")

    async def append(self, entry):
        self.story.append(("append", entry.decided.first, entry.decided.step, dict(entry.offsets)))

    async def publish(self, publication):
        self.story.append(("publish", *told(publication)))

    async def snapshot(self, charges):
        self.story.append(("snapshot", len(charges), charges.total))


@dataclass
class NotingAudience(Audience):
    story: list

    def restored(self, publications):
        self.story.append(("audience restored", [told(each) for each in publications]))

    def started(self, settings):
        self.story.append(("audience started", settings.terms))

    def published(self, publication):
        self.story.append(("audience published", publication.through))


@dataclass
class NotingWatcher(Watcher):
    """Notes what operators are told, apart from the story."""

    taken_in: list = field(default_factory=list)
    phases: list = field(default_factory=list)
    decided: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    def received(self, batch, received):
        self.taken_in.append((batch, received))

    def timed(self, phase, seconds):
        assert 0 <= seconds < 60
        self.phases.append(phase)

    def closed(self, decided, engine):
        del engine
        self.decided.append(decided)

    def failed(self, error, writing):
        self.failures.append((error, writing))


def told(publication):
    """What a publication says: through which step, items by step, and step records."""
    steps = [(each.first or each.step, each.step, each.hitters) for each in publication.steps]
    items = [(each.step, each.item, each.estimate) for each in publication.results]
    return publication.through, items, steps
