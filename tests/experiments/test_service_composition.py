"""The audit attacks what the service runs.

The audit plays against HeavyHitterMonitor, because it is fast enough for millions of games.
The service runs the Engine. Both are made of one Counting and one Deciding, asked in the same
order; here the same streams give the same decisions and charges, and the game is played
against the Engine itself.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.experiments.attacks import past_the_budget, weigh_answers
from streamer.experiments.audit import measure_noise, play
from streamer.experiments.game import Attack
from streamer.monitors.counting import Counting
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.perturbation import noise_of
from streamer.monitors.seam import Decision, Holdings, OwnNumbers, Tally
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Neighbours
from streamer.stream.engine import Engine
from tests.stream.making import feed, new_intake, pseudonym, terms

DOUBT = 1e-8
TRIALS = 40_000
NUMBERS = OwnNumbers()


class EngineMonitor:
    """The service's engine in the place of the monitor that a game is played against.

    It stands in for the intake, which hands over what users hold, and adds the adversary's
    other users to the counts that are asked about. All else is the engine.
    """

    open_steps = ()
    asks_unheld = False

    def __init__(self, agreed, noise=noise_of):
        self.plan = agreed.plan()
        self._noise = noise
        self._engine = Engine(self, agreed, asked_by=self._asked_by)
        self._engine.start_at(0)

    def _asked_by(self, plan, declared):
        self._questions = NoisyThreshold(plan, noise=self._noise(plan.calibration))
        return self

    # What the game calls.
    def count(self, step, users, items):
        order = np.argsort(users)
        self._held = Holdings(users[order], items[order], NUMBERS)
        nobody = np.empty(0, dtype=np.int64)
        return _Counted(Tally(step, nobody, nobody, NUMBERS))

    def decide(self, others):
        self._others = others
        decided = self._engine.close_next(others.step)
        return Decision.flat(
            decided.step,
            np.array([hitter.item for hitter in decided.hitters], dtype=np.int64),
            np.array([hitter.estimate for hitter in decided.hitters], dtype=np.int64),
        )

    def charge(self, counted, decision):
        """The engine has charged its users already."""

    # What the engine calls.
    def begin(self, step):
        """Every step is open: the game hands over one at a time."""

    def take(self, step):
        return self

    def __len__(self):
        return len(self._held.users)

    def holdings(self, items_per_step, only):
        return self._held

    def ask(self, tally, agenda):
        size = 1 + max(tally.items.max(initial=0), self._others.items.max(initial=0))
        holders = np.zeros(size, dtype=np.int64)
        for part in (tally, self._others):
            holders[part.items] += part.holders
        held = np.flatnonzero(holders)
        return self._questions.ask(replace(tally, items=held, holders=holders[held]), agenda)


class _Counted:
    def __init__(self, tally):
        self.tally = tally


def half_the_noise(calibration):
    return noise_of(replace(calibration, noise_scale=calibration.noise_scale / 2))


AGREED = {
    neighbours: terms(epsilon=1.0, contributions=1, period_steps=30, neighbours=neighbours)
    for neighbours in Neighbours
}
AT_THRESHOLD = partial(weigh_answers, distances=(1, 1))
PLAYED = [
    (Neighbours.ADD_REMOVE, AT_THRESHOLD),
    (Neighbours.REPLACE, AT_THRESHOLD),
]


# False alarms: at most 1e-8 a case.
@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "attack"), PLAYED)
def test_the_engine_withstands_the_attacks(neighbours, attack):
    found = play(Attack("", attack, TRIALS), lambda pace: EngineMonitor(AGREED[neighbours]), DOUBT)
    assert not found.broken
    assert found.delta_proven > 0.5 * found.delta_promised


@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "attack"), PLAYED)
def test_an_engine_with_half_the_noise_does_not(neighbours, attack):
    def start(pace):
        return EngineMonitor(AGREED[neighbours], half_the_noise)

    assert play(Attack("", attack, TRIALS), start, DOUBT).broken
    assert measure_noise(start, TRIALS, DOUBT).narrower


@pytest.mark.slow
def test_an_engine_that_charges_nobody_does_not(monkeypatch):
    nobody = np.empty(0, dtype=np.uint64)
    monkeypatch.setattr(Counting, "charge", lambda *_: nobody)
    agreed = AGREED[Neighbours.ADD_REMOVE]
    attack = Attack("", past_the_budget, TRIALS // 5)
    assert play(attack, lambda pace: EngineMonitor(agreed), DOUBT).broken


people = st.sets(st.integers(0, 40), min_size=1)
streams = st.lists(st.dictionaries(st.integers(0, 5), people, min_size=1), min_size=1, max_size=8)


@given(streams, st.integers(1, 3))
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_the_engine_and_the_audited_monitor_decide_and_charge_alike(stream, refresh):
    """Over period boundaries and resting items, given the same random bytes."""
    agreed = terms(period_steps=3, refresh_steps=refresh)
    plan = replace(agreed.plan(), threshold=3)

    def questions(source):
        return lambda *_: NoisyThreshold(plan, random_bytes=source)

    engine = Engine(new_intake(), agreed, asked_by=questions(SeededBytes(1)))
    engine.start_at(0)
    monitor = HeavyHitterMonitor(
        plan, agreed.pace(plan), deciding=Deciding(questions(SeededBytes(1)))
    )
    for step, holders in enumerate(stream):
        # Each user holds one item; items are numbered by the engine as they come.
        item_of = {user: item for item, users in sorted(holders.items()) for user in users}
        items = sorted(set(item_of.values()))
        feed(
            engine,
            *(
                (f"u{user}", f"i{item}", step)
                for item in items
                for user in item_of
                if item_of[user] == item
            ),
        )
        decided = engine.close_next(step)
        users = np.array([pseudonym(f"u{user}") for user in item_of], dtype=np.uint64)
        held = np.array(list(item_of.values()), dtype=np.int64)
        counted = monitor.count(step, users, held)
        decision = monitor.decide(counted.tally)
        charges = monitor.charge(counted, decision)
        assert [(int(hitter.item[1:]), hitter.estimate) for hitter in decided.hitters] == list(
            zip(decision.items.tolist(), decision.estimates.tolist(), strict=True)
        )
        assert decided.charges.users.tolist() == charges.users.tolist()
        assert decided.charges.units.tolist() == charges.units.tolist()
