"""Deciding: each step once, in order; what rests; and that it goes on from what is kept."""

import numpy as np
import pytest

from streamer.errors import MonitorError
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.seam import Numbers, Tally
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.scripted import NoNoise

PLAN = Plan(Workload(100, 10, 0.05), calibrate(Guarantee(1.0, 0.01, 3)), threshold=2)


def truthful(plan, declared):
    return NoisyThreshold(plan, declared, noise=NoNoise())


def deciding(refresh=1, plan=PLAN):
    made = Deciding(truthful)
    made.begin(plan, refresh)
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
        def ask(self, tally, resting):
            raise OSError("no randomness")

    decider = Deciding(lambda *_: Fails())
    decider.begin(PLAN)
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
    decider.begin(PLAN, refresh_steps=1)
    assert reported(decider, 100, a=3) == {}
    assert reported(decider, 102, a=3) == {"a": 3}


def test_it_goes_on_after_what_is_restored():
    decider = deciding(refresh=3)
    decider.restore(7, {"a": 9})
    with pytest.raises(MonitorError, match="no step is decided twice"):
        decider.decide(tally(7, a=3))
    assert reported(decider, 8, a=3, b=2) == {"b": 2}
    assert reported(decider, 9, a=3) == {"a": 3}


def test_each_period_is_asked_with_its_own_plan():
    decider = deciding()
    higher = Plan(PLAN.workload, PLAN.calibration, threshold=4)
    assert reported(decider, 0, a=3) == {"a": 3}
    decider.begin(higher)
    assert reported(decider, 1, a=3, b=4) == {"b": 4}
