"""Plans with Gaussian noise: every condition on the thresholds, with the law's own numbers."""

from dataclasses import replace

import msgspec
import pytest

from streamer.errors import SettingError
from streamer.privacy.baseline_plans import plan_histograms
from streamer.privacy.calibration import Calibration, calibrate, sketch
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.horizon import horizon_delta
from streamer.privacy.priced import Horizon
from streamer.privacy.prices import CHANGES, LOUD, VALUES
from streamer.privacy.terms import Attention, Domain, Method, Noise
from streamer.privacy.threshold import Plan, Workload, plan

USUAL = Guarantee(1.0, 1e-6, 10)
DAY = Workload(period_steps=1440, items=10_000, beta=0.05)
CROWD = replace(DAY, users=1_000_000)
HYBRID = replace(CROWD, items_per_step=3, declared=500)
every_workload = pytest.mark.parametrize("workload", [DAY, CROWD, HYBRID], ids=str)


@pytest.mark.slow
def test_the_usual_plan_needs_two_thirds_of_the_laplace_threshold():
    planned, limited = plan(USUAL, DAY), plan(USUAL, CROWD)
    assert (planned.threshold, limited.threshold) == (451, 492)
    assert planned.calibration.noise is Noise.GAUSSIAN
    assert plan(USUAL, DAY, Method.EXACT).threshold == 691


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "steps", "epsilon", "threshold", "sigma"),
    [(10, 1440, 1.0, 397, 63.7), (10, 24, 1.0, 156, 28.1), (10, 1440, 4.0, 115, 18.2)],
)
def test_every_step_has_the_thresholds_of_the_reference(k, steps, epsilon, threshold, sigma):
    workload = replace(DAY, period_steps=steps)
    made = plan(Guarantee(epsilon, 1e-6, k), workload, attention=Attention.EVERY_STEP)
    # The reference divides δ evenly; a better division may have more noise.
    assert made.threshold <= threshold + 1
    assert made.calibration.noise_scale == pytest.approx(sigma, rel=0.03)


@pytest.mark.slow
@every_workload
def test_the_threshold_covers_the_key_set_and_one_less_does_not(workload):
    made = plan(USUAL, workload)

    def covered(threshold: int) -> bool:
        lone = made.law.at_least(threshold - 1)
        unique = workload.users * workload.items_per_step * 366 * 1440 * lone
        return workload.questions * lone <= made.calibration.keys_delta and unique <= 1

    assert workload.questions == workload.items_per_step * 1440
    assert covered(made.threshold)
    assert not covered(made.threshold - 1)


@every_workload
def test_the_charges_have_the_noise_that_the_rest_of_delta_needs(workload):
    made = plan(USUAL, workload)
    noise = made.calibration
    assert noise.charge_delta + noise.keys_delta == pytest.approx(USUAL.delta, rel=1e-12)
    horizon = Horizon(10, workload.questions, USUAL.neighbours, CHANGES)
    assert horizon_delta(1.0, noise.noise_scale, horizon) <= noise.charge_delta * 1.005
    assert made.epsilon_after(1) <= 1.0


@every_workload
def test_an_item_that_stays_at_the_threshold_is_seldom_called_gone(workload):
    made = plan(USUAL, workload)

    def mistaken(threshold: int, exit_threshold: int) -> float:
        return workload.period_steps * made.law.below(exit_threshold - threshold)

    assert mistaken(made.threshold, made.exit_threshold) <= workload.beta
    assert mistaken(made.threshold, made.exit_threshold + 1) > workload.beta
    if workload.declared:
        assert mistaken(made.declared_threshold, made.declared_exit_threshold) <= workload.beta


@pytest.mark.slow
def test_an_exit_is_at_least_one_user():
    made = plan(Guarantee(8.0, 0.3, 1), Workload(1000, 10, 1e-9))
    assert made.exit_threshold == 1


@every_workload
def test_nothing_of_the_guaranteed_weight_is_missed(workload):
    made = plan(USUAL, workload)
    asked = workload.period_steps * (workload.items + workload.declared)
    beta = workload.beta / 2 if workload.declared else workload.beta
    weights = [(made.threshold, made.guaranteed_weight)]
    if workload.declared:
        weights.append((made.declared_threshold, made.declared_guaranteed_weight))
    for threshold, weight in weights:
        assert asked * made.law.below(threshold - weight) <= beta
        assert asked * made.law.below(threshold - weight + 1) > beta


