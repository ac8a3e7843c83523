"""Attacks on public items, and what they find out: each twin breaks one rule of attention."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from streamer.experiments.audit import play
from streamer.experiments.game import Attack, Game
from streamer.experiments.public_attacks import (
    attacks_on_public_items,
    values_out_of_turn,
    weigh_both_kinds,
)
from streamer.monitors.attention import Pace, pace_of
from streamer.monitors.counting import Counting
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import Workload, plan
from tests.monitors.scripted import NoNoise

DOUBT, TRIALS, STEPS = 1e-8, 1_000, 50

pytestmark = pytest.mark.slow


@cache
def planned(neighbours=Neighbours.REPLACE):
    """Little noise, because a free value tells the more."""
    return plan(Guarantee(4.0, 0.01, 1, neighbours), Workload(STEPS, 1000, 0.05))


def pace(trials=TRIALS):
    return replace(pace_of(planned()), most_public=2 * trials)


def found(attack, counting=Counting, questions=NoisyThreshold, neighbours=Neighbours.REPLACE):
    def start(pace):
        parts = {"counting": counting(), "deciding": Deciding(questions)}
        return HeavyHitterMonitor(planned(neighbours), pace, **parts)

    return play(Attack("", attack, TRIALS, pace()), start, DOUBT)


FAR = round(8 * planned().calibration.noise_scale)
"""So far above, public items are never gone."""
READING = partial(weigh_both_kinds, distances=(FAR, FAR), rounds=STEPS)
ON_THE_EDGE = partial(weigh_both_kinds, distances=(3, 3), rounds=STEPS)
ATTACKS = {
    "reading": READING,
    "on the edge": ON_THE_EDGE,
    "past the budget": partial(ON_THE_EDGE, past=True),
    "out of turn": values_out_of_turn,
}


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_product_withstands_them(attack, neighbours):
    assert not found(attack, neighbours=neighbours).broken


class StillThereWithAValue(NoisyThreshold):
    """What is still there shows its noisy count, for free."""

    def ask(self, tally, agenda):
        decision = super().ask(tally, agenda)
        numbers = np.array(agenda.checks, dtype=np.int64)
        numbers = numbers[~np.isin(numbers, decision.gone)]
        counts = dict(zip(tally.items.tolist(), tally.holders.tolist(), strict=True))
        held = np.array([counts.get(number, 0) for number in numbers.tolist()], dtype=np.int64)
        items = np.concatenate((decision.items, numbers))
        order = np.argsort(items)
        estimates = np.concatenate((decision.estimates, held + self._noise.draw(len(held))))
        prices = np.concatenate((decision.prices, np.zeros(len(held), dtype=np.uint16)))
        return replace(
            decision, items=items[order], estimates=estimates[order], prices=prices[order]
        )


class GoneChargesNobody(Counting):
    def charge(self, counted, decision):
        return super().charge(counted, replace(decision, gone=decision.gone[:0]))


class ValueOnAChange(NoisyThreshold):
    """A public item is asked for its value when its count has changed."""

    last = None

    def ask(self, tally, agenda):
        counts = dict(zip(tally.items.tolist(), tally.holders.tolist(), strict=True))
        before, self.last = self.last or counts, counts
        changed = [item for item in agenda.checks if counts.get(item) != before.get(item)]
        checks = [item for item in agenda.checks if item not in set(changed)]
        return super().ask(tally, replace(agenda, values=[*agenda.values, *changed], checks=checks))


@pytest.mark.parametrize(
    ("attack", "twin"),
    [
        ("reading", {"questions": StillThereWithAValue}),
        ("out of turn", {"questions": ValueOnAChange}),
    ],
    ids=["still there with a value", "schedule by raw counts"],
)
def test_each_finds_out_its_twin(attack, twin):
    assert found(ATTACKS[attack], **twin).broken


def gone_with(counting, contributions=3):
    """How often a user counts when an item is gone, who holds one in every such step."""
    guarantee = Guarantee(4.0, 0.01, contributions)
    plan_ = plan(guarantee, Workload(STEPS, 1000, 0.05))
    truthful = Deciding(partial(NoisyThreshold, noise=NoNoise()))
    monitor = HeavyHitterMonitor(plan_, counting=counting(), deciding=truthful)
    user, item = np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.int64)
    times = 0
    for step in range(STEPS - 1):
        # It becomes public, is asked for its value, and then whether it is still there.
        is_check = [each.since for each in monitor.public] == [step - 2]
        counted = monitor.count(step, user[:is_check], item[:is_check])
        holders = counted.tally.holders.sum()
        holders += plan_.exit_threshold - 2 if is_check else plan_.threshold
        tally = replace(counted.tally, items=item, holders=np.array([holders]))
        decision = monitor.decide(tally)
        monitor.charge(counted, decision)
        times += bool(len(decision.gone) and counted.active.any())
    return times


def test_a_user_counts_for_as_much_that_is_gone_as_it_can_pay():
    assert gone_with(Counting) == 3
    assert gone_with(GoneChargesNobody) > 10


@pytest.mark.parametrize("world", [0, 1])
def test_without_noise_the_score_says_which_world_it_is(world):
    """One user more or less on the edge: "still there" in one world, "gone" in the other."""
    truthful = Deciding(partial(NoisyThreshold, noise=NoNoise()))
    game = Game(HeavyHitterMonitor(planned(), pace(20), deciding=truthful), 20)
    # With one of the others less than the exit threshold, the user decides.
    scores = weigh_both_kinds(game, world, distances=(-1, -1), rounds=3)
    assert (scores > 0).all() == bool(world)
    assert (scores < 0).all() != bool(world)


def test_there_is_room_for_the_items_of_all_trials():
    for attack in attacks_on_public_items(planned(), (3, 3), TRIALS, STEPS):
        assert attack.pace == Pace(
            planned().attention,
            value_every_steps=planned().value_every_steps,
            most_public=2 * TRIALS,
        )
