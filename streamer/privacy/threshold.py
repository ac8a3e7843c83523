"""Choosing the threshold: low enough to detect a lot, high enough for the guarantee.

In an *open* domain items are arbitrary strings, and only items that somebody holds are asked
about. An item that only one user holds can then be reported in one world and never in the
other. Over m steps this has probability at most m·Pr[1 + Z >= t], which is part of δ. That is
the chance of one user. So that it also stays rare among many users, the threshold is raised
until less than one such item is expected to be published in a year. In a *declared* domain
every item is asked about, and all of δ is for the charges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import SettingError
from streamer.privacy.calibration import RESERVE, Calibration, calibrate
from streamer.privacy.guarantee import (
    Guarantee,
    check_positive,
    check_probability,
    check_whole,
)
from streamer.privacy.law import NoiseLaw
from streamer.privacy.loss import total_epsilon
from streamer.privacy.search import least_point, smallest_true
from streamer.privacy.terms import Domain, Method

MOST_STEPS = 1_000_000_000
MOST_ITEMS = 1_000_000_000_000
MOST_USERS = 1_000_000_000_000
LARGEST_THRESHOLD = 1 << 62
YEAR_SECONDS = 86_400 * 366

# The range of shares of δ for the key set; the best one is well inside.
_LOG_SHARES = (math.log(1e-6), math.log(0.9))


@dataclass(frozen=True, slots=True)
class Workload:
    """What a threshold is planned for.

    `period_steps`: steps in a budget period (m). `items`: the size of the declared domain, or
    the largest expected number of distinct items in a step. `beta`: the probability, over a
    whole period, that an item is reported that nobody holds or that an item of the
    guaranteed weight is missed. `users`: the users among whom published unique items are kept
    below one in a year; 0 sets no limit, as in 0.1.0. `step_seconds`: how long a step takes.
    """

    period_steps: int
    items: int
    beta: float
    domain: Domain = Domain.OPEN
    users: int = 0
    step_seconds: float = 60.0

    def __post_init__(self) -> None:
        check_whole("period", self.period_steps, 1, MOST_STEPS)
        check_whole("items", self.items, 1, MOST_ITEMS)
        check_probability("beta", self.beta)
        check_whole("users", self.users, 0, MOST_USERS)
        check_positive("step_seconds", self.step_seconds, at_most=YEAR_SECONDS)
        if self.domain not in tuple(Domain):
            raise SettingError("domain", self.domain, "use open or declared")
        object.__setattr__(self, "domain", Domain(self.domain))

    @property
    def tail(self) -> float:
        """The allowed probability of an error in a single question, per direction."""
        return self.beta / (2 * self.period_steps * self.items)

    @property
    def unique_items(self) -> float:
        """How many items with a single holder are asked about in a year, if every user always
        holds one (docs/privacy.md, 4.3)."""
        return self.users * YEAR_SECONDS / self.step_seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """A calibration with its threshold: all that deciding needs."""

    workload: Workload
    calibration: Calibration
    threshold: int

    @property
    def guarantee(self) -> Guarantee:
        return self.calibration.guarantee

    @property
    def law(self) -> NoiseLaw:
        return NoiseLaw.of(self.calibration)

    @property
    def guaranteed_weight(self) -> int:
        """The paper's τ: with probability 1-β, no item with this many holders is ever missed."""
        return self.threshold - self.law.largest_bound(self.workload.tail)

    def detection(self, weight: int) -> float:
        """The probability that an item with `weight` active holders is reported in a step."""
        return self.law.at_least(self.threshold - weight)

    @property
    def unique_items_per_year(self) -> float | None:
        """The expected number of published items that a single user holds, in a year in which
        each of the workload's users holds such an item in every step. None: no number of users
        is planned for."""
        if self.workload.users == 0:
            return None
        if self.workload.domain is Domain.DECLARED:
            # Every item is asked about, held or not: a report reveals no text.
            return 0.0
        return self.workload.unique_items * self.detection(1)

    def epsilon_after(self, periods: int) -> float:
        """The total ε of a user over this many periods, at a total δ of `periods` times δ.

        A plan counts whole users, so the exact loss is valid for every calibration.
        """
        composed = total_epsilon(
            self.calibration.charge_delta * periods * (1 - RESERVE),
            self.calibration.noise_scale,
            self.guarantee.contributions,
            self.guarantee.neighbours,
            periods,
        )
        # Plain addition is also valid, and exact for one period.
        return min(composed, periods * self.guarantee.epsilon)


