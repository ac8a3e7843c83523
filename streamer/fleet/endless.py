"""The fleet of the demo: what it sends every second, and the ground truth.

Outbreaks begin, last for about half a minute and end; one item lasts. The fleet never ends:
simulated fleets of ten minutes, with the same users, follow each other, so a day takes no more
memory than a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice

import numpy as np
from numpy.typing import NDArray

from streamer.errors import SettingError
from streamer.fleet.catalogue import Catalogue
from streamer.fleet.event_lines import EventLines
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak, Shape
from streamer.fleet.simulation import FleetStep, simulate
from streamer.fleet.truth import TrueStep, held_items
from streamer.stream.timing import StepTiming

STEPS = 600
FEWEST_USERS, MOST_USERS = 50_000, 1_000_000
"""With fewer users, outbreaks would affect most of them and soon use up their reports;
with more, the simulation is too slow."""
FLOOR = 50
"""Items with fewer users are counted, not named, in the ground truth."""

OUTBREAKS = (
    "crash:OutOfMemoryError:Feed.kt:118",
    "error:HTTP-502:/api/checkout",
    "version:8.2.0-rollback",
    "error:TLS-handshake:edge-fra-4",
    "crash:IllegalStateException:Login.kt:341",
    "search:is the app down",
    "error:timeout:payments-eu",
    "url:/status",
)
"""The items of outbreaks."""
LASTING = "version:8.1.4"
"""The item that some users have all the time."""
# The first is visible at once; the next one grows while people watch.
_SHAPES = (Shape.SPIKE, Shape.RAMP, Shape.FLAT)
_GAPS, _LENGTHS = (18, 36), (20, 42)
"""Steps between starts of outbreaks, and steps that each lasts."""
_SHARES, _FEWEST_HOLDERS = (0.025, 0.09), 2_500
"""Share of the users; and a minimum that is large enough to be reported."""
_LASTING_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Sent:
    """The records of one step, sorted by arrival (milliseconds since 1970), and its ground
    truth."""

    step: int
    records: list[bytes]
    arrivals: NDArray[np.int64]
    truth: TrueStep
    outbreaks: frozenset[str]
    """The items of running outbreaks."""

    def after(self, sent: int) -> Sent:
        """What is left when the first records were sent."""
        return replace(self, records=self.records[sent:], arrivals=self.arrivals[sent:])


def check_users(users: int) -> None:
    if not FEWEST_USERS <= users <= MOST_USERS:
        allowed = f"the demo needs {FEWEST_USERS:,} to {MOST_USERS:,} users"
        raise SettingError("users", users, allowed)


def sent_by(users: int, seed: int, first_step: int, timing: StepTiming) -> Iterator[Sent]:
    """What this number of users send from `first_step` on, without end."""
    for number in count():
        yield from _sent(_fleet(users, (seed, number), first_step + number * STEPS, timing))


def _fleet(users: int, seeds: tuple[int, int], first_step: int, timing: StepTiming) -> Fleet:
    """Ten minutes of the demo."""
    start = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timing.start(first_step))
    return Fleet(
        users=users,
        steps=STEPS,
        seed=int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0]),
        start=start,
        step_seconds=timing.length_ms / 1000,
        active=0.2,
        exponent=0.7,  # no usual item of 100,000 users is near the threshold
        outbreaks=tuple(_outbreaks(users, np.random.default_rng(seeds))),
        lasting=(Lasting(LASTING, round(users * _LASTING_SHARE)),),
        delay_seconds=2.0,
        skew_seconds=0.2,
    )


def _outbreaks(users: int, rng: np.random.Generator) -> Iterator[Outbreak]:
    """One at a time or two overlapping, with pauses in between."""
    items = islice(cycle(OUTBREAKS), int(rng.integers(len(OUTBREAKS))), None)
    start = 0
    for item, shape in zip(items, cycle(_SHAPES), strict=False):
        length = int(rng.integers(*_LENGTHS, endpoint=True))
        if start + length > STEPS:
            return
        share = float(np.exp(rng.uniform(*np.log(_SHARES))))
        yield Outbreak(item, max(_FEWEST_HOLDERS, round(users * share)), start, length, shape)
        start += int(rng.integers(*_GAPS, endpoint=True))


def _sent(fleet: Fleet) -> Iterator[Sent]:
    catalogue = fleet.catalogue()
    lines = EventLines(catalogue)
    for number, happened in enumerate(simulate(fleet)):
        events = happened.events.take(np.argsort(happened.events.arrivals, kind="stable"))
        yield Sent(
            happened.step,
            lines.render(events),
            events.arrivals,
            _truth(happened, catalogue),
            frozenset(one.item for one in fleet.outbreaks if one.holders(number)),
        )


def _truth(happened: FleetStep, catalogue: Catalogue) -> TrueStep:
    items, users = np.unique(held_items(happened), return_counts=True)
    named = users >= FLOOR
    return TrueStep(
        happened.step,
        {
            catalogue.text(item): number
            for item, number in zip(items[named].tolist(), users[named].tolist(), strict=True)
        },
        fewer=int(np.count_nonzero(~named)),
        singles=int(np.count_nonzero(users == 1)),
    )
