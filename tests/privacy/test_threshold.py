"""A planned threshold is the smallest that keeps both promises, by exact computation."""

import math
from dataclasses import replace

import pytest

from streamer.errors import SettingError
from streamer.privacy import calibration as calibration_room
from streamer.privacy.calibration import Calibration, calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Domain, Method, Neighbours
from streamer.privacy.threshold import LARGEST_THRESHOLD, MOST_USERS, Plan, Workload
from streamer.privacy.threshold import plan as plan_by
from tests.privacy.test_laplace_law import ExplicitLaw
from tests.privacy.test_loss import true_delta

USUAL = Guarantee(1.0, 1e-6, 3)
DAY = Workload(period_steps=1440, items=1000, beta=0.01)


def plan(
    guarantee: Guarantee,
    workload: Workload,
    method: Method = Method.EXACT,
    threshold: int | None = None,
) -> Plan:
    """A plan with Laplace noise; those with Gaussian noise are in test_gaussian_plan."""
    return plan_by(guarantee, workload, method, threshold)


OPEN = [
    (USUAL, DAY),
    (USUAL, Workload(1440, 100_000_000, 1e-4)),
    (Guarantee(1.0, 1e-6, 100), Workload(24, 10, 0.5)),
    (Guarantee(0.5, 1e-8, 3, Neighbours.ADD_REMOVE), Workload(288, 5000, 0.05)),
    (Guarantee(8.0, 1e-5, 2), Workload(10, 100, 0.1)),
    (Guarantee(2.0, 0.01, 5, Neighbours.ADD_REMOVE), Workload(1, 1, 0.5)),
]


def name(value: object) -> str:
    if isinstance(value, Guarantee):
        return f"{value.epsilon}-{value.delta}-{value.contributions}-{value.neighbours}"
    return f"{value.period_steps}-{value.items}-{value.beta}"


every_open = pytest.mark.parametrize(("guarantee", "workload"), OPEN, ids=name)


def explicit(calibration: Calibration) -> ExplicitLaw:
    return ExplicitLaw(calibration.law)


def covers_keys(workload: Workload, calibration: Calibration, threshold: int) -> bool:
    """m·Pr[1 + Z >= t] <= δ_keys."""
    lone = explicit(calibration).at_least(threshold - 1)
    return workload.period_steps * lone <= calibration.keys_delta


def seldom_false(workload: Workload, calibration: Calibration, threshold: int) -> bool:
    """m·|X|·Pr[Z >= t] <= β/2."""
    questions = workload.period_steps * workload.items
    return questions * explicit(calibration).at_least(threshold) <= workload.beta / 2


# 1. The open domain


@every_open
def test_the_planned_threshold_covers_the_key_set_and_one_less_does_not(guarantee, workload):
    made = plan(guarantee, workload)
    calibration, threshold = made.calibration, made.threshold
    assert covers_keys(workload, calibration, threshold)
    assert not covers_keys(workload, calibration, threshold - 1)


@every_open
def test_false_reports_of_items_that_nobody_holds_do_not_raise_an_open_threshold(
    guarantee, workload
):
    many = replace(workload, items=10**12, beta=1e-9)
    assert plan(guarantee, many).threshold == plan(guarantee, workload).threshold


def test_a_threshold_planned_with_above_for_at_least_is_caught():
    made = plan(USUAL, DAY)
    law = explicit(made.calibration)

    def broken(threshold: int) -> bool:
        # m·Pr[1 + Z > t] <= δ_keys
        lone = law.at_least(threshold)
        return DAY.period_steps * lone <= made.calibration.keys_delta

    planned = next(t for t in range(1, 10_000) if broken(t))
    assert planned == made.threshold - 1
    assert not covers_keys(DAY, made.calibration, planned)


@every_open
def test_what_the_charges_and_the_key_set_really_take_is_within_delta(guarantee, workload):
    made = plan(guarantee, workload)
    keys = workload.period_steps * explicit(made.calibration).at_least(made.threshold - 1)
    charges = true_delta(
        guarantee.epsilon,
        made.calibration.noise_scale,
        guarantee.contributions,
        guarantee.neighbours,
    )
    assert charges + keys <= guarantee.delta


@every_open
def test_the_two_parts_of_delta_add_up_to_it(guarantee, workload):
    calibration = plan(guarantee, workload).calibration
    assert 0 < calibration.keys_delta < guarantee.delta
    total = calibration.charge_delta + calibration.keys_delta
    assert total == pytest.approx(guarantee.delta, rel=1e-15, abs=0)


