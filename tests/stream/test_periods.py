"""Budget periods: where they begin, how they are numbered, and that their terms stay."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.law import NoiseLaw
from streamer.privacy.terms import Domain, Noise
from streamer.privacy.threshold import Workload, plan
from streamer.stream.periods import Period, Terms
from tests.stream.making import terms


class TestNumbering:
    @pytest.mark.parametrize(
        ("step", "number", "first"), [(0, 0, 0), (99, 0, 0), (100, 1, 100), (12_345, 123, 12_300)]
    )
    def test_the_periods_of_a_new_stream_begin_at_multiples_of_their_length(
        self, step, number, first
    ):
        period = Period.containing(step, terms(period_steps=100))
        assert (period.number, period.first, period.end) == (number, first, first + 100)

    def test_a_step_of_the_period_is_in_the_period(self):
        period = Period.containing(250, terms(period_steps=100))
        assert period.at(299, period.terms) is period

    def test_the_step_after_the_end_begins_the_next_period(self):
        period = Period.containing(250, terms(period_steps=100))
        later = period.at(300, period.terms)
        assert (later.number, later.first, later.end) == (3, 300, 400)

    def test_many_periods_may_be_skipped_at_once(self):
        period = Period.containing(0, terms(period_steps=100))
        later = period.at(10**9 + 5, period.terms)
        assert (later.number, later.first) == (10**7, 10**9)

    @pytest.mark.slow
    @given(st.integers(0, 10**6), st.integers(1, 50), st.lists(st.integers(0, 500), max_size=10))
    def test_every_step_lies_in_its_period_however_it_was_reached(self, start, length, jumps):
        settings = terms(period_steps=length)
        period = Period.containing(start, settings)
        step = start
        for jump in jumps:
            step += jump
            period = period.at(step, settings)
            assert period == Period.containing(step, settings)
            assert period.first <= step < period.end

    @pytest.mark.parametrize(
        ("step", "number"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (250, 2), (299, 2)]
    )
    def test_it_knows_the_numbers_of_the_periods_before_it(self, step, number):
        assert Period.containing(250, terms(period_steps=100)).number_at(step) == number

    @pytest.mark.slow
    @given(st.integers(0, 10**6), st.integers(1, 50), st.integers(0, 500))
    def test_the_number_of_an_earlier_step_is_that_of_its_own_period(self, start, length, jump):
        settings = terms(period_steps=length)
        later = Period.containing(start + jump, settings)
        assert later.number_at(start) == Period.containing(start, settings).number


class TestNewTerms:
    def test_they_do_not_touch_the_current_period(self):
        period = Period.containing(0, terms())
        assert period.at(99, terms(contributions=5)) is period

    def test_they_begin_with_the_next_period(self):
        changed = terms(contributions=5)
        later = Period.containing(0, terms()).at(100, changed)
        assert (later.number, later.terms, later.plan) == (1, changed, changed.plan())

    @pytest.mark.parametrize(
        ("step", "number", "first", "end"),
        [(300, 3, 300, 307), (306, 3, 300, 307), (307, 4, 307, 314), (1_000, 103, 1_000, 1_007)],
    )
    def test_another_length_counts_from_the_end_of_the_old_period(self, step, number, first, end):
        period = Period.containing(250, terms(period_steps=100))
        later = period.at(step, terms(period_steps=7))
        assert (later.number, later.first, later.end) == (number, first, end)

    @pytest.mark.parametrize(("step", "number"), [(299, 2), (300, 3), (306, 3), (307, 4), (313, 4)])
    def test_numbers_of_earlier_steps_count_on_over_the_change(self, step, number):
        later = Period.containing(250, terms(period_steps=100)).at(310, terms(period_steps=7))
        assert later.number_at(step) == number


class TestTerms:
    def test_the_plan_is_the_one_of_the_guarantee_and_the_workload(self):
        settings = terms(contributions=3, period_steps=50, items=20, items_per_step=4)
        guarantee = Guarantee(settings.epsilon, settings.delta, 3)
        workload = Workload(50, 20, settings.beta, items_per_step=4)
        assert settings.plan() == plan(guarantee, workload, settings.calibration)

    def test_declared_items_are_planned_for(self):
        settings = terms(declared_items=("a", "b"))
        assert settings.plan().workload.declared == 2
        assert settings.plan().declared_threshold < settings.plan().threshold
        assert [settings.declares(item) for item in ("a", "ab", "b", "c", "")] == [
            *(True, False, True, False, False)
        ]

    def test_without_other_items_the_domain_is_the_list(self):
        closed = terms(declared_items=("a", "b"), open_domain=False).plan()
        assert (closed.workload.domain, closed.workload.items) == (Domain.DECLARED, 2)
        assert closed.calibration.keys_delta == 0

    def test_every_item_has_its_own_threshold_and_interval(self):
        period = Period.containing(0, terms(declared_items=("a",)))
        plan = period.plan
        assert period.threshold_of("a") == plan.declared_threshold < plan.threshold
        assert period.threshold_of("b") == plan.threshold
        assert period.interval("a", plan.threshold) != period.interval("b", plan.threshold)

    def test_a_threshold_by_hand_is_in_the_plan(self):
        by_hand = terms().plan().threshold + 5
        assert terms(threshold=by_hand).plan().threshold == by_hand

    def test_a_threshold_by_hand_that_breaks_the_guarantee_is_refused(self):
        with pytest.raises(SettingError, match="threshold"):
            terms(threshold=1).plan()

    def test_the_margin_is_that_of_the_noise(self):
        period = Period.containing(0, terms())
        assert period.margin == period.plan.law.margin() > 0

    @pytest.mark.parametrize("refresh", [0, -1, 1.5, True])
    def test_a_refresh_of_no_whole_number_of_steps_is_refused(self, refresh):
        with pytest.raises(SettingError, match="refresh_steps"):
            terms(refresh_steps=refresh)

    def test_a_period_keeps_its_plan_when_planning_changes(self, monkeypatch):
        period = Period.containing(0, terms())
        kept = period.plan
        monkeypatch.setattr("streamer.stream.periods.plan", None)
        assert period.at(99, terms()).plan is kept

    def test_a_period_is_the_same_after_it_was_written_and_read(self):
        settings = terms()
        plain = Terms(**{field: getattr(settings, field) for field in Terms.__slots__})
        period = Period.containing(250, plain)
        assert msgspec.json.decode(msgspec.json.encode(period), type=Period) == period


def coverage(period, users, interval):
    """Of the reports of an item with so many users, the share whose interval has the number."""
    law, threshold = period.plan.law, period.plan.threshold
    far = threshold + users + 40 * period.margin
    covered = sum(
        law.at_least(estimate - users) - law.at_least(estimate + 1 - users)
        for estimate in range(threshold, far)
        if (ends := interval(estimate))[0] <= users <= ends[1]
    )
    return covered / law.at_least(threshold - users)


class TestIntervals:
    @pytest.fixture(params=[10.0, 1.0], ids="epsilon {}".format)
    def period(self, request):
        return Period.containing(0, terms(epsilon=request.param))

    def test_they_have_the_number_of_users_in_95_percent_of_reports_whatever_it_is(self, period):
        threshold, margin = period.plan.threshold, period.margin
        for users in range(1, threshold + 3 * margin, max(1, margin // 4)):
            covered = coverage(period, users, lambda estimate: period.interval("a", estimate))
            assert covered >= 0.95 - 1e-9, users

    def test_the_margin_does_not(self, period):
        users, margin = period.plan.threshold - 2 * period.margin, period.margin
        assert coverage(period, users, lambda f: (f - margin, f + margin)) < 0.1

    def test_far_above_the_threshold_they_are_those_of_the_noise(self, period):
        for excess in (8, 20, 1_000, 10**9):
            estimate = period.plan.threshold + excess * period.margin
            low, high = period.interval("a", estimate)
            assert estimate - low == pytest.approx(period.margin, abs=1)
            assert high - estimate == pytest.approx(period.margin, abs=1)

    def test_at_the_threshold_they_reach_down_to_nobody(self, period):
        low, high = period.interval("a", period.plan.threshold)
        assert low == 0
        assert high < period.plan.threshold + period.margin

    def test_they_rise_with_the_estimate_and_are_whole_users(self, period):
        threshold, margin = period.plan.threshold, period.margin
        ends = [period.interval("a", threshold + n) for n in range(20 * margin)]
        assert all(0 <= low <= high for low, high in ends)
        assert ends == sorted(ends)
        assert [high for _, high in ends] == sorted(high for _, high in ends)

    def test_one_that_was_computed_is_kept(self, period, monkeypatch):
        found = period.interval("a", period.plan.threshold + 1)
        monkeypatch.setattr(NoiseLaw, "at_least", None)
        assert period.interval("b", period.plan.threshold + 1) == found

    def test_a_period_of_0_1_0_has_them_too(self):
        period = msgspec.json.decode(TestPeriodOf010.WRITTEN, type=Period)
        assert period.interval("a", 2_000) == (1_904, 2_096)


class TestPeriodOf010:
    """A period as 0.1.0 wrote it into its ledger, without users and step length."""

    WRITTEN = (
        b'{"number":20454,"first":29453760,"terms":{"epsilon":1.0,"delta":1e-6,"contributions":10,'
        b'"neighbours":"replace","calibration":"exact","period_steps":1440,"refresh_steps":1,'
        b'"beta":0.05,"items":100000,"threshold":null},"plan":{"workload":{"period_steps":1440,'
        b'"items":100000,"beta":0.05,"domain":"open"},"calibration":{"guarantee":{"epsilon":1.0,'
        b'"delta":1e-6,"contributions":10,"neighbours":"replace"},"method":"exact",'
        b'"keys_delta":2.562230762700719e-7,"noise_scale":31.916937,"delta2":0.6279736966267694},'
        b'"threshold":696},"margin":96,"before":null}'
    )

    def test_it_keeps_its_plan(self):
        period = msgspec.json.decode(self.WRITTEN, type=Period)
        assert (period.number, period.first, period.margin) == (20454, 29453760, 96)
        assert (period.plan.threshold, period.plan.calibration.noise_scale) == (696, 31.916937)
        assert period.plan.unique_items_per_year is None

    def test_a_new_plan_for_its_terms_would_be_a_little_sharper(self):
        """0.1.0 raised the threshold for reports of unheld items, which an open domain has not."""
        period = msgspec.json.decode(self.WRITTEN, type=Period)
        assert period.terms.plan().calibration.noise is Noise.LAPLACE
        assert period.terms.plan().threshold == 691

    def test_the_limit_on_unique_items_begins_with_the_next_period(self):
        period = msgspec.json.decode(self.WRITTEN, type=Period)
        today = replace(period.terms, users=1_000_000)
        assert period.at(period.end - 1, today) is period
        assert period.at(period.end, today).plan.threshold == 827
