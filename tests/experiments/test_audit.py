"""The audit of the product: the promise stands, and the attacks are strong enough to tell."""

from dataclasses import replace

import pytest

from streamer.experiments import audit as auditing
from streamer.experiments.attacks import Attack, attacks_on, until_spent
from streamer.experiments.audit import audit, play
from streamer.monitors.deciding import Deciding, NoisyThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Domain, Neighbours
from streamer.privacy.threshold import Workload, plan

pytestmark = pytest.mark.slow

EPSILON, DELTA = 1.0, 0.01
TRIALS = 100_000
STEPS = 16


def planned(contributions=1, domain=Domain.OPEN, neighbours=Neighbours.REPLACE, items=1000):
    guarantee = Guarantee(EPSILON, DELTA, contributions, neighbours)
    return plan(guarantee, Workload(STEPS, items, 0.05, domain))


# Seeded, because the power of an attack varies: no false alarm unless the draws change.
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("domain", list(Domain))
@pytest.mark.parametrize("contributions", [1, 3])
def test_no_attack_proves_more_than_the_promise_and_one_proves_half_of_it(
    contributions, domain, neighbours
):
    attacked = planned(contributions, domain, neighbours, items=2 * TRIALS)
    source = SeededBytes(1)

    def start():
        return HeavyHitterMonitor(
            attacked,
            deciding=Deciding(lambda plan: NoisyThreshold(plan, random_bytes=source)),
        )

    findings = audit(attacked, TRIALS, start)
    lost = {finding.name: finding.epsilon_lost for finding in findings}
    assert all(epsilon <= EPSILON for epsilon in lost.values()), lost
    assert max(lost.values()) >= 0.5 * EPSILON, lost


# False alarms: at most 1e-8, because that is the doubt that the audit allows.
@pytest.mark.parametrize("domain", list(Domain))
def test_with_its_real_noise_the_product_passes(domain, monkeypatch):
    monkeypatch.setattr(auditing, "DOUBT", 1e-8)
    findings = audit(planned(3, domain, items=10), trials=20_000)
    assert all(finding.epsilon_lost <= EPSILON for finding in findings)
    assert max(finding.epsilon_lost for finding in findings) > 0


def test_the_stated_doubt_is_one_in_a_million_for_the_whole_audit(monkeypatch):
    assert auditing.DOUBT <= 1e-6
    doubts = []
    monkeypatch.setattr(auditing, "play", lambda attack, start, doubt: doubts.append(doubt) or 0.0)
    audit(planned(), trials=100)
    assert sum(doubts) <= auditing.DOUBT * (1 + 1e-9)


def test_a_declared_domain_is_made_large_enough_for_items_of_every_trial(monkeypatch):
    attacked = []
    monkeypatch.setattr(
        auditing, "play", lambda attack, start, doubt: attacked.append(start().plan) or 0.0
    )
    audit(planned(domain=Domain.DECLARED, items=10), trials=100)
    assert all(plan.workload.items >= 200 for plan in attacked)


def test_every_attack_has_a_finding_and_progress_is_told_for_each():
    ticks = []
    attacked = planned()
    findings = audit(attacked, trials=100, progress=lambda: ticks.append(1))
    assert [finding.name for finding in findings] == [
        attack.name for attack in attacks_on(attacked, 100)
    ]
    assert [finding.trials for finding in findings] == [100] * len(findings)
    assert len(ticks) == len(findings)


def test_both_worlds_are_played_against_a_monitor_of_their_own():
    started = []

    def start():
        started.append(HeavyHitterMonitor(planned()))
        return started[-1]

    play(Attack("", until_spent, 100), start, 1e-6)
    absent, present = started
    assert absent.counters.charged == 0
    assert present.counters.charged > 0


def test_what_is_lost_is_measured_at_the_promised_delta():
    strict, lax = (
        replace(planned(), calibration=replace(planned().calibration, guarantee=guarantee))
        for guarantee in (Guarantee(EPSILON, 1e-6, 1), Guarantee(EPSILON, 0.9, 1))
    )
    attack = Attack("", until_spent, 20_000)
    # The two worlds differ by at most 0.9, but by far more than 1e-6.
    assert play(attack, lambda: HeavyHitterMonitor(strict), 1e-8) > 0
    assert play(attack, lambda: HeavyHitterMonitor(lax), 1e-8) == 0
