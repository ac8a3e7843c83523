"""The audit of the product: the promise stands, and the attacks are strong enough to tell."""

from dataclasses import fields, replace
from functools import partial

import pytest

from streamer.experiments import audit as auditing
from streamer.experiments import curve
from streamer.experiments.attacks import attacks_on, weigh_answers
from streamer.experiments.audit import audit, measure_noise, play
from streamer.experiments.confidence import proven_epsilon
from streamer.experiments.curve import Excess
from streamer.experiments.game import Attack, Game
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.perturbation import noise_of
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Attention, Domain, Method, Neighbours
from streamer.privacy.threshold import Workload, plan

pytestmark = pytest.mark.slow

EPSILON, DELTA = 1.0, 0.01
TRIALS = 30_000
STEPS = 16
DAY = Workload(1440, 100_000, 0.05, users=1_000_000)


AT_THRESHOLD = partial(weigh_answers, distances=(1, 1))


def planned(
    contributions=1,
    domain=Domain.OPEN,
    neighbours=Neighbours.REPLACE,
    items=1000,
    method=Method.EXACT,
):
    guarantee = Guarantee(EPSILON, DELTA, contributions, neighbours)
    return plan(guarantee, Workload(STEPS, items, 0.05, domain), method)


def seeded(attacked):
    source = SeededBytes(1)
    return lambda pace: HeavyHitterMonitor(
        attacked, pace, deciding=Deciding(partial(NoisyThreshold, random_bytes=source))
    )


# Seeded, because the power of an attack varies: no false alarm unless the draws change.
@pytest.mark.parametrize(
    ("contributions", "domain", "neighbours"),
    [
        (1, Domain.OPEN, Neighbours.REPLACE),
        (1, Domain.DECLARED, Neighbours.ADD_REMOVE),
        (3, Domain.OPEN, Neighbours.ADD_REMOVE),
        (3, Domain.DECLARED, Neighbours.REPLACE),
    ],
)
def test_no_attack_proves_more_than_the_promise_and_one_proves_half_of_it(
    contributions, domain, neighbours
):
    attacked = planned(contributions, domain, neighbours, items=2 * TRIALS)
    found = audit(attacked, TRIALS, seeded(attacked))
    lost = {finding.name: finding.epsilon_lost for finding in found.findings}
    assert all(epsilon <= EPSILON for epsilon in lost.values()), lost
    assert max(lost.values()) >= 0.5 * EPSILON, lost
    assert found.passed
    assert max(each.delta_proven / each.delta_promised for each in found.findings) > 0.6


@pytest.mark.parametrize(
    ("method", "share"), [(Method.HORIZON, 0.45), (Method.EXACT, 0.7)], ids=["horizon", "exact"]
)
def test_with_one_contribution_in_50_steps_most_of_epsilon_is_proven(method, share):
    """The best adversary against Gaussian noise attains about 0.65 here: its bound is loose at so
    large a δ."""
    workload = Workload(50, 1000, 0.05)
    guarantee = Guarantee(EPSILON, DELTA, contributions=1)
    attacked = plan(guarantee, workload, method, attention=Attention.EVERY_STEP)
    strongest = attacks_on(attacked, 400_000)[1 if method is Method.HORIZON else 0]
    start = seeded(attacked)
    absent, present = (
        strongest.play(Game(start(strongest.pace), strongest.trials), world) for world in (0, 1)
    )
    assert share * EPSILON < proven_epsilon(absent, present, DELTA, 1e-8) <= EPSILON


# False alarms: at most 1e-8, because that is the doubt that the audit allows.
@pytest.mark.parametrize("attention", list(Attention))
def test_the_horizon_withstands_attacks_with_several_and_declared_items(attention, monkeypatch):
    monkeypatch.setattr(auditing, "DOUBT", 1e-8)
    # With scarce charges, each point of the promised curve takes a while.
    monkeypatch.setattr(curve, "_POINTS", 11)
    workload = Workload(4, 1000, 0.05, items_per_step=3, declared=4)
    attacked = plan(Guarantee(EPSILON, DELTA, 5), workload, Method.HORIZON, attention=attention)
    found = audit(attacked, trials=5_000)
    assert "declared items" in [finding.name for finding in found.findings]
    assert found.passed


# False alarms: at most 1e-8, because that is the doubt that the audit allows.
@pytest.mark.parametrize("domain", list(Domain))
def test_with_its_real_noise_the_product_passes(domain, monkeypatch):
    monkeypatch.setattr(auditing, "DOUBT", 1e-8)
    found = audit(planned(3, domain, items=10), trials=5_000)
    assert found.passed
    assert found.broken_by == ()
    assert all(finding.epsilon_lost <= EPSILON for finding in found.findings)
    assert max(finding.epsilon_lost for finding in found.findings) > 0


def test_the_stated_doubt_is_one_in_a_million_for_the_whole_audit(monkeypatch):
    assert auditing.DOUBT <= 1e-6
    doubts = []
    for name in ("proven_epsilon", "largest_excess", "lower_bound"):
        real = getattr(auditing, name)

        def noted(*arguments, real=real):
            doubts.append(arguments[-1])
            return real(*arguments)

        monkeypatch.setattr(auditing, name, noted)
    found = audit(planned(), trials=100)
    assert len(doubts) == 2 * len(found.findings) + 1
    assert sum(doubts) <= auditing.DOUBT * (1 + 1e-9)


