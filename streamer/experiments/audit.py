"""The privacy game played against our own monitor, with its real noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streamer.experiments.attacks import attacks_on, noise_drawn
from streamer.experiments.confidence import lower_bound, proven_epsilon
from streamer.experiments.curve import largest_excess
from streamer.experiments.game import VALUES_ALONE, Attack, Game, Start
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.terms import Domain
from streamer.privacy.threshold import Plan

DOUBT = 1e-6
"""The probability that an audit reports a correct monitor as broken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What an attack proves, each with its confidence.

    `epsilon_lost`: a loss ε at the promised δ. `delta_proven`: an excess δ at `tested_epsilon`,
    the point of the promised curve that the attack exceeds most, or comes closest to;
    `delta_promised` is the curve there.
    """

    name: str
    epsilon_lost: float
    trials: int
    tested_epsilon: float
    delta_proven: float
    delta_promised: float
    broken: bool
    """Whether the attack broke the promise."""


@dataclass(frozen=True, slots=True)
class NoiseFinding:
    """Whether the noise is as wide as planned.

    This is not an attack: noise that is narrower than planned may still keep (ε, δ), but not by
    the plan that is shown. It finds what no attack can if the noise is very wide, as with the
    theorem calibration: half of that hides a user as well as all of it.
    """

    scale: float
    """The planned scale of w."""
    within: int
    """Half of the noise is planned to be at most this."""
    share_proven: float
    share_promised: float

    @property
    def narrower(self) -> bool:
        return self.share_proven > self.share_promised


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, together true with a probability of at least 1 - DOUBT."""

    findings: tuple[Finding, ...]
    noise: NoiseFinding

    @property
    def broken_by(self) -> tuple[str, ...]:
        """The attacks that broke the promise."""
        return tuple(finding.name for finding in self.findings if finding.broken)

    @property
    def passed(self) -> bool:
        return not self.broken_by and not self.noise.narrower


def audit(
    plan: Plan,
    trials: int,
    start: Start | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Audit:
    """Play every attack in both worlds, and measure the noise. `start` creates the monitor; by
    default the real one."""
    # Each trial needs its own items; the distribution of a single answer stays the same.
    workload, needed = plan.workload, 2 * trials * plan.workload.items_per_step
    if workload.domain is Domain.DECLARED:
        workload = replace(workload, items=max(workload.items, needed))
    elif workload.declared:
        workload = replace(workload, declared=max(workload.declared, needed))
    plan = replace(plan, workload=workload)
    begin = start or (lambda pace: HeavyHitterMonitor(plan, pace))
    attacks = attacks_on(plan, trials)
    doubt = DOUBT / (len(attacks) + 1)
    findings = []
    for attack in attacks:
        findings.append(play(attack, begin, doubt))
        progress()
    return Audit(tuple(findings), measure_noise(begin, trials, doubt))


def play(attack: Attack, start: Start, doubt: float) -> Finding:
    """What one attack proves against the promise of the monitor's plan."""
    games = [Game(start(attack.pace), attack.trials) for _ in range(2)]
    absent, present = (attack.play(game, world) for world, game in enumerate(games))
    plan = games[0].plan
    lost = proven_epsilon(absent, present, plan.guarantee.delta, doubt / 2)
    excess = largest_excess(plan, absent, present, doubt / 2)
    return Finding(
        *(attack.name, lost, attack.trials),
        *(excess.epsilon, excess.proven, excess.promised),
        broken=lost > plan.guarantee.epsilon or excess.proven > excess.promised,
    )


def measure_noise(start: Start, trials: int, doubt: float) -> NoiseFinding:
    """A lower bound on the share of small noise, which is too large if the noise is too narrow."""
    game = Game(start(VALUES_ALONE), trials)
    law = game.plan.law
    within = law.margin(0.5)
    small = int(np.count_nonzero(np.abs(noise_drawn(game)) <= within))
    return NoiseFinding(
        game.plan.calibration.noise_scale,
        within,
        share_proven=lower_bound(small, trials, doubt),
        share_promised=1 - law.below(-within) - law.at_least(within + 1),
    )
