"""Choosing thresholds: low enough to detect a lot, high enough for the guarantee.

In an *open* domain items are arbitrary strings, and only items that somebody holds are asked
about. An item that only one user holds can then be reported in one world and never in the
other. Over M questions this has probability at most M·Pr[1 + Z >= t], which is part of δ. That
is the chance of one user. So that it also stays rare among many users, the threshold is raised
until less than one such item is expected to be published in a year. *Declared* items are
asked about in every step, held or not: their threshold only has to keep false reports rare,
which cannot happen to items that are asked about because somebody holds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streamer.errors import MonitorError, SettingError
from streamer.privacy.calibration import RESERVE, Calibration, calibrate, sketch
from streamer.privacy.guarantee import (
    Guarantee,
    check_positive,
    check_probability,
    check_whole,
)
from streamer.privacy.law import NoiseLaw
from streamer.privacy.prices import FULL
from streamer.privacy.search import least_point, smallest_true
from streamer.privacy.terms import Attention, Domain, Method

MOST_STEPS = 1_000_000_000
MOST_ITEMS = 1_000_000_000_000
MOST_ITEMS_PER_STEP = 100
MOST_USERS = 1_000_000_000_000
LARGEST_THRESHOLD = 1 << 62
YEAR_SECONDS = 86_400 * 366

# The range of shares of δ for the key set; the best one is well inside.
_LEAST_SHARE, _MOST_SHARE = 1e-6, 0.9


@dataclass(frozen=True, slots=True)
class Workload:
    """What thresholds are planned for.

    `period_steps`: steps in a budget period (m). `items`: the size of the declared domain, or
    the largest expected number of distinct items in a step. `beta`: the probability, over a
    whole period, that an item is reported that nobody holds or that an item of the
    guaranteed weight is missed. `users`: the users among whom published unique items are kept
    below one in a year; 0 sets no limit, as in 0.1.0. `step_seconds`: how long a step takes.
    `items_per_step`: how many items of one user count in a step. `declared`: in an open domain,
    the number of items that are asked about in every step, held or not.
    """

    period_steps: int
    items: int
    beta: float
    domain: Domain = Domain.OPEN
    users: int = 0
    step_seconds: float = 60.0
    items_per_step: int = 1
    declared: int = 0

    def __post_init__(self) -> None:
        check_whole("period", self.period_steps, 1, MOST_STEPS)
        check_whole("items", self.items, 1, MOST_ITEMS)
        check_probability("beta", self.beta)
        check_whole("users", self.users, 0, MOST_USERS)
        check_positive("step_seconds", self.step_seconds, at_most=YEAR_SECONDS)
        check_whole("items_per_step", self.items_per_step, 1, MOST_ITEMS_PER_STEP)
        check_whole("declared", self.declared, 0, MOST_ITEMS)
        if self.domain not in tuple(Domain):
            raise SettingError("domain", self.domain, "use open or declared")
        object.__setattr__(self, "domain", Domain(self.domain))

    def within(self, contributions: int) -> Workload:
        """What can count of it: nobody counts for more items in a step than its budget pays for."""
        return replace(self, items_per_step=min(self.items_per_step, contributions))

    @property
    def questions(self) -> int:
        """M: how many questions can touch one user in a period, if its budget pays for them."""
        return self.items_per_step * self.period_steps

    @property
    def asked_unheld(self) -> int:
        """How many items are asked about in a step whether somebody holds them or not."""
        return self.items if self.domain is Domain.DECLARED else self.declared

    @property
    def false_tail(self) -> float:
        """The allowed probability that a question about an item that nobody holds is answered
        with a report: half of β for all of them. 1 where no such question is asked."""
        asked = self.period_steps * self.asked_unheld
        return min(1.0, self.beta / (2 * asked)) if asked else 1.0

    @property
    def miss_tail(self) -> float:
        """The allowed probability to miss an item in a single question: what is left of β."""
        questions = self.period_steps * (self.items + self.declared)
        return self.beta / questions / (2 if self.asked_unheld else 1)

    @property
    def unique_items(self) -> float:
        """How many items with a single holder are asked about in a year, if every user always
        holds as many as count (docs/privacy.md, 4.3)."""
        return self.users * self.items_per_step * YEAR_SECONDS / self.step_seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """A calibration with its thresholds: all that deciding needs.

    Stored in ledgers: fields that 0.1.0 did not have have defaults. `exit_threshold`: what is
    below it is gone, if the plan covers that question. `declared_threshold` and its exit are for
    the declared items of an open domain. `value_every_steps`: how often an item that stays public
    is asked for its value, if it is mostly asked whether it is still there.
    """

    workload: Workload
    calibration: Calibration
    threshold: int
    exit_threshold: int | None = None
    declared_threshold: int | None = None
    declared_exit_threshold: int | None = None
    value_every_steps: int = 1

    @property
    def guarantee(self) -> Guarantee:
        return self.calibration.guarantee

    @property
    def law(self) -> NoiseLaw:
        return self.calibration.law

    def threshold_of(self, is_declared: bool) -> int:
        """The threshold of an item: declared items of an open domain have their own."""
        if is_declared and self.declared_threshold is not None:
            return self.declared_threshold
        return self.threshold

    def exit_threshold_of(self, is_declared: bool) -> int:
        """The least noisy count with which a public item is still there."""
        exits = self.exit_threshold
        if is_declared and self.declared_exit_threshold is not None:
            exits = self.declared_exit_threshold
        if exits is None:
            raise MonitorError("the plan does not cover the question whether an item is there")
        return exits

    @property
    def attention(self) -> Attention:
        return self.calibration.attention

    @property
    def loud_excess(self) -> int:
        """How far above its threshold a loud report is, at least."""
        return self.calibration.loud_excess

    @property
    def loud_price(self) -> float:
        """What a loud report charges its holders, in contributions; a report below costs 1."""
        return self.calibration.loud_price

    @property
    def guaranteed_weight(self) -> int:
        """The paper's τ: with probability 1-β, no item with this many holders is ever missed."""
        return self.threshold - self.law.largest_bound(self.workload.miss_tail)

    @property
    def declared_guaranteed_weight(self) -> int | None:
        """The same for declared items of an open domain."""
        if self.declared_threshold is None:
            return None
        return self.declared_threshold - self.law.largest_bound(self.workload.miss_tail)

    def detection(self, weight: int) -> float:
        """The probability that an item with `weight` active holders is reported in a step."""
        return self.law.at_least(self.threshold - weight)

    @property
    def unique_items_per_year(self) -> float | None:
        """The expected number of published items that a single user holds, in a year in which
        each of the workload's users holds only such items in every step. None: no number of users
        is planned for."""
        if self.workload.users == 0:
            return None
        if self.workload.domain is Domain.DECLARED:
            # Every item is asked about, held or not: a report reveals no text.
            return 0.0
        return self.workload.within(self.guarantee.contributions).unique_items * self.detection(1)

    def epsilon_after(self, periods: int) -> float:
        """The total ε of a user over this many periods, at a total δ of `periods` times δ."""
        # Plain addition is also valid, and exact for one period.
        return min(self.calibration.epsilon_after(periods), periods * self.guarantee.epsilon)


