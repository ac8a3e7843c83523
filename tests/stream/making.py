"""What several tests of this room need: terms, records, an engine, a decider that repeats."""

import hashlib
import json
from functools import cache

import msgspec
import numpy as np

from streamer.privacy.terms import Method, Neighbours
from streamer.stream.engine import Engine
from streamer.stream.events import EventDecoder
from streamer.stream.fate import FateRule
from streamer.stream.intake import Batch, Intake
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.timing import StepTiming
from tests.monitors.scripted import answered

KEY = bytes(range(32))
LENGTH, LATENESS, AHEAD = 10, 5, 1_000
TIMING = StepTiming(LENGTH, epoch_ms=0, lateness_ms=LATENESS)
MINUTES = StepTiming(60_000, epoch_ms=1_767_225_600_000)  # from 2026-01-01T00:00:00Z on


class PlannedOnce(Terms):
    """Terms whose plan is made once for all tests: planning is slower than everything else."""

    def plan(self):
        return _plan(self)


@cache
def _plan(terms):
    return Terms.plan(terms)


def terms(**changes):
    settings = {
        "epsilon": 10.0,
        "delta": 0.01,
        "contributions": 2,
        "neighbours": Neighbours.REPLACE,
        "calibration": Method.EXACT,
        "period_steps": 100,
        "refresh_steps": 1,
        "beta": 0.5,
        "items": 10,
    }
    return PlannedOnce(**settings | changes)


def new_intake(timing=TIMING, file_range=None, decoder=None):
    decoder = decoder or EventDecoder(timing)
    return Intake(decoder, FateRule(timing, AHEAD), Pseudonyms(KEY), file_range)


def record(user, item, **more):
    return msgspec.json.encode({"user": user, "item": item, **more})


def batch(records, arrivals=None, partition="p", first=0):
    """Records of consecutive offsets."""
    return Batch(
        partition,
        np.arange(first, first + len(records)),
        records,
        None if arrivals is None else np.array(arrivals, dtype=np.int64),
    )


def written(published):
    """The fields of a record as they stand in its JSON, in their order."""
    return json.loads(msgspec.json.encode(published), object_pairs_hook=list)


def pseudonym(user):
    return int(Pseudonyms(KEY).of([user])[0])


def seeded_noise(seed, step, item):
    """A whole number from -2 to 2 that depends on these three and on nothing else."""
    return hashlib.sha256(f"{seed} {step} {item}".encode()).digest()[0] % 5 - 2


class RepeatingDecider:
    """Asks with noise that is the same whenever a step is decided again.

    With `seed` None it tells the truth. It notes the counts that it was asked about. What is
    public is gone below half of the threshold.
    """

    def __init__(self, threshold, seed=None):
        self.threshold = threshold
        self.exit_threshold = (threshold + 1) // 2
        self.seed = seed
        self.counts = {}

    asks_unheld = False

    def __call__(self, plan, declared):
        """Stands in for the class of questions: the same for all periods."""
        del plan, declared
        return self

    def ask(self, tally, agenda):
        step, names = tally.step, tally.numbers.names(tally.items)
        self.counts[step] = dict(zip(names, tally.holders.tolist(), strict=True))

        def noise(item):
            return 0 if self.seed is None else seeded_noise(self.seed, step, item)

        return answered(tally, agenda, self.threshold, self.exit_threshold, noise)


def new_engine(threshold=1, state=None, **changes):
    """An engine that reports every item with at least this many holders, without noise."""
    return Engine(new_intake(), terms(**changes), state, RepeatingDecider(threshold))


def started(**changes):
    engine = new_engine(**changes)
    engine.start_at(0)
    return engine


def feed(engine, *events):
    """Events as (user, item, step)."""
    records = [record(user, item, step=step) for user, item, step in events]
    engine.intake.receive(batch(records), engine.closed, None)


def close_all(engine, through):
    """All decisions up to a step."""
    decisions = []
    while not engine.has_closed(through):
        decisions.append(engine.close_next(through))
    return decisions
