"""Shifting heavy hitters as the paper writes it, compared with its vectorised form."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import MonitorError
from streamer.monitors.attention import Pace
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import Decision
from streamer.monitors.shifting import Hitter, ShiftingHeavyHitters
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.prices import FULL
from streamer.privacy.terms import Attention, Domain, Method
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.chance import differ
from tests.monitors.scripted import NoNoise, ScriptedNoise

repeatable = settings(max_examples=150, deadline=None, derandomize=True, database=None)
USERS, ITEMS, STEPS = 8, 5, 6
LOUD = 100
"""Noise with which every report is loud."""


def planned(contributions=1, threshold=2, domain=Domain.OPEN, items=3, steps=100):
    """A plan with a threshold by hand, so low that everything happens."""
    calibration = calibrate(Guarantee(1.0, 0.01, contributions))
    return Plan(Workload(steps, items, 0.05, domain), calibration, threshold)


def found(hitters):
    return [hitter.item for hitter in hitters]


def test_an_item_held_by_as_many_as_the_threshold_is_a_hitter():
    monitor = ShiftingHeavyHitters(4, planned(), noise=NoNoise())
    assert monitor.observe(["a", "b", "b", "c"]) == [Hitter("b", 2)]


def test_users_who_hold_nothing_count_for_nothing():
    monitor = ShiftingHeavyHitters(4, planned(), noise=NoNoise())
    assert monitor.observe([None, None, None, "a"]) == []


def test_holders_of_a_hitter_are_charged_and_nobody_else():
    monitor = ShiftingHeavyHitters(4, planned(), noise=NoNoise())
    monitor.observe(["a", "b", "b", None])
    assert monitor.monitor.charges.tolist() == [0, 1, 1, 0]


def test_in_an_open_domain_only_items_with_an_active_holder_are_asked_about():
    noise = ScriptedNoise([0, 0, 0, 0])
    monitor = ShiftingHeavyHitters(4, planned(), noise=noise)
    monitor.observe(["a", "b", "b", None])
    assert len(noise.calls) == 2
    monitor.observe(["a", "b", "b", "c"])
    assert len(noise.calls) == 4


def test_items_need_no_order_among_themselves():
    monitor = ShiftingHeavyHitters(4, planned(), noise=NoNoise())
    assert set(found(monitor.observe(["a", 1, 1, "a"]))) == {1, "a"}


def test_in_a_declared_domain_every_item_is_asked_about():
    noise = ScriptedNoise([0, 0, 9])
    plan = planned(domain=Domain.DECLARED, threshold=3)
    monitor = ShiftingHeavyHitters(2, plan, domain=["a", "b", "c"], noise=noise)
    assert monitor.observe(["a", "a"]) == [Hitter("c", 9)]


def test_items_outside_a_declared_domain_are_no_items():
    plan = planned(domain=Domain.DECLARED)
    monitor = ShiftingHeavyHitters(2, plan, domain=["a", "b", "c"], noise=NoNoise())
    assert monitor.observe(["x", "x"]) == []


@pytest.mark.parametrize("refresh", [1, 2, 4])
def test_a_hitter_is_asked_about_again_after_r_steps_and_not_before(refresh):
    plan = planned(contributions=100)
    monitor = ShiftingHeavyHitters(2, plan, refresh=refresh, noise=NoNoise())
    reported = [step for step in range(9) if monitor.observe(["a", "a"])]
    assert reported == list(range(0, 9, refresh))


def test_it_covers_one_budget_period_and_refuses_the_step_after():
    monitor = ShiftingHeavyHitters(1, planned(steps=2), noise=NoNoise())
    monitor.observe(["a"])
    monitor.observe(["a"])
    with pytest.raises(MonitorError, match="period is over"):
        monitor.observe(["a"])


@pytest.mark.parametrize(("planned_as", "domain"), [("open", ["a", "b", "c"]), ("declared", None)])
def test_a_plan_for_the_other_kind_of_domain_is_refused(planned_as, domain):
    with pytest.raises(MonitorError, match="disagree on whether the domain is declared"):
        ShiftingHeavyHitters(1, planned(domain=Domain(planned_as)), domain=domain)


def test_a_domain_of_another_size_than_planned_is_refused():
    with pytest.raises(MonitorError, match="has 2 items, the plan is for 3"):
        ShiftingHeavyHitters(1, planned(domain=Domain.DECLARED), domain=["a", "b"])


@pytest.mark.parametrize("domain", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("held", [["a"], ["a", "a", "a"]])
def test_data_of_another_number_of_users_are_refused(domain, held):
    plan = planned(domain=Domain.OPEN if domain is None else Domain.DECLARED)
    with pytest.raises((MonitorError, ValueError)):
        ShiftingHeavyHitters(2, plan, domain).observe(held)


@pytest.mark.slow
@repeatable
@given(
    data=st.lists(
        st.lists(st.none() | st.integers(0, ITEMS - 1), min_size=USERS, max_size=USERS),
        min_size=1,
        max_size=STEPS,
    ),
    noise=st.lists(
        st.integers(-2, 3) | st.just(LOUD), min_size=ITEMS * STEPS, max_size=ITEMS * STEPS
    ),
    contributions=st.integers(1, 3),
    threshold=st.integers(1, 4),
    refresh=st.integers(1, 3),
    horizon=st.booleans(),
)
def test_the_vectorised_form_gives_the_same_from_the_same_noise(
    data, noise, contributions, threshold, refresh, horizon
):
    plan = planned(contributions, threshold)
    if horizon:
        guarantee = plan.guarantee
        calibration = calibrate(
            guarantee, Method.HORIZON, questions=STEPS, attention=Attention.CHANGES
        )
        assert calibration.loud_excess + 4 < LOUD
        plan = replace(plan, calibration=calibration)
    scripts = ScriptedNoise(noise), ScriptedNoise(noise)
    reference = ShiftingHeavyHitters(USERS, plan, refresh=refresh, noise=scripts[0])
    vectorised = HeavyHitterMonitor(
        plan,
        Pace(refresh_steps=refresh),
        deciding=Deciding(partial(NoisyThreshold, noise=scripts[1])),
    )
    everyone = np.arange(USERS, dtype=np.uint64)
    for step, held in enumerate(data):
        holding = np.array([item is not None for item in held])
        items = np.array([item for item in held if item is not None], dtype=np.int64)
        hitters = reference.observe(held)
        decision = vectorised.observe(step, everyone[holding], items)
        assert decision.items.tolist() == found(hitters)
        assert decision.estimates.tolist() == [hitter.estimate for hitter in hitters]
        units = vectorised.counters.units(everyone)
        assert units.tolist() == np.rint(FULL * reference.monitor.charges).tolist()
        assert sum(scripts[0].calls) == sum(scripts[1].calls)


class ForgetsUnheldItems(NoisyThreshold):
    """Reports only items that somebody holds, as in an open domain."""

    def ask(self, tally, agenda):
        decision = super().ask(tally, agenda)
        held = np.isin(decision.items, tally.items)
        return Decision.flat(decision.step, decision.items[held], decision.estimates[held])


RUNS = 2000
HELD = [["a", "a", "b"], ["a", None, "b"], ["b", "b", "b"]]


@pytest.fixture(scope="module")
def reference_reports():
    """How often each item was reported in each step, over many runs."""
    plan = planned(domain=Domain.DECLARED, threshold=3)
    reports = np.zeros((len(HELD), 3), dtype=int)
    for _ in range(RUNS):
        monitor = ShiftingHeavyHitters(3, plan, domain="abc", refresh=2)
        for step, held in enumerate(HELD):
            reports[step, ["abc".index(item) for item in found(monitor.observe(held))]] += 1
    return reports


def reports_of_the_vectorised_form(plan, questions):
    reports = np.zeros((len(HELD), 3), dtype=int)
    for _ in range(RUNS):
        monitor = HeavyHitterMonitor(
            plan, Pace(refresh_steps=2), deciding=Deciding(lambda *_: questions)
        )
        for step, held in enumerate(HELD):
            holders = np.array([user for user, item in enumerate(held) if item], dtype=np.uint64)
            items = np.array(["abc".index(item) for item in held if item])
            reports[step, monitor.observe(step, holders, items).items] += 1
    return reports


def other_law(first, second):
    """False alarms: below one in a billion."""
    pairs = zip(first.flat, second.flat, strict=True)
    return any(differ(int(one), int(other), RUNS, checks=9) for one, other in pairs)


@pytest.mark.slow
def test_in_a_declared_domain_both_forms_report_with_the_same_probabilities(reference_reports):
    plan = planned(domain=Domain.DECLARED, threshold=3)
    vectorised = reports_of_the_vectorised_form(plan, NoisyThreshold(plan, range(3)))
    assert not other_law(reference_reports, vectorised)


@pytest.mark.slow
def test_a_vectorised_form_without_the_unheld_items_is_noticed(reference_reports):
    plan = planned(domain=Domain.DECLARED, threshold=3)
    vectorised = reports_of_the_vectorised_form(plan, ForgetsUnheldItems(plan, range(3)))
    assert other_law(reference_reports, vectorised)
