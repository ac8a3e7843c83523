"""The privacy game played against our own monitor, with its real noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from streamer.experiments.attacks import Attack, Game, Start, attacks_on
from streamer.experiments.confidence import proven_epsilon
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan

DOUBT = 1e-6
"""The probability that an audit reports a correct monitor as broken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The largest loss ε that an attack proves, at the promised δ."""

    name: str
    epsilon_lost: float
    trials: int


def audit(
    plan: Plan,
    trials: int,
    start: Start | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Finding]:
    """Play every attack in both worlds. `start` creates the monitor; by default the real one."""
    if plan.workload.domain is Domain.DECLARED:
        # Each trial needs its own items; the distribution of a single answer stays the same.
        items = max(plan.workload.items, 2 * trials)
        plan = replace(plan, workload=replace(plan.workload, items=items))
    attacks = attacks_on(plan, trials)
    findings = []
    for attack in attacks:
        lost = play(attack, start or (lambda: HeavyHitterMonitor(plan)), DOUBT / len(attacks))
        findings.append(Finding(attack.name, lost, attack.trials))
        progress()
    return findings


def play(attack: Attack, start: Start, doubt: float) -> float:
    """The loss ε that one attack proves, at the δ of the monitor's guarantee."""
    games = [Game(start(), attack.trials) for _ in range(2)]
    scores = [attack.play(game, world) for world, game in enumerate(games)]
    return proven_epsilon(scores[0], scores[1], games[0].plan.guarantee.delta, doubt)