@pytest.mark.slow
@every_open
def test_no_other_split_of_delta_has_a_smaller_threshold_by_more_than_1(guarantee, workload):
    best = min(
        threshold_for_split(guarantee, workload, math.exp(-14 + 13.9 * place / 60))
        for place in range(61)
    )
    assert plan(guarantee, workload).threshold <= best + 1


def threshold_for_split(guarantee: Guarantee, workload: Workload, share: float) -> int:
    keys_delta = guarantee.delta * share
    law = calibrate(guarantee, keys_delta=keys_delta).law
    for_keys = 1 + law.smallest_bound(keys_delta / workload.period_steps)
    return max(for_keys, law.cap + 1)


@pytest.mark.parametrize("share", [0.001, 0.9])
def test_a_split_that_leaves_either_side_little_would_be_caught(share):
    guarantee, workload = Guarantee(1.0, 1e-6, 30), Workload(100_000, 10, 0.01)
    lopsided = threshold_for_split(guarantee, workload, share)
    assert plan(guarantee, workload).threshold < lopsided - 1


@pytest.mark.slow
@pytest.mark.parametrize("method", [Method.THEOREM, Method.FRACTIONAL])
def test_other_analyses_plan_with_the_same_condition(method):
    made = plan(USUAL, DAY, method)
    law = made.law
    assert made.calibration.method is method
    assert DAY.period_steps * law.at_least(made.threshold - 1) <= made.calibration.keys_delta
    assert made.threshold > plan(USUAL, DAY).threshold


def test_a_threshold_is_above_the_cap_even_where_a_smaller_one_would_do():
    loose = Guarantee(0.1, 0.9, 1000, Neighbours.ADD_REMOVE)
    for workload in (Workload(1, 1, 0.99), Workload(1, 1, 0.99, Domain.DECLARED)):
        made = plan(loose, workload)
        assert made.threshold == made.calibration.cap + 1


# 2. The guaranteed weight


@every_open
@pytest.mark.parametrize("domain", Domain)
def test_the_guaranteed_weight_is_the_smallest_that_is_seldom_missed(guarantee, workload, domain):
    workload = replace(workload, domain=domain)
    made = plan(guarantee, workload)
    law = explicit(made.calibration)
    questions = workload.period_steps * workload.items
    # False reports take the other half, where there can be some.
    beta = workload.beta if domain is Domain.OPEN else workload.beta / 2

    def missed(weight: int) -> float:
        return questions * law.below(made.threshold - weight)

    assert missed(made.guaranteed_weight) <= beta < missed(made.guaranteed_weight - 1)


@every_open
def test_detection_is_the_probability_to_reach_the_threshold(guarantee, workload):
    made = plan(guarantee, workload)
    law = explicit(made.calibration)
    for weight in (0, 1, made.threshold // 2, made.threshold, made.guaranteed_weight):
        reached = law.at_least(made.threshold - weight)
        assert made.detection(weight) == pytest.approx(reached, rel=1e-11, abs=0)


# 3. A threshold by hand


def test_a_threshold_by_hand_that_is_too_small_is_refused_with_the_least_one():
    with pytest.raises(SettingError) as caught:
        plan(USUAL, DAY, threshold=300)
    assert caught.value.setting == "threshold"
    assert "threshold is 300" in str(caught.value)
    least = plan(USUAL, DAY).threshold
    assert f"at least {least} " in str(caught.value)


def test_the_least_threshold_by_hand_is_allowed_and_one_less_is_not():
    least = plan(USUAL, DAY).threshold
    assert plan(USUAL, DAY, threshold=least).threshold == least
    with pytest.raises(SettingError, match=f"threshold is {least - 1}"):
        plan(USUAL, DAY, threshold=least - 1)


@pytest.mark.slow
@pytest.mark.parametrize("above", [0, 10, 100])
@every_open
def test_a_threshold_by_hand_covers_the_key_set(guarantee, workload, above):
    threshold = plan(guarantee, workload).threshold + above
    made = plan(guarantee, workload, threshold=threshold)
    assert made.threshold == threshold
    assert covers_keys(workload, made.calibration, threshold)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guarantee", "workload"), [(USUAL, DAY), (Guarantee(1.0, 1e-6, 100), Workload(24, 10, 0.5))]
)
def test_a_larger_threshold_by_hand_takes_less_of_delta_and_less_noise(guarantee, workload):
    least = plan(guarantee, workload).threshold
    hands = [
        plan(guarantee, workload, threshold=least + more).calibration for more in (0, 5, 20, 60)
    ]
    keys = [calibration.keys_delta for calibration in hands]
    noise = [calibration.noise_scale for calibration in hands]
    assert keys == sorted(set(keys), reverse=True)
    assert noise == sorted(noise, reverse=True)