def test_a_declared_domain_is_made_large_enough_for_items_of_every_trial(monkeypatch):
    attacked = []
    monkeypatch.setattr(
        auditing, "play", lambda attack, start, doubt: attacked.append(start(attack.pace).plan)
    )
    audit(planned(domain=Domain.DECLARED, items=10), trials=100)
    assert all(plan.workload.items >= 200 for plan in attacked)


def test_every_attack_has_a_finding_and_progress_is_told_for_each():
    ticks = []
    attacked = planned()
    findings = audit(attacked, trials=100, progress=lambda: ticks.append(1)).findings
    assert [finding.name for finding in findings] == [
        attack.name for attack in attacks_on(attacked, 100)
    ]
    assert [finding.trials for finding in findings] == [
        attack.trials for attack in attacks_on(attacked, 100)
    ]
    assert len(ticks) == len(findings)


def test_both_worlds_are_played_against_a_monitor_of_their_own():
    started = []

    def start(pace):
        started.append(HeavyHitterMonitor(planned(neighbours=Neighbours.ADD_REMOVE), pace))
        return started[-1]

    play(Attack("", AT_THRESHOLD, 100), start, 1e-6)
    absent, present = started
    assert absent.counters.charged == 0
    assert present.counters.charged > 0


def test_what_is_lost_is_measured_at_the_promised_delta():
    strict, lax = (
        replace(planned(), calibration=replace(planned().calibration, guarantee=guarantee))
        for guarantee in (Guarantee(EPSILON, 1e-6, 1), Guarantee(EPSILON, 0.9, 1))
    )
    attack = Attack("", AT_THRESHOLD, 20_000)
    # The two worlds differ by at most 0.9, but by far more than 1e-6.
    assert play(attack, lambda pace: HeavyHitterMonitor(strict, pace), 1e-8).epsilon_lost > 0
    assert play(attack, lambda pace: HeavyHitterMonitor(lax, pace), 1e-8).epsilon_lost == 0


class TestVerdict:
    """The promise is broken by a loss above ε, or by any point of the curve."""

    @staticmethod
    def judged(monkeypatch, lost, excess):
        monkeypatch.setattr(auditing, "proven_epsilon", lambda *_: lost)
        monkeypatch.setattr(auditing, "largest_excess", lambda *_: Excess(0.1, *excess))

        def start(pace):
            return HeavyHitterMonitor(planned(), pace)

        return play(Attack("", AT_THRESHOLD, 100), start, 1e-6)

    def test_a_loss_above_epsilon_breaks_it(self, monkeypatch):
        assert self.judged(monkeypatch, 1.01 * EPSILON, (0.0, 0.5)).broken

    def test_an_excess_above_the_curve_breaks_it(self, monkeypatch):
        finding = self.judged(monkeypatch, 0.0, (0.51, 0.5))
        assert finding.broken
        assert (finding.tested_epsilon, finding.delta_proven, finding.delta_promised) == (
            *(0.1, 0.51),
            0.5,
        )

    def test_reaching_both_does_not(self, monkeypatch):
        assert not self.judged(monkeypatch, EPSILON, (0.5, 0.5)).broken

    def test_the_attacks_that_broke_it_are_named(self):
        noise = auditing.NoiseFinding(1.0, 1, 0.1, 0.5)
        values = (1.5, 100, 0.1, 0.2, 0.1)
        findings = tuple(
            auditing.Finding(name, *values, broken=name != "b") for name in ("a", "b", "c")
        )
        found = auditing.Audit(findings, noise)
        assert found.broken_by == ("a", "c")
        assert not found.passed


class TestNoise:
    """Its width, which is all that shows half of the noise of the theorem calibration."""

    PLANS = tuple(plan(Guarantee(1.0, 1e-6, 10), DAY, method) for method in Method)

    @staticmethod
    def measured(plan, factor):
        noise = replace(plan.calibration, noise_scale=factor * plan.calibration.noise_scale)

        def start(pace):
            questions = partial(NoisyThreshold, noise=noise_of(noise))
            return HeavyHitterMonitor(plan, pace, deciding=Deciding(questions))

        return measure_noise(start, 100_000, 1e-8)

    @pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.calibration.method)
    @pytest.mark.parametrize("factor", [0.5, 0.8, 0.95])
    def test_noise_that_is_too_narrow_is_found_out(self, plan, factor):
        found = self.measured(plan, factor)
        assert found.narrower
        assert found.scale == plan.calibration.noise_scale

    # False alarms: at most 1e-8 a case.
    @pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.calibration.method)
    @pytest.mark.parametrize("factor", [1.0, 1.2])
    def test_noise_as_planned_and_wider_noise_is_not(self, plan, factor):
        assert not self.measured(plan, factor).narrower

    def test_narrow_noise_alone_fails_the_audit(self):
        found = auditing.Audit((), auditing.NoiseFinding(1.0, 1, 0.6, 0.5))
        assert found.broken_by == ()
        assert not found.passed


def test_a_finding_has_the_fields_of_the_contract_first():
    names = [field.name for field in fields(auditing.Finding)]
    assert names[:3] == ["name", "epsilon_lost", "trials"]