def test_declared_items_have_the_smallest_threshold_that_is_seldom_false():
    made = plan(USUAL, HYBRID)
    questions = HYBRID.period_steps * HYBRID.declared
    assert questions * made.law.at_least(made.declared_threshold) <= HYBRID.beta / 2
    assert questions * made.law.at_least(made.declared_threshold - 1) > HYBRID.beta / 2
    assert made.declared_threshold < made.threshold


def test_without_declared_items_there_is_no_second_threshold():
    made = plan(USUAL, DAY)
    assert made.declared_threshold is made.declared_exit_threshold is None
    assert made.declared_guaranteed_weight is None


def test_a_declared_domain_leaves_all_of_delta_to_the_charges():
    made = plan(USUAL, replace(DAY, domain=Domain.DECLARED))
    assert made.calibration.keys_delta == 0
    questions = DAY.period_steps * DAY.items
    assert questions * made.law.at_least(made.threshold) <= DAY.beta / 2
    assert questions * made.law.at_least(made.threshold - 1) > DAY.beta / 2
    assert made.law.precise_at_least(made.threshold) > 0


def test_a_declared_domain_refuses_a_threshold_without_precise_tails():
    workload = replace(DAY, domain=Domain.DECLARED)
    least = plan(USUAL, workload).law.least_threshold
    assert plan(USUAL, workload, threshold=least).threshold == least
    with pytest.raises(SettingError, match=f"threshold is {least - 1}"):
        plan(USUAL, workload, threshold=least - 1)


class TestPrices:
    def test_changes_pays_for_both_kinds_of_questions(self):
        made = plan(USUAL, DAY)
        noise = made.calibration
        assert (made.attention, noise.kinds) == (Attention.CHANGES, CHANGES)
        assert (made.loud_price, noise.kinds.loud) == (0.2, LOUD)
        assert noise.noise_scale <= made.loud_excess < noise.noise_scale + 1

    def test_every_step_pays_the_same_for_every_report(self):
        made = plan(USUAL, DAY, attention=Attention.EVERY_STEP)
        assert made.calibration.kinds == VALUES
        assert (made.attention, made.loud_price) == (Attention.EVERY_STEP, 1)
        assert made.exit_threshold is None
        assert made.threshold < plan(USUAL, DAY).threshold

    @pytest.mark.parametrize("method", [Method.EXACT, Method.THEOREM])
    def test_other_calibrations_cover_every_step_only(self, method):
        assert plan(USUAL, DAY, method).calibration.attention is Attention.EVERY_STEP
        with pytest.raises(SettingError, match=f"attention is changes: the {method} calibration"):
            plan(USUAL, DAY, method, attention=Attention.CHANGES)

    def test_an_unknown_attention_is_refused(self):
        with pytest.raises(SettingError, match="attention is never: use one of changes"):
            plan(USUAL, DAY, attention="never")


class TestSeveralItems:
    @pytest.mark.slow
    def test_five_items_cost_about_a_quarter_of_the_threshold(self):
        one, five = plan(USUAL, DAY), plan(USUAL, replace(DAY, items_per_step=5))
        assert 1.1 < five.threshold / one.threshold < 1.35

    def test_with_laplace_noise_only_the_key_set_grows(self):
        one, five = (
            plan(USUAL, replace(DAY, items_per_step=items), Method.EXACT) for items in (1, 5)
        )
        noise = five.calibration
        assert 5 * 1440 * five.detection(1) <= noise.keys_delta
        assert noise.noise_scale == pytest.approx(one.calibration.noise_scale, rel=0.02)
        assert five.threshold > one.threshold

    def test_items_that_the_budget_does_not_pay_for_cost_nothing(self):
        """Two contributions: a third item of a user never counts in a step."""
        guarantee = Guarantee(1.0, 1e-6, 2)
        two, three = (
            plan(guarantee, Workload(3, 100, 0.05, users=1000, items_per_step=items))
            for items in (2, 3)
        )
        assert three.workload.items_per_step == 3
        assert three.calibration == two.calibration
        assert three.calibration.questions == 6
        assert three.threshold == two.threshold
        assert three.unique_items_per_year == two.unique_items_per_year
        histograms = (plan_histograms(guarantee, each.workload) for each in (two, three))
        assert len(set(histograms)) == 1

    def test_unique_items_are_counted_for_every_item_of_a_user(self):
        one, three = CROWD, replace(CROWD, items_per_step=3)
        assert three.unique_items == 3 * one.unique_items
        assert plan(USUAL, three).unique_items_per_year <= 1