@pytest.mark.parametrize("more", [5, 60])
def test_a_threshold_by_hand_gives_the_key_set_hardly_more_of_delta_than_it_needs(more):
    threshold = plan(USUAL, DAY).threshold + more
    keys_delta = plan(USUAL, DAY, threshold=threshold).calibration.keys_delta
    less = calibrate(USUAL, keys_delta=keys_delta * 0.99)
    assert not covers_keys(DAY, less, threshold)


def test_a_threshold_by_hand_that_breaks_beta_alone_is_the_users_choice():
    workload = Workload(1440, 100_000_000, 1e-4, Domain.DECLARED)
    planned = plan(USUAL, workload).threshold
    made = plan(USUAL, workload, threshold=planned - 50)
    assert made.threshold == planned - 50
    assert not seldom_false(workload, made.calibration, made.threshold)


@pytest.mark.parametrize("domain", Domain)
@pytest.mark.parametrize("value", [0, -5, 700.0, True, "700", LARGEST_THRESHOLD + 1, math.nan])
def test_a_threshold_that_is_no_whole_number_in_range_is_refused(domain, value):
    with pytest.raises(SettingError) as caught:
        plan(USUAL, replace(DAY, domain=domain), threshold=value)
    assert caught.value.setting == "threshold"
    assert f"threshold is {value}" in str(caught.value)


# 4. The declared domain


@every_open
def test_a_declared_domain_leaves_all_of_delta_to_the_charges(guarantee, workload):
    made = plan(guarantee, replace(workload, domain=Domain.DECLARED))
    assert made.calibration == calibrate(guarantee)
    assert made.calibration.keys_delta == 0


@every_open
def test_a_declared_domains_threshold_is_the_smallest_that_is_seldom_false(guarantee, workload):
    workload = replace(workload, domain=Domain.DECLARED)
    made = plan(guarantee, workload)
    assert seldom_false(workload, made.calibration, made.threshold)
    smaller = made.threshold - 1
    assert smaller == made.calibration.cap or not seldom_false(workload, made.calibration, smaller)


def test_a_declared_domain_refuses_a_threshold_that_is_not_above_the_cap():
    guarantee, workload = Guarantee(1.0, 1e-6, 100), replace(DAY, domain=Domain.DECLARED)
    cap = calibrate(guarantee).cap
    assert cap == 8
    assert plan(guarantee, workload, threshold=cap + 1).threshold == cap + 1
    with pytest.raises(SettingError) as caught:
        plan(guarantee, workload, threshold=cap)
    assert caught.value.setting == "threshold"
    assert f"threshold is {cap}: " in str(caught.value)


# 5. Many periods


EVERY = [*OPEN, (USUAL, replace(DAY, domain=Domain.DECLARED))]
every_plan = pytest.mark.parametrize(("guarantee", "workload"), EVERY, ids=name)


@every_plan
def test_the_total_epsilon_grows_with_periods_and_stays_below_as_many_times_epsilon(
    guarantee, workload
):
    made = plan(guarantee, workload)
    totals = [made.epsilon_after(periods) for periods in (1, 2, 3, 7, 30)]
    assert totals == sorted(set(totals))
    for periods, total in zip((2, 3, 7, 30), totals[1:], strict=True):
        assert total < periods * guarantee.epsilon


@every_plan
def test_one_period_costs_hardly_less_than_epsilon(guarantee, workload):
    assert plan(guarantee, workload).epsilon_after(1) == pytest.approx(guarantee.epsilon, rel=1e-5)


@every_plan
def test_one_period_costs_no_more_than_epsilon(guarantee, workload):
    assert plan(guarantee, workload).epsilon_after(1) <= guarantee.epsilon


@pytest.mark.parametrize("k", [3, 10])
def test_one_period_costs_no_more_than_an_epsilon_that_halving_1_never_meets(k):
    assert plan(Guarantee(0.7, 1e-6, k), DAY).epsilon_after(1) <= 0.7


