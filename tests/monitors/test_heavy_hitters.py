"""The monitor that the service runs: counting, deciding, charging, periods and domains."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamer.errors import MonitorError
from streamer.monitors.attention import Agenda, Pace
from streamer.monitors.counters import Charges
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.perturbation import noise_of
from streamer.monitors.seam import Decision, OwnNumbers, Tally
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.prices import FULL
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Domain, Method, Noise
from streamer.privacy.threshold import Plan, Workload
from tests.monitors.chance import implausible_law
from tests.monitors.laws import at_least, monitor_noise
from tests.monitors.scripted import NoNoise, ScriptedNoise

repeatable = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def planned(
    contributions=1, threshold=2, period=100, domain=Domain.OPEN, items=10, items_per_step=1
):
    """A plan with a threshold by hand, so low that everything happens."""
    calibration = calibrate(Guarantee(1.0, 0.01, contributions))
    workload = Workload(period, items, 0.05, domain, items_per_step=items_per_step)
    return Plan(workload, calibration, threshold)


def with_noise(plan, noise, refresh=1):
    deciding = Deciding(partial(NoisyThreshold, noise=noise))
    return HeavyHitterMonitor(plan, Pace(refresh_steps=refresh), deciding=deciding)


def truthful(plan, refresh=1):
    return with_noise(plan, NoNoise(), refresh)


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def items(*numbers):
    return np.array(numbers, dtype=np.int64)


def tally(held, holders, step=0):
    return Tally(step, held, holders, OwnNumbers())


def reported(decision):
    return dict(zip(decision.items.tolist(), decision.estimates.tolist(), strict=True))


class TestOneStep:
    def test_items_held_by_as_many_as_the_threshold_are_reported_with_their_counts(self):
        monitor = truthful(planned(threshold=2))
        decision = monitor.observe(0, users(1, 2, 3, 4, 5, 6), items(7, 7, 3, 5, 5, 5))
        assert reported(decision) == {5: 3, 7: 2}

    def test_items_are_reported_in_rising_order(self):
        decision = truthful(planned(threshold=1)).observe(0, users(1, 2, 3), items(9, 4, 6))
        assert decision.items.tolist() == [4, 6, 9]

    def test_the_estimate_is_the_noisy_count(self):
        plan = planned(threshold=2)
        monitor = with_noise(plan, ScriptedNoise([1, -1]))
        decision = monitor.observe(0, users(1, 2, 3, 4), items(0, 1, 1, 1))
        assert reported(decision) == {0: 2, 1: 2}

    def test_a_noisy_count_just_below_the_threshold_is_not_reported(self):
        plan = planned(threshold=2)
        monitor = with_noise(plan, ScriptedNoise([-1]))
        assert reported(monitor.observe(0, users(1, 2), items(0, 0))) == {}

    def test_users_may_come_in_any_order(self):
        monitor = truthful(planned(threshold=2))
        assert reported(monitor.observe(0, users(9, 1, 5), items(3, 4, 3))) == {3: 2}
        assert monitor.counters.units(users(1, 5, 9)).tolist() == [0, FULL, FULL]

    def test_a_step_without_users_reports_nothing(self):
        assert reported(truthful(planned()).observe(0, users(), items())) == {}

    def test_no_noise_is_drawn_twice_and_none_spared(self):
        noise = ScriptedNoise([0] * 8)
        plan = planned(threshold=9)
        monitor = with_noise(plan, noise)
        monitor.observe(0, users(1, 2, 3, 4), items(0, 1, 2, 2))
        monitor.observe(1, users(1, 2, 3, 4), items(0, 0, 0, 0))
        monitor.observe(2, users(1, 2, 3, 4), items(6, 7, 8, 9))
        assert noise.calls == [3, 1, 4]

    def test_two_steps_get_different_noise(self):
        plan = planned(threshold=-1000)
        monitor = HeavyHitterMonitor(plan)
        everyone = np.arange(100, dtype=np.uint64)
        first = monitor.observe(0, everyone, np.arange(100))
        second = monitor.observe(1, everyone + np.uint64(100), np.arange(100))
        # With a scale above 4, 100 pairs of fresh draws all agree with probability < 1e-60.
        assert first.estimates.tolist() != second.estimates.tolist()


class TestCounting:
    def test_only_active_users_count(self):
        monitor = truthful(planned())
        monitor.counters.charge(Charges.full(users(2)))
        tally = monitor.count(0, users(1, 2, 3), items(5, 5, 4)).tally
        assert (tally.items.tolist(), tally.holders.tolist()) == ([4, 5], [1, 1])

    def test_an_item_whose_holders_are_all_exhausted_is_not_in_the_tally(self):
        monitor = truthful(planned())
        monitor.counters.charge(Charges.full(users(1, 2)))
        assert monitor.count(0, users(1, 2), items(5, 5)).tally.items.tolist() == []

    def test_a_user_who_comes_twice_in_a_step_is_refused_in_any_order(self):
        with pytest.raises(MonitorError, match="more than 1 items"):
            truthful(planned()).observe(0, users(5, 1, 5), items(0, 1, 2))

    def test_several_items_of_a_user_count_if_the_plan_says_so(self):
        monitor = truthful(planned(contributions=3, items_per_step=2))
        decision = monitor.observe(0, users(5, 1, 5), items(0, 1, 1))
        assert reported(decision) == {1: 2}
        assert monitor.counters.units(users(1, 5)).tolist() == [FULL, FULL]

    def test_of_more_items_than_the_budget_pays_for_the_first_ones_count(self):
        monitor = truthful(planned(contributions=1, items_per_step=2))
        tally = monitor.count(0, users(5, 1, 5, 1), items(7, 3, 8, 2)).tally
        assert (tally.items.tolist(), tally.holders.tolist()) == ([3, 7], [1, 1])


class TestCharging:
    def test_holders_of_reported_items_are_charged_and_returned(self):
        monitor = truthful(planned())
        counted = monitor.count(0, users(1, 2, 3, 4), items(5, 6, 5, 7))
        charged = monitor.charge(counted, Decision.flat(0, items(5), items(2)))
        assert (charged.users.tolist(), charged.units.tolist()) == ([1, 3], [FULL, FULL])
        assert monitor.counters.units(users(1, 2, 3, 4)).tolist() == [FULL, 0, FULL, 0]

    def test_exhausted_holders_are_not_charged_again(self):
        monitor = truthful(planned(contributions=1))
        monitor.counters.charge(Charges.full(users(1)))
        counted = monitor.count(0, users(1, 3), items(5, 5))
        charged = monitor.charge(counted, Decision.flat(0, items(5), items(2)))
        assert charged.users.tolist() == [3]
        assert monitor.counters.units(users(1, 3)).tolist() == [FULL, FULL]


class TestSteps:
    @pytest.mark.parametrize("again", [7, 6, 0])
    def test_a_decided_step_is_never_decided_again(self, again):
        monitor = truthful(planned(contributions=9))
        monitor.observe(7, users(1, 2), items(0, 0))
        with pytest.raises(MonitorError, match="no step is decided twice"):
            monitor.observe(again, users(1, 2), items(0, 0))
        assert monitor.counters.units(users(1, 2)).tolist() == [FULL, FULL]

    @pytest.mark.parametrize("again", [-1, -500])
    def test_a_period_that_is_over_does_not_begin_again(self, again):
        monitor = truthful(planned())
        monitor.observe(7, users(1, 2), items(0, 0))
        with pytest.raises(MonitorError, match="no step is decided twice"):
            monitor.observe(again, users(1, 2), items(0, 0))
        assert monitor.counters.exhausted == 2

    def test_steps_may_be_skipped(self):
        monitor = truthful(planned())
        monitor.observe(3, users(), items())
        assert reported(monitor.observe(50, users(1, 2), items(0, 0))) == {0: 2}

    def test_no_tally_is_decided_twice(self):
        monitor = truthful(planned())
        counted = monitor.count(0, users(1, 2), items(0, 0))
        monitor.decide(counted.tally)
        with pytest.raises(MonitorError, match="no step is decided twice"):
            monitor.decide(counted.tally)

    @pytest.mark.parametrize(("first", "second"), [(0, 9), (10, 19), (-10, -1)])
    def test_counters_last_for_all_of_a_period(self, first, second):
        monitor = truthful(planned(period=10))
        monitor.observe(first, users(1, 2), items(0, 0))
        monitor.count(second, users(), items())
        assert monitor.counters.exhausted == 2

    @pytest.mark.parametrize(("first", "second"), [(9, 10), (0, 19), (19, 20), (-1, 0)])
    def test_counters_start_anew_with_the_first_step_of_a_period(self, first, second):
        monitor = truthful(planned(period=10))
        monitor.observe(first, users(1, 2), items(0, 0))
        monitor.count(second, users(), items())
        assert monitor.counters.charged == 0


class TestRefresh:
    @pytest.mark.parametrize("refresh", [1, 2, 4])
    def test_a_reported_item_is_asked_again_after_r_steps_and_not_before(self, refresh):
        monitor = truthful(planned(contributions=100), refresh)
        decisions = [monitor.observe(step, users(1, 2), items(3, 3)) for step in range(9)]
        found = [step for step, decision in enumerate(decisions) if reported(decision)]
        assert found == list(range(0, 9, refresh))

    def test_no_noise_is_drawn_for_an_item_that_rests(self):
        noise = ScriptedNoise([0] * 3)
        plan = planned(threshold=2)
        monitor = with_noise(plan, noise, refresh=5)
        monitor.observe(0, users(1, 2, 3), items(0, 0, 1))
        monitor.observe(1, users(4, 5, 6), items(0, 0, 1))
        assert noise.calls == [2, 1]

    def test_holders_of_an_item_that_rests_are_not_charged(self):
        monitor = truthful(planned(threshold=2), refresh=5)
        monitor.observe(0, users(1, 2), items(0, 0))
        monitor.observe(1, users(3, 4), items(0, 0))
        assert monitor.counters.units(users(3, 4)).tolist() == [0, 0]


class AgainstDictionaries(RuleBasedStateMachine):
    """Whatever the data and the noise, against a monitor made of dictionaries."""

    USERS, ITEMS, PERIOD, THRESHOLD = 6, 4, 5, 2

    @initialize(contributions=st.integers(1, 3), refresh=st.integers(1, 3), most=st.integers(1, 3))
    def start(self, contributions, refresh, most):
        plan = planned(contributions, self.THRESHOLD, self.PERIOD, items_per_step=most)
        self.noise = ScriptedNoise()
        self.monitor = with_noise(plan, self.noise, refresh)
        self.limit, self.refresh, self.most = contributions, refresh, most
        self.step = None
        self.charges = Counter()
        self.last_report = {}

    @rule(
        ahead=st.integers(1, 7),
        wishes=st.lists(
            st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1)), unique=True
        ),
        noise=st.lists(st.integers(-2, 2), min_size=ITEMS, max_size=ITEMS),
    )
    def observe(self, ahead, wishes, noise):
        """Users come in any order, but the items of each are the latest first."""
        self.go_to((self.step or 0) + ahead)
        held, active, number = [], [], Counter()
        for user, item in wishes:
            if number[user] < self.most:
                held.append((user, item))
            if number[user] < min(self.most, self.limit - self.charges[user]):
                active.append((user, item))
            number[user] += 1
        holders = Counter(item for _, item in active)
        asked = sorted(item for item in holders if not self.rests(item))
        estimates = {item: holders[item] + z for item, z in zip(asked, noise, strict=False)}
        expected = {item: e for item, e in estimates.items() if e >= self.THRESHOLD}

        self.noise.rewrite(noise)
        who, what = users(*(user for user, _ in held)), items(*(item for _, item in held))
        decision = self.monitor.observe(self.step, who, what)

        assert reported(decision) == expected
        assert self.noise.calls[-1] == len(asked)
        self.charges.update(user for user, item in active if item in expected)
        self.last_report.update(dict.fromkeys(expected, self.step))

    def go_to(self, step):
        if self.step is not None and self.step // self.PERIOD != step // self.PERIOD:
            self.charges.clear()
        self.step = step

    def rests(self, item):
        return item in self.last_report and self.step < self.last_report[item] + self.refresh

    @rule(back=st.integers(0, 3))
    def go_back(self, back):
        if self.step is not None:
            with pytest.raises(MonitorError):
                self.monitor.observe(self.step - back, users(0), items(0))

    @rule(user=st.integers(0, USERS - 1))
    def count_a_user_too_often(self, user):
        number = self.most + 1
        with pytest.raises(MonitorError):
            self.monitor.count(self.step or 0, users(*[user] * number), items(*range(number)))

    @invariant()
    def charges_are_those_of_the_dictionary(self):
        everyone = np.arange(self.USERS, dtype=np.uint64)
        expected = [FULL * self.charges[user] for user in range(self.USERS)]
        assert self.monitor.counters.units(everyone).tolist() == expected

    @invariant()
    def nobody_is_charged_more_often_than_allowed(self):
        everyone = np.arange(self.USERS, dtype=np.uint64)
        assert self.monitor.counters.units(everyone).max() <= FULL * self.limit


TestAgainstDictionaries = pytest.mark.slow(AgainstDictionaries.TestCase)
TestAgainstDictionaries.settings = repeatable


DECISIONS = 4000
DOMAIN, LIGHT, HEAVY, RESTING = 8, 2, 5, 6
UNHELD = [0, 1, 3, 4, 7]


HORIZON = calibrate(Guarantee(4.0, 0.01, 3), Method.HORIZON, questions=24)


def declared(threshold=3, calibration=None):
    plan = planned(domain=Domain.DECLARED, threshold=threshold, items=DOMAIN)
    return plan if calibration is None else replace(plan, calibration=calibration)


def hybrid(calibration=None):
    """Declared items at their own threshold, in an open domain."""
    plan = planned(threshold=50, items=DOMAIN)
    plan = replace(plan, workload=replace(plan.workload, declared=DOMAIN), declared_threshold=3)
    return plan if calibration is None else replace(plan, calibration=calibration)


DECLARED = {
    "laplace": declared(),
    "gaussian": declared(calibration=HORIZON),
    "hybrid": hybrid(),
    "hybrid, gaussian": hybrid(HORIZON),
}


class AsksOneByOne:
    """The brute force: noise for every item of the domain that does not rest."""

    def __init__(self, plan, declared):
        self._plan = plan
        self._noise = noise_of(plan.calibration)

    def ask(self, tally, agenda):
        estimates = self._noise.draw(DOMAIN)
        estimates[tally.items] += tally.holders
        above = estimates >= self._plan.threshold_of(is_declared=True)
        above[list(agenda.resting)] = False
        return Decision.flat(tally.step, np.flatnonzero(above), estimates[above])


class SkipsUnheld(NoisyThreshold):
    def _unheld(self, tally, places, agenda):
        found = super()._unheld(tally, places, agenda)
        return type(found)(found.items[:0], found.estimates[:0], found.thresholds[:0])


class WakesEverything(NoisyThreshold):
    def _unheld(self, tally, places, agenda):
        return super()._unheld(tally, places, Agenda())


class UnheldAboveOnly(NoisyThreshold):
    """Pr[Z > t] in place of Pr[Z >= t]."""

    def __init__(self, plan, declared):
        super().__init__(plan, declared)
        self._unheld_passes = plan.law.precise_at_least(self._declared_threshold + 1)


class PrefersLowItems(NoisyThreshold):
    def _unheld(self, tally, places, agenda):
        found = super()._unheld(tally, places, agenda)
        return replace(found, items=np.array(UNHELD[: len(found.items)], dtype=np.int64))


class UnheldAtTheThreshold(NoisyThreshold):
    def _unheld(self, tally, places, agenda):
        found = super()._unheld(tally, places, agenda)
        return replace(found, estimates=found.thresholds)


def wrong_in_a_declared_domain(decider, plan, decisions=DECISIONS):
    """Whether decisions contradict the law of asking about every item by itself.

    Looks at each item, each pair of items, the number of unheld ones and their estimates.
    False alarms: below one in a billion for each of four checks.
    """
    threshold = plan.threshold_of(is_declared=True)
    counted = tally(items(LIGHT, HEAVY), items(1, 60))
    passed = np.zeros((decisions, DOMAIN), dtype=int)
    excesses = []
    for row in passed:
        decision = decider.ask(counted, Agenda(resting={RESTING}))
        row[decision.items] = 1
        unheld = np.isin(decision.items, UNHELD)
        excesses.extend((decision.estimates[unheld] - threshold).tolist())

    noise = monitor_noise(plan.calibration)
    shares = np.full(DOMAIN, at_least(noise, threshold))
    shares[LIGHT] = at_least(noise, threshold - 1)
    shares[HEAVY] = at_least(noise, threshold - 60)
    shares[RESTING] = 0
    pairs = list(combinations(range(DOMAIN), 2))
    both = [int(np.sum(passed[:, one] * passed[:, other])) for one, other in pairs]
    numbers = np.bincount(passed[:, UNHELD].sum(axis=1), minlength=len(UNHELD) + 1)
    share = shares[UNHELD[0]]
    number_law = [
        math.comb(len(UNHELD), n) * share**n * (1 - share) ** (len(UNHELD) - n)
        for n in range(len(UNHELD) + 1)
    ]
    tails = [sum(excess >= least for excess in excesses) for least in range(1, 20)]
    tail_law = [conditional_tail(plan, least) for least in range(1, 20)]
    return (
        implausible_law(passed.sum(axis=0), decisions, shares)
        or implausible_law(both, decisions, [shares[a] * shares[b] for a, b in pairs])
        or implausible_law(numbers, decisions, number_law)
        or implausible_law(tails, max(1, len(excesses)), tail_law)
    )


def conditional_tail(plan, least):
    """Pr[Z >= t + least | Z >= t], which for the Laplace law is that of w alone."""
    threshold = plan.threshold_of(is_declared=True)
    if plan.calibration.noise is Noise.LAPLACE:
        return math.exp(-least / plan.calibration.noise_scale)
    noise = monitor_noise(plan.calibration)
    return at_least(noise, threshold + least) / at_least(noise, threshold)


@pytest.mark.slow
@pytest.mark.parametrize("decider", [NoisyThreshold, AsksOneByOne])
@pytest.mark.parametrize("plan", DECLARED.values(), ids=DECLARED)
def test_items_that_nobody_holds_are_reported_as_if_each_had_been_asked_about(decider, plan):
    assert not wrong_in_a_declared_domain(decider(plan, range(DOMAIN)), plan)


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin",
    [SkipsUnheld, WakesEverything, UnheldAboveOnly, PrefersLowItems, UnheldAtTheThreshold],
)
@pytest.mark.parametrize("plan", DECLARED.values(), ids=DECLARED)
def test_a_wrong_law_of_the_items_that_nobody_holds_is_noticed(twin, plan):
    decider = twin(plan, range(DOMAIN))
    few = DECISIONS // 8  # are enough for most twins
    assert any(wrong_in_a_declared_domain(decider, plan, number) for number in (few, DECISIONS))


def test_in_a_declared_domain_held_and_unheld_reports_come_in_rising_order():
    decider = NoisyThreshold(declared(threshold=1), range(DOMAIN))
    decisions = [decider.ask(tally(items(3), items(60))).items.tolist() for _ in range(50)]
    assert all(decision == sorted(set(decision)) for decision in decisions)
    # Seven items pass with a probability above 0.3 each: all 50 alone, below 1e-40.
    assert any(decision != [3] for decision in decisions)


def test_in_a_declared_domain_where_all_items_are_held_there_is_no_other_report():
    plan = planned(domain=Domain.DECLARED, threshold=1, items=2)
    decider = NoisyThreshold(plan, range(2), noise=NoNoise())
    decision = decider.ask(tally(items(0, 1), items(1, 1)))
    assert reported(decision) == {0: 1, 1: 1}


def test_in_a_declared_domain_a_held_item_that_rests_keeps_no_unheld_item_from_being_asked():
    plan = planned(domain=Domain.DECLARED, threshold=1, items=2)
    decider = NoisyThreshold(plan, range(2), noise=NoNoise())
    decisions = [decider.ask(tally(items(0), items(60)), Agenda(resting={0})) for _ in range(200)]
    # The other item passes with a probability above 0.3: never in 200 steps, below 1e-30.
    assert {item for decision in decisions for item in decision.items.tolist()} == {1}
    assert all(decision.estimates.dtype == np.int64 for decision in decisions)


@pytest.mark.parametrize("item", [2, 3])
def test_an_item_outside_the_declared_domain_is_refused(item):
    plan = planned(domain=Domain.DECLARED, threshold=1, items=2)
    monitor = truthful(plan)
    with pytest.raises(MonitorError, match=f"item {item} is not in the declared domain"):
        monitor.observe(0, users(1, 2, 3), items(0, item, 1))
    assert set(reported(monitor.observe(1, users(1, 2), items(0, 1)))) == {0, 1}


def test_all_noise_of_a_decider_is_made_of_the_given_bytes():
    plan = declared()
    decisions = [NoisyThreshold(plan, range(DOMAIN), random_bytes=SeededBytes(1)) for _ in range(2)]
    outcomes = [
        [reported(decider.ask(tally(items(3, 4), items(3, 3)))) for _ in range(50)]
        for decider in decisions
    ]
    assert outcomes[0] == outcomes[1]


def test_in_an_open_domain_only_held_items_are_ever_reported():
    decider = NoisyThreshold(planned(threshold=-1000))
    assert decider.ask(tally(items(3, 6), items(1, 1))).items.tolist() == [3, 6]
