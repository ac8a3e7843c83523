"""Budget periods: where they begin, how they are numbered, and that their terms stay."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.privacy.guarantee import Guarantee
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
        settings = terms(contributions=3, period_steps=50, items=20)
        guarantee = Guarantee(settings.epsilon, settings.delta, 3)
        assert settings.plan() == plan(guarantee, Workload(50, 20, settings.beta))

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

    def test_its_terms_are_still_planned_as_0_1_0_planned_them(self):
        period = msgspec.json.decode(self.WRITTEN, type=Period)
        assert period.terms.plan() == period.plan

    def test_the_limit_on_unique_items_begins_with_the_next_period(self):
        period = msgspec.json.decode(self.WRITTEN, type=Period)
        today = replace(period.terms, users=1_000_000)
        assert period.at(period.end - 1, today) is period
        assert period.at(period.end, today).plan.threshold == 827
