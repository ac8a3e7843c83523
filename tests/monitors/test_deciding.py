"""Deciding: each step once, in order; what rests; and that it goes on from what is kept."""

from dataclasses import replace

import numpy as np
import pytest

from streamer.errors import MonitorError
from streamer.monitors.attention import Agenda, Pace, pace_of
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.seam import Hitter, Numbers, Tally
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.prices import FULL, LOUD
from streamer.privacy.terms import Attention, Method
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.scripted import NoNoise, ScriptedNoise

PLAN = Plan(Workload(100, 10, 0.05), calibrate(Guarantee(1.0, 0.01, 3)), threshold=2)


def truthful(plan, declared):
    return NoisyThreshold(plan, declared, noise=NoNoise())


def deciding(refresh=1, plan=PLAN):
    made = Deciding(truthful)
    made.begin(plan, Pace(refresh_steps=refresh))
    return made


def tally(step, **holders):
    numbers = Numbers()
    items = np.array([numbers[name] for name in holders], dtype=np.int64)
    return Tally(step, items, np.array(list(holders.values()), dtype=np.int64), numbers)


def reported(decider, step, **holders):
    counted = tally(step, **holders)
    decision = decider.decide(counted)
    assert decision.step == step
    return dict(
        zip(counted.numbers.names(decision.items), decision.estimates.tolist(), strict=True)
    )


def test_what_reaches_the_threshold_is_reported():
    assert reported(deciding(), 0, a=3, b=1, c=2) == {"a": 3, "c": 2}


def test_nothing_is_decided_before_a_period_has_begun():
    with pytest.raises(MonitorError, match="no budget period has begun"):
        Deciding(truthful).decide(tally(0, a=5))


@pytest.mark.parametrize("again", [5, 4, -1])
def test_no_step_is_decided_twice(again):
    decider = deciding()
    reported(decider, 5, a=3)
    with pytest.raises(MonitorError, match="no step is decided twice"):
        decider.decide(tally(again, a=3))
    assert reported(decider, 6, a=3) == {"a": 3}


def test_a_step_whose_decision_failed_is_not_decided_again():
    class Fails:
        def ask(self, tally, agenda):
            raise OSError("no randomness")

    decider = Deciding(lambda *_: Fails())
    decider.begin(PLAN, Pace())
    with pytest.raises(OSError, match="no randomness"):
        decider.decide(tally(5, a=3))
    with pytest.raises(MonitorError, match="no step is decided twice"):
        decider.decide(tally(5, a=3))


def test_items_rest_by_name_whatever_their_number():
    decider = deciding(refresh=3)
    assert reported(decider, 0, a=3, b=1) == {"a": 3}
    assert reported(decider, 1, b=4, a=3) == {"b": 4}
    assert reported(decider, 2, b=4, a=3, c=2) == {"c": 2}
    assert reported(decider, 3, c=2, a=3, b=4) == {"a": 3}


def test_items_rest_on_in_a_new_period():
    decider = deciding(refresh=3)
    reported(decider, 99, a=3)
    decider.begin(PLAN, Pace())
    assert reported(decider, 100, a=3) == {}
    assert reported(decider, 102, a=3) == {"a": 3}


def test_it_goes_on_after_what_is_restored():
    decider = deciding(refresh=3)
    decider.restore(7, [(6, Pace(refresh_steps=3), [Hitter("a", 3)])])
    with pytest.raises(MonitorError, match="no step is decided twice"):
        decider.decide(tally(7, a=3))
    assert reported(decider, 8, a=3, b=2) == {"b": 2}
    assert reported(decider, 9, a=3) == {"a": 3}


def test_each_period_is_asked_with_its_own_plan():
    decider = deciding()
    higher = Plan(PLAN.workload, PLAN.calibration, threshold=4)
    assert reported(decider, 0, a=3) == {"a": 3}
    decider.begin(higher, Pace())
    assert reported(decider, 1, a=3, b=4) == {"b": 4}


# σ is about 5: reports of 25 and more are loud.
WATCHFUL = Plan(
    Workload(100, 10, 0.05, declared=2),
    calibrate(Guarantee(10.0, 0.01, 3), Method.HORIZON, 0.0, 100, Attention.CHANGES),
    threshold=20,
    exit_threshold=10,
    declared_threshold=15,
    declared_exit_threshold=5,
    value_every_steps=4,
)