def plan(
    guarantee: Guarantee,
    workload: Workload,
    method: Method = Method.EXACT,
    threshold: int | None = None,
) -> Plan:
    """The plan with the smallest threshold that satisfies the guarantee, β and the limit on
    published unique items.

    A `threshold` from the user replaces the planned one. It is rejected if it would break
    the guarantee or the limit; not meeting β is the user's choice.
    """
    _check_sampler(guarantee, workload)
    if workload.domain is Domain.DECLARED:
        return _declared(workload, calibrate(guarantee, method), threshold)
    if threshold is not None:
        return _by_hand(guarantee, workload, method, threshold)

    def cost(log_share: float) -> float:
        calibration = calibrate(guarantee, method, guarantee.delta * math.exp(log_share))
        return _safe_threshold(workload, calibration)

    share = math.exp(least_point(cost, *_LOG_SHARES, rounds=14))
    calibration = calibrate(guarantee, method, guarantee.delta * share)
    return Plan(workload, calibration, _safe_threshold(workload, calibration))


def _check_sampler(guarantee: Guarantee, workload: Workload) -> None:
    """The noise is drawn with an error of 2⁻¹⁰⁰; the cost of that must fit into the reserve.

    At most five draws per step concern one user (docs/privacy.md, 3.7), and no split
    leaves less than a tenth of δ for the charges.
    """
    cost = 5 * workload.period_steps * 2**-100 * (1 + math.exp(guarantee.epsilon))
    if cost > RESERVE * guarantee.delta / 10:
        raise SettingError(
            "epsilon",
            guarantee.epsilon,
            f"with delta {guarantee.delta:g} and {workload.period_steps:,} steps per period it is "
            "beyond the precision of the noise; lower epsilon, raise delta or shorten the period",
        )


def _declared(workload: Workload, calibration: Calibration, threshold: int | None) -> Plan:
    least = calibration.cap + 1
    if threshold is None:
        threshold = max(least, NoiseLaw.of(calibration).smallest_bound(workload.tail))
    check_whole("threshold", threshold, least, LARGEST_THRESHOLD)
    return Plan(workload, calibration, threshold)


def _by_hand(guarantee: Guarantee, workload: Workload, method: Method, threshold: int) -> Plan:
    """The least noise for which this threshold still covers the key set."""
    check_whole("threshold", threshold, 1, LARGEST_THRESHOLD)

    def keys_threshold(share: float) -> int:
        return _keys_threshold(workload, calibrate(guarantee, method, guarantee.delta * share))

    best = math.exp(least_point(lambda x: keys_threshold(math.exp(x)), *_LOG_SHARES, rounds=24))
    least = keys_threshold(best)
    if threshold < least:
        raise SettingError(
            "threshold",
            threshold,
            f"an open domain with {workload.period_steps:,} steps per period and "
            f"{workload.users:,} users needs at least {least} to keep delta at "
            f"{guarantee.delta:g} and published unique items below one a year; raise it, shorten "
            "the period, raise delta or lower users",
        )
    # Below the best share, a smaller share needs a higher threshold.
    share = smallest_true(lambda x: keys_threshold(x) <= threshold, math.exp(_LOG_SHARES[0]), best)
    return Plan(workload, calibrate(guarantee, method, guarantee.delta * share), threshold)


def _safe_threshold(workload: Workload, calibration: Calibration) -> int:
    wanted = NoiseLaw.of(calibration).smallest_bound(workload.tail)
    return max(_keys_threshold(workload, calibration), wanted)


def _keys_threshold(workload: Workload, calibration: Calibration) -> int:
    """The smallest t for which m·Pr[1 + Z >= t] is at most the key set's part of δ, and at most
    one unique item is expected to be published in a year."""
    tail = calibration.keys_delta / workload.period_steps
    if workload.users:
        tail = min(tail, 1 / workload.unique_items)
    return max(calibration.cap + 1, 1 + NoiseLaw.of(calibration).smallest_bound(tail))
