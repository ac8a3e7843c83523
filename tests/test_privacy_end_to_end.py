"""The privacy game played through the whole engine: event records in, result records out.

Many trials at once share one engine: each has a user and an item of its own, and so many
other holders that the one user makes the difference at the threshold. False alarms: below
one in a million for each test that must pass.
"""

import secrets
from dataclasses import replace

import numpy as np
import pytest

from streamer.experiments.confidence import proven_epsilon
from streamer.monitors.counters import Counters
from streamer.monitors.seam import Holdings
from streamer.privacy.terms import Method, Neighbours
from streamer.stream import buffer
from streamer.stream.engine import Engine
from streamer.stream.events import EventDecoder
from streamer.stream.fate import FateRule
from streamer.stream.intake import Batch, Intake
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Recorder
from streamer.stream.timing import StepTiming

pytestmark = pytest.mark.slow

TIMING = StepTiming(length_ms=1000, epoch_ms=0, lateness_ms=500)
TERMS = Terms(
    epsilon=1.0,
    delta=0.05,
    contributions=1,
    neighbours=Neighbours.REPLACE,
    calibration=Method.EXACT,
    period_steps=60,
    refresh_steps=1,
    beta=0.5,
    items=10,
)
DOUBT = 1e-6
TRIALS = 1500
ROUNDS = 10


class World:
    """An engine that is fed with events and asked for what it publishes."""

    def __init__(self, rule=None):
        decoder = EventDecoder(TIMING)
        rule = rule or FateRule(TIMING, ahead_ms=60_000)
        pseudonyms = Pseudonyms(secrets.token_bytes(32))
        self.engine = Engine(Intake(decoder, rule, pseudonyms), TERMS)
        self.engine.start_at(0)
        self.offset = 0

    @property
    def threshold(self):
        return TERMS.plan().threshold

    def send(self, events):
        """Events (user, item, time), which arrive in this order at the times they name."""
        records = [b'{"user":"%b","item":"%b","time":%d}' % event for event in events]
        arrivals = np.array([min(t, TIMING.end(t // 1000) - 1) for _, _, t in events])
        offsets = np.arange(self.offset, self.offset + len(records))
        self.offset += len(records)
        closed = self.engine.closed
        self.engine.intake.receive(Batch("0", offsets, records, arrivals), closed, now=None)

    def publish(self, step):
        decided = self.engine.close_next(step)
        publication = Recorder(TIMING, step - 1).with_results(decided)
        return {record.item: record.estimate for record in publication.results}


def others_of(trials, step, number):
    """So many new people in every step for the item of each trial."""
    time = step * 1000 + 10
    return [
        (b"other-%d-%d-%d" % (step, trial, other), b"item-%d" % trial, time)
        for trial in trials
        for other in range(number)
    ]


def reports(present, events, rounds):
    """How often each trial's item is reported while its user takes part, or does not.

    The user sends so many events a step; that many others are missing at the threshold.
    """
    world = World()
    score = np.zeros(TRIALS)
    for step in range(rounds):
        world.send(others_of(range(TRIALS), step, world.threshold - events))
        if present:
            world.send(
                [
                    (b"target-%d" % trial, b"item-%d" % trial, step * 1000 + 20 + number)
                    for trial in range(TRIALS)
                    for number in range(events)
                ]
            )
        for item in world.publish(step):
            score[int(item.removeprefix("item-"))] += 1
    return score


def lost(events, rounds=ROUNDS):
    absent, present = (reports(here, events, rounds) for here in (False, True))
    return proven_epsilon(absent, present, TERMS.delta, DOUBT)


@pytest.mark.parametrize("events", [1, 20])
def test_no_behaviour_of_one_user_costs_more_than_was_promised(events):
    assert lost(events) <= TERMS.epsilon


def test_counting_every_event_of_a_user_breaks_the_promise(monkeypatch):
    def everything(self, items_per_step, only):
        """Every event counts as if a user of its own had sent it."""
        order = np.argsort(self._users[: self._size], kind="stable")
        users = self._users[order]
        first = np.searchsorted(users, users)
        apart = users + (np.arange(len(users)) - first).astype(np.uint64)
        return Holdings(apart, self._items[order].astype(np.int64), self._numbers)

    monkeypatch.setattr(buffer.StepBuffer, "holdings", everything)
    assert lost(events=20) > TERMS.epsilon


def test_never_charging_breaks_the_promise(monkeypatch):
    monkeypatch.setattr(Counters, "charge", lambda *_: None)
    assert lost(events=1, rounds=TERMS.period_steps // 2) > TERMS.epsilon


class Watermark(FateRule):
    """The usual rule, which is broken: the largest event time seen closes steps for all."""

    latest = 0

    def judge(self, times, arrivals, now):
        fates = super().judge(times, arrivals, now)
        seen = np.maximum.accumulate(np.maximum(times, Watermark.latest))
        Watermark.latest = int(seen[-1]) if len(seen) else Watermark.latest
        late = TIMING.epoch_ms + (fates.steps + 1) * TIMING.length_ms + TIMING.lateness_ms <= seen
        return replace(fates, late=late)


def reported_beside_a_fast_clock(rule, present):
    """One trial per engine: a user whose clock is fast sends first, the others after."""
    Watermark.latest = 0
    world = World(rule)
    if present:
        world.send([(b"target", b"elsewhere", 30_000)])
    world.send(others_of([0], 0, world.threshold + 40))
    return float("item-0" in world.publish(0))


def lost_by_a_fast_clock(rule, trials=200):
    absent, present = (
        np.array([reported_beside_a_fast_clock(rule, here) for _ in range(trials)])
        for here in (False, True)
    )
    return proven_epsilon(absent, present, TERMS.delta, DOUBT)


def test_a_users_fast_clock_changes_nothing_for_others():
    assert lost_by_a_fast_clock(FateRule(TIMING, 60_000)) <= TERMS.epsilon


def test_a_watermark_made_of_event_times_breaks_the_promise():
    assert lost_by_a_fast_clock(Watermark(TIMING, 60_000)) > TERMS.epsilon