class TestPublicItems:
    """Questions about public items: what they are asked, at which threshold, and what it costs."""

    def ask(self, agenda, declared=(), noise=None, **holders):
        questions = NoisyThreshold(WATCHFUL, declared, noise=noise or NoNoise())
        counted = tally(0, **holders)
        decision = questions.ask(counted, agenda)
        names = counted.numbers.names
        reported = zip(names(decision.items), decision.estimates.tolist(), strict=True)
        return dict(reported), names(decision.gone), decision

    def test_what_is_below_the_exit_threshold_is_gone(self):
        agenda = Agenda(checks=["a", "b", "c"])
        assert self.ask(agenda, a=10, b=9, c=200)[:2] == ({}, ["b"])

    def test_still_there_has_no_value_however_many_hold_it(self):
        reported, gone, decision = self.ask(Agenda(checks=["a"]), a=500)
        assert (reported, gone, len(decision.prices)) == ({}, [], 0)

    def test_a_public_item_that_nobody_holds_is_asked_about(self):
        assert self.ask(Agenda(checks=["a", "b"]), b=11)[:2] == ({}, ["a"])

    def test_a_value_question_is_answered_at_the_threshold_and_says_nothing_below(self):
        agenda = Agenda(values=["a", "b", "c"])
        assert self.ask(agenda, a=20, b=19)[:2] == ({"a": 20}, [])

    def test_values_of_public_and_of_quiet_items_come_in_one_order_with_their_prices(self):
        loud = 20 + WATCHFUL.loud_excess
        reported, _, decision = self.ask(
            Agenda(values=["b"], checks=["d"]), a=20, b=loud, c=21, d=90
        )
        assert reported == {"a": 20, "b": loud, "c": 21}
        assert decision.items.tolist() == sorted(decision.items.tolist())
        assert decision.prices.tolist() == [FULL, LOUD, FULL]

    def test_declared_items_have_thresholds_of_their_own(self):
        declared = ["x", "y"]
        assert self.ask(Agenda(values=["x", "y"]), declared, x=15, y=14)[0] == {"x": 15}
        assert self.ask(Agenda(checks=["x", "y"]), declared, x=5, y=4)[1] == ["y"]

    def test_each_question_has_noise_of_its_own(self):
        noise = ScriptedNoise([7, -1, 0, 3, -6])
        agenda = Agenda(values=["v"], checks=["c", "d"])
        reported, gone, _ = self.ask(agenda, noise=noise, a=13, b=20, v=20, c=7, d=15)
        assert reported == {"a": 20, "v": 20}
        assert gone == ["d"]

    @pytest.mark.parametrize("agenda", [Agenda(values=["x"]), Agenda(checks=["x"])])
    def test_a_public_declared_item_is_asked_about_once(self, agenda):
        """Not a second time among the declared items that nobody holds."""
        plan = replace(WATCHFUL, declared_threshold=1, declared_exit_threshold=-(10**6))
        questions = NoisyThreshold(plan, ["x"], noise=NoNoise())
        # Pr[Z >= 1] is near a half: 200 times without a report is no coincidence.
        for _ in range(200):
            assert not len(questions.ask(tally(0), agenda).items)


def test_new_ongoing_gone_and_back():
    decider = Deciding(truthful)
    decider.begin(WATCHFUL, pace_of(WATCHFUL))
    held = [30, 40, 15, 18, 9, 19, 20]
    states = []
    for step, number in enumerate(held):
        decider.decide(tally(step, a=number))
        states.append(
            [(each.state.value, each.estimate, each.valued_at) for each in decider.public]
        )
    assert states == [
        [("new", 30, 0)],
        [("ongoing", 40, 1)],
        [("ongoing", None, 1)],
        # Asked for its value, which is below the threshold: no news.
        [("ongoing", None, 1)],
        [("gone", None, 1)],
        [],
        [("back", 20, 6)],
    ]


def test_public_items_stay_public_in_a_new_period():
    decider = Deciding(truthful)
    decider.begin(WATCHFUL, pace_of(WATCHFUL))
    decider.decide(tally(99, a=30))
    decider.begin(replace(WATCHFUL, threshold=50), pace_of(WATCHFUL))
    decider.decide(tally(100, a=12))
    assert [(each.item, each.state.value, each.since) for each in decider.public] == [
        ("a", "ongoing", 99)
    ]


def test_another_rule_begins_without_public_items():
    decider = Deciding(truthful)
    decider.begin(WATCHFUL, pace_of(WATCHFUL))
    decider.decide(tally(0, a=30))
    decider.begin(WATCHFUL, Pace())
    assert not decider.asks_unheld
    assert reported(decider, 1, a=25) == {"a": 25}


def test_with_public_items_a_step_that_nobody_sends_is_asked_about():
    decider = Deciding(truthful)
    decider.begin(replace(WATCHFUL, workload=Workload(100, 10, 0.05)), pace_of(WATCHFUL))
    assert not decider.asks_unheld
    decider.decide(tally(0, a=30))
    assert decider.asks_unheld


def test_a_plan_without_the_question_is_refused():
    with pytest.raises(MonitorError, match="does not cover the question"):
        Deciding(truthful).begin(PLAN, Pace(Attention.CHANGES))