def plan(
    guarantee: Guarantee,
    workload: Workload,
    method: Method = Method.HORIZON,
    threshold: int | None = None,
    attention: Attention | None = None,
) -> Plan:
    """The plan with the smallest threshold that satisfies the guarantee, β and the limit on
    published unique items.

    A `threshold` from the user replaces the planned one. It is rejected if it would break
    the guarantee or the limit; not meeting β is the user's choice. Without `attention` it is
    "changes" if the method covers that.
    """
    attention = default_attention(method) if attention is None else attention
    return _Planner(guarantee, workload, method, attention).plan(threshold)


def default_attention(method: Method) -> Attention:
    """ "changes" if the method covers that."""
    return Attention.CHANGES if method == Method.HORIZON else Attention.EVERY_STEP


def threshold_with(planned: Plan, items_per_step: int) -> int:
    """About the threshold if this many items of a user counted in a step: with the same division
    of δ, so at most a little above that of its own plan."""
    calibration = planned.calibration
    workload = replace(planned.workload, items_per_step=items_per_step)
    attention = calibration.attention
    planner = _Planner(planned.guarantee, workload, calibration.method, attention)
    return planner.plan_with(calibration.keys_delta / planned.guarantee.delta).threshold


class _Planner:
    """Looks for the calibration and the thresholds of one guarantee and workload."""

    def __init__(
        self, guarantee: Guarantee, workload: Workload, method: Method, attention: Attention
    ) -> None:
        self._guarantee, self._workload = guarantee, workload
        self._counted = workload.within(guarantee.contributions)
        self._method, self._attention = method, attention
        _check_sampler(guarantee, self._counted)

    def plan(self, threshold: int | None) -> Plan:
        if self._workload.domain is Domain.DECLARED:
            calibration = self._calibrated(0.0)
            least = calibration.law.least_threshold
            threshold = self._false_threshold(calibration) if threshold is None else threshold
            check_whole("threshold", threshold, least, LARGEST_THRESHOLD)
            return self._with_exits(calibration, threshold)
        if threshold is not None:
            return self._by_hand(threshold)
        best = self._best_split()
        return self._with_exits(best, self._keys_threshold(best))

    def _best_split(self) -> Calibration:
        """The split of δ with the smallest threshold."""
        share = _least_share(self._sketched_threshold)
        best = self._calibrated(share)
        # A sketch may be off by a user; then a little more of δ for the key set may be enough. And
        # among small whole thresholds, most of which are equal, a search does not find its way.
        off = best.noise_scale / self._sketched(share).noise_scale
        for other in (1.1 * share, 1.2 * share, _least_share(self._smooth_threshold)):
            about = self._sketched(min(_MOST_SHARE, other))
            about = replace(about, noise_scale=off * about.noise_scale)
            if self._keys_threshold(about) < self._keys_threshold(best):
                made = self._calibrated(min(_MOST_SHARE, other))
                best = min(best, made, key=self._keys_threshold)
        return best

    def plan_with(self, keys_share: float) -> Plan:
        """The plan with this share of δ for the key set of an open domain."""
        calibration = self._calibrated(keys_share)
        return self._with_exits(calibration, self._keys_threshold(calibration))

    def _by_hand(self, threshold: int) -> Plan:
        """The least noise for which this threshold still covers the key set."""
        check_whole("threshold", threshold, 1, LARGEST_THRESHOLD)
        calibration = self._best_split()
        least = self._keys_threshold(calibration)
        if threshold < least:
            workload = self._workload
            raise SettingError(
                "threshold",
                threshold,
                f"an open domain with {workload.period_steps:,} steps per period and "
                f"{workload.users:,} users needs at least {least} to keep delta at "
                f"{self._guarantee.delta:g} and published unique items below one a year; raise "
                "it, shorten the period, raise delta or lower users",
            )
        # Below the best share, a smaller share needs a higher threshold.
        best = calibration.keys_delta / self._guarantee.delta
        if self._sketched_threshold(best) <= threshold:
            share = smallest_true(
                lambda x: self._sketched_threshold(x) <= threshold, _LEAST_SHARE, best
            )
            # Again a sketch may be off by a user.
            while share < best and self._keys_threshold(self._calibrated(share)) > threshold:
                share = min(best, 1.05 * share)
            calibration = self._calibrated(share)
        return self._with_exits(calibration, threshold)

    def _with_exits(self, calibration: Calibration, threshold: int) -> Plan:
        declared = self._false_threshold(calibration) if self._workload.declared else None
        return Plan(
            self._workload,
            calibration,
            threshold,
            self._exit_threshold(calibration, threshold),
            declared,
            self._exit_threshold(calibration, declared),
            self._value_every_steps(calibration),
        )

    def _exit_threshold(self, calibration: Calibration, threshold: int | None) -> int | None:
        """The largest for which an item that stays at the threshold is called gone by mistake
        with a probability of at most β in a period."""
        if threshold is None or not calibration.kinds.still_there:
            return None
        tail = self._workload.beta / self._workload.period_steps
        return max(1, threshold + calibration.law.largest_bound(tail))

    def _value_every_steps(self, calibration: Calibration) -> int:
        """So often that an item that is public and loud for a whole period costs its holders
        about half of their budget; rounded up to one digit."""
        if not calibration.kinds.still_there:
            return 1
        units = 2 * calibration.kinds.loud * self._workload.period_steps
        exact = -(-units // (FULL * self._guarantee.contributions))
        unit = int("1".ljust(len(str(exact)), "0"))
        return -(-exact // unit) * unit

    def _false_threshold(self, calibration: Calibration) -> int:
        """The smallest t that seldom reports one of the items that are asked about unheld."""
        law = calibration.law
        return max(law.least_threshold, law.smallest_bound(self._workload.false_tail))

    def _keys_threshold(self, calibration: Calibration) -> int:
        """The smallest t for which M·Pr[1 + Z >= t] is at most the key set's part of δ, and at
        most one unique item is expected to be published in a year."""
        law = calibration.law
        return max(law.least_threshold, 1 + law.smallest_bound(self._keys_tail(calibration)))

    def _keys_tail(self, calibration: Calibration) -> float:
        tail = calibration.keys_delta / self._counted.questions
        return min(tail, 1 / self._counted.unique_items) if self._workload.users else tail

    def _calibrated(self, keys_share: float) -> Calibration:
        return calibrate(*self._arguments(keys_share))

    def _sketched_threshold(self, keys_share: float) -> int:
        return self._keys_threshold(self._sketched(keys_share))

    def _smooth_threshold(self, keys_share: float) -> float:
        """The same before it is rounded up."""
        about = self._sketched(keys_share)
        whole, log_tail = self._keys_threshold(about), math.log(self._keys_tail(about))
        above, below = about.law.log_at_least(np.array([whole - 2, whole - 1]))
        return whole - min(1.0, max(0.0, float((log_tail - below) / (above - below))))

    def _sketched(self, keys_share: float) -> Calibration:
        return sketch(*self._arguments(keys_share))

    def _arguments(self, keys_share: float) -> tuple[Guarantee, Method, float, int, Attention]:
        keys_delta = self._guarantee.delta * keys_share
        return self._guarantee, self._method, keys_delta, self._counted.questions, self._attention


def _least_share(cost: Callable[[float], float]) -> float:
    """The share of δ for the key set with the least cost."""
    ends = math.log(_LEAST_SHARE), math.log(_MOST_SHARE)
    return math.exp(least_point(lambda log_share: cost(math.exp(log_share)), *ends, rounds=14))


def _check_sampler(guarantee: Guarantee, workload: Workload) -> None:
    """The noise is drawn with an error of 2⁻¹⁰⁰; the cost of that must fit into the reserve.

    At most five draws per question that can touch a user concern that user (docs/privacy.md,
    3.7), and no split leaves less than a tenth of δ for the charges.
    """
    cost = 5 * workload.questions * 2**-100 * (1 + math.exp(guarantee.epsilon))
    if cost > RESERVE * guarantee.delta / 10:
        raise SettingError(
            "epsilon",
            guarantee.epsilon,
            f"with delta {guarantee.delta:g} and {workload.period_steps:,} steps per period it is "
            "beyond the precision of the noise; lower epsilon, raise delta or shorten the period",
        )