class TestByHand:
    @pytest.mark.slow
    def test_the_planned_threshold_is_accepted_and_a_lower_one_is_not(self):
        least = plan(USUAL, CROWD).threshold
        made = plan(USUAL, CROWD, threshold=least)
        assert made.threshold == least
        assert CROWD.questions * made.detection(1) <= made.calibration.keys_delta
        with pytest.raises(SettingError, match=r"needs at least 49[123] to keep delta"):
            plan(USUAL, CROWD, threshold=least - 2)

    @pytest.mark.slow
    @pytest.mark.parametrize("more", [1, 30, 300])
    def test_a_higher_one_takes_less_of_delta_and_less_noise(self, more):
        planned = plan(USUAL, DAY)
        made = plan(USUAL, DAY, threshold=planned.threshold + more)
        assert DAY.questions * made.detection(1) <= made.calibration.keys_delta
        assert made.calibration.keys_delta < planned.calibration.keys_delta
        assert made.calibration.noise_scale < planned.calibration.noise_scale


class TestTotals:
    @pytest.mark.slow
    def test_totals_grow_slower_than_the_number_of_periods(self):
        made = plan(USUAL, CROWD)
        totals = [made.epsilon_after(periods) for periods in (1, 2, 7, 30, 365)]
        assert totals == sorted(totals)
        assert totals[1] < 1.4
        assert totals[3] < 5

    @pytest.mark.slow
    def test_a_total_is_private_by_the_loss_of_all_charges_and_questions_together(self):
        made, periods = plan(USUAL, CROWD), 7
        noise = made.calibration
        horizon = Horizon(70, 7 * 1440, USUAL.neighbours, CHANGES)
        total = horizon_delta(made.epsilon_after(periods), noise.noise_scale, horizon)
        assert total <= periods * noise.charge_delta * 1.01

    @pytest.mark.slow
    def test_a_total_delta_of_1_or_more_promises_nothing(self):
        made = plan(Guarantee(1.0, 0.01, 10), Workload(1440, 100, 0.05))
        assert made.epsilon_after(300) == 0

    def test_a_small_sigma_has_a_total_where_charges_cannot_run_out(self):
        made = plan(Guarantee(8.0, 1e-6, 10), Workload(2, 100, 0.05))
        assert made.calibration.noise_scale < 3
        assert 8 < made.epsilon_after(2) < 16


class TestRange:
    def test_noise_beyond_the_sampler_is_refused_with_what_to_change(self):
        with pytest.raises(SettingError) as caught:
            plan(Guarantee(1e-5, 1e-6, 10), DAY)
        assert caught.value.setting == "epsilon"
        assert "needs noise of more than 1,000,000 users; raise epsilon" in str(caught.value)

    def test_a_horizon_must_be_known(self):
        with pytest.raises(SettingError, match="questions is 0"):
            calibrate(USUAL, Method.HORIZON)

    @pytest.mark.slow
    def test_a_sketch_is_close_to_the_calibration(self):
        for share in (1e-4, 0.3, 0.7):
            arguments = (USUAL, Method.HORIZON, share * 1e-6, 1440, Attention.CHANGES)
            about, exact = sketch(*arguments), calibrate(*arguments)
            assert about.noise_scale == pytest.approx(exact.noise_scale, rel=3e-3)
            assert replace(about, noise_scale=exact.noise_scale) == exact


def test_a_plan_is_the_same_after_it_was_written_and_read():
    made = plan(USUAL, HYBRID)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Plan) == made


def test_a_calibration_of_0_1_0_is_one_with_laplace_noise_and_full_prices():
    written = (
        b'{"guarantee":{"epsilon":1.0,"delta":1e-6,"contributions":10,"neighbours":"replace"},'
        b'"method":"exact","keys_delta":2.5e-7,"noise_scale":31.9,"delta2":0.62}'
    )
    read = msgspec.json.decode(written, type=Calibration)
    assert (read.noise, read.kinds, read.questions) == (Noise.LAPLACE, VALUES, 0)