@every_plan
def test_the_total_epsilon_holds_by_the_explicit_loss_of_all_charges_together(guarantee, workload):
    made, periods = plan(guarantee, workload), 4
    calibration = made.calibration
    loss = true_delta(
        made.epsilon_after(periods),
        calibration.noise_scale,
        guarantee.contributions * periods,
        guarantee.neighbours,
    )
    assert loss <= periods * calibration.charge_delta


@every_plan
@pytest.mark.parametrize("periods", [2, 4])
def test_a_smaller_total_epsilon_than_the_stated_one_would_not_hold(guarantee, workload, periods):
    made = plan(guarantee, workload)
    calibration = made.calibration
    loss = true_delta(
        made.epsilon_after(periods) * (1 - 1e-5),
        calibration.noise_scale,
        guarantee.contributions * periods,
        guarantee.neighbours,
    )
    assert loss > periods * calibration.charge_delta


@pytest.mark.parametrize("periods", [1, 7])
def test_the_total_epsilon_leaves_the_reserve_of_every_period_alone(monkeypatch, periods):
    # A billionth of δ is below the precision of the answer, so the question is looked at.
    asked = []
    monkeypatch.setattr(
        calibration_room, "total_epsilon", lambda delta, *_: asked.append(delta) or 1
    )
    made = plan(USUAL, DAY)
    made.epsilon_after(periods)
    assert asked == [
        pytest.approx(made.calibration.charge_delta * periods * (1 - 1e-9), rel=1e-14, abs=0)
    ]


# 6. The precision of the noise


@pytest.mark.parametrize("domain", Domain)
def test_a_guarantee_beyond_the_precision_of_the_noise_is_refused(domain):
    with pytest.raises(SettingError) as caught:
        plan(Guarantee(30.0, 1e-12, 3), Workload(100_000, 10, 0.1, domain))
    assert caught.value.setting == "epsilon"
    assert "epsilon is 30.0" in str(caught.value)
    assert "delta 1e-12" in str(caught.value)
    assert "100,000 steps" in str(caught.value)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-15), (20.0, 1e-9), (40.0, 0.5)])
def test_the_longest_period_is_the_one_whose_draws_fit_into_a_billionth_of_a_tenth_of_delta(
    epsilon, delta
):
    # Five draws a step, each 2^-100 from the ideal law, seen in one world or e^ε-fold in the other.
    longest = math.floor(1e-10 * delta * 2**100 / (5 * (1 + math.exp(epsilon))))
    guarantee = Guarantee(epsilon, delta, 1)
    assert plan(guarantee, Workload(longest, 1, 0.5, Domain.DECLARED))
    with pytest.raises(SettingError, match="beyond the precision of the noise"):
        plan(guarantee, Workload(longest + 1, 1, 0.5, Domain.DECLARED))


# 7. The workload


@pytest.mark.parametrize(
    ("field", "setting", "value"),
    [
        *(("period_steps", "period", value) for value in (0, -1, 1.5, True, 10**9 + 1, None)),
        *(("items", "items", value) for value in (0, -1, 2.5, True, 10**12 + 1, None)),
        *(("beta", "beta", value) for value in (0, 1, 0.0, 1.0, -0.1, math.nan, math.inf, True)),
        *(("domain", "domain", value) for value in ("closed", "", None)),
        *(("items_per_step",) * 2 + (value,) for value in (0, -1, 1.5, True, 101)),
        *(("declared",) * 2 + (value,) for value in (-1, 1.5, True, 10**12 + 1)),
    ],
)
def test_a_workload_out_of_range_is_refused(field, setting, value):
    with pytest.raises(SettingError) as caught:
        replace(DAY, **{field: value})
    assert caught.value.setting == setting
    assert f"{setting} is {value}" in str(caught.value)


def test_a_domain_given_by_name_becomes_the_enum():
    assert Workload(1, 1, 0.5, "declared").domain is Domain.DECLARED
    assert Workload(1, 1, 0.5).domain is Domain.OPEN


def test_beta_is_for_misses_alone_where_no_report_can_be_false():
    workload = Workload(100, 50, 0.1)
    assert workload.miss_tail == pytest.approx(0.1 / 100 / 50, rel=1e-15, abs=0)
    assert workload.false_tail == 1


def test_beta_is_shared_by_all_questions_and_both_kinds_of_mistake_in_a_declared_domain():
    workload = Workload(100, 50, 0.1, Domain.DECLARED)
    assert workload.miss_tail == pytest.approx(0.1 / 2 / 100 / 50, rel=1e-15, abs=0)
    assert workload.false_tail == workload.miss_tail


def test_declared_items_of_an_open_domain_are_asked_about_besides_the_others():
    workload = Workload(100, 50, 0.1, declared=30)
    assert workload.miss_tail == pytest.approx(0.1 / 2 / 100 / (50 + 30), rel=1e-15, abs=0)
    assert workload.false_tail == pytest.approx(0.1 / 2 / 100 / 30, rel=1e-15, abs=0)


class TestUniqueItems:
    """Items that a single user holds: how many are published in a year."""

    CROWD = replace(DAY, users=1_000_000, step_seconds=60.0)

    @pytest.mark.parametrize("users", [1, 1_000, 10**6, 10**9, MOST_USERS])
    @pytest.mark.parametrize("step_seconds", [0.001, 1.0, 60.0, 86_400.0])
    def test_at_most_one_is_expected(self, users, step_seconds):
        made = plan(USUAL, replace(DAY, users=users, step_seconds=step_seconds))
        assert 0 < made.unique_items_per_year <= 1
        # Written out again: users times steps of the longest year times Pr[1 + Z >= t].
        questions = users * 366 * 86_400 / step_seconds
        passes = float(made.law.precise_at_least(made.threshold - 1))
        assert made.unique_items_per_year == pytest.approx(questions * passes, rel=1e-9)

    def test_a_threshold_lower_by_one_would_publish_more(self):
        made = plan(USUAL, self.CROWD)
        assert replace(made, threshold=made.threshold - 1).unique_items_per_year > 1

    def test_it_costs_a_fifth_of_the_threshold_at_a_million_users(self):
        guarantee, usual = Guarantee(1.0, 1e-6, 10), Workload(1440, 10_000, 0.05)
        limited = replace(usual, users=1_000_000)
        assert (plan(guarantee, usual).threshold, plan(guarantee, limited).threshold) == (691, 827)

    def test_it_only_ever_raises_the_threshold(self):
        thresholds = [
            plan(USUAL, replace(DAY, users=users)).threshold
            for users in (0, 1, 100, 10**4, 10**6, 10**9)
        ]
        assert thresholds == sorted(thresholds)

    @pytest.mark.parametrize("users", [0, 10**6])
    def test_the_guarantee_holds_with_and_without_it(self, users):
        made = plan(USUAL, replace(DAY, users=users))
        assert DAY.period_steps * made.detection(1) <= made.calibration.keys_delta
        assert made.calibration.charge_delta + made.calibration.keys_delta == USUAL.delta

    def test_what_the_key_set_does_not_need_is_left_to_the_charges(self):
        limited, unlimited = plan(USUAL, self.CROWD), plan(USUAL, DAY)
        assert limited.calibration.keys_delta < 0.02 * unlimited.calibration.keys_delta
        assert limited.calibration.noise_scale < unlimited.calibration.noise_scale

    def test_a_threshold_by_hand_that_publishes_more_is_refused(self):
        least = plan(USUAL, self.CROWD).threshold
        made = plan(USUAL, self.CROWD, threshold=least)
        assert made.unique_items_per_year <= 1
        with pytest.raises(SettingError, match=r"1,000,000 users needs at least .* lower users"):
            plan(USUAL, self.CROWD, threshold=least - 1)

    def test_without_users_nothing_is_stated(self):
        assert plan(USUAL, DAY).unique_items_per_year is None

    def test_a_declared_domain_publishes_no_unknown_text(self):
        made = plan(USUAL, replace(self.CROWD, domain=Domain.DECLARED))
        assert made == replace(
            plan(USUAL, replace(DAY, domain=Domain.DECLARED)), workload=made.workload
        )
        assert made.unique_items_per_year == 0

    @pytest.mark.parametrize("users", [-1, MOST_USERS + 1, 1.5, True])
    def test_a_number_of_users_out_of_range_is_refused(self, users):
        with pytest.raises(SettingError, match="users is"):
            replace(DAY, users=users)

    @pytest.mark.parametrize("seconds", [0, -1.0, 366 * 86_400 + 1.0])
    def test_a_step_length_out_of_range_is_refused(self, seconds):
        with pytest.raises(SettingError, match="step_seconds is"):
            replace(DAY, step_seconds=seconds)
