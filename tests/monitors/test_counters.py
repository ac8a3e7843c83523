"""Counters against the plainest model there is: a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamer.monitors.counters import Charges, Counters
from streamer.privacy.guarantee import MOST_CONTRIBUTIONS
from streamer.privacy.prices import FULL, LOUD

repeatable = settings(max_examples=80, deadline=None, derandomize=True, database=None)
# A few users who meet often, and the ends of the 64-bit range.
USERS = [0, 1, 2, 3, 7, 2**53, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]


def numbers(users):
    return np.array(sorted(users), dtype=np.uint64)


def full(*users):
    return Charges.full(numbers(users))


def charges(units):
    """From users to their units."""
    return Charges(numbers(units), np.array([units[user] for user in sorted(units)], np.uint16))


class CountersAgainstDictionary(RuleBasedStateMachine):
    @initialize(contributions=st.integers(1, 4))
    def start(self, contributions):
        self.contributions = contributions
        self.budget = contributions * FULL
        self.counters = Counters(contributions)
        self.model = {}

    def left(self, user):
        return self.budget - self.model.get(user, 0)

    @rule(users=st.sets(st.sampled_from(USERS)), data=st.data())
    def charge(self, users, data):
        """Any units that a user has left, as from several reports in a step."""
        units = {
            user: data.draw(st.integers(LOUD, self.left(user)))
            for user in users
            if self.left(user) >= FULL
        }
        self.counters.charge(charges(units))
        for user, each in units.items():
            self.model[user] = self.model.get(user, 0) + each

    @rule()
    def go_on_from_a_snapshot(self):
        taken = self.counters.snapshot()
        self.counters = Counters(self.contributions)
        self.counters.restore(taken)

    @invariant()
    def units_are_those_of_the_dictionary(self):
        expected = [self.model.get(user, 0) for user in USERS]
        assert self.counters.units(numbers(USERS)).tolist() == expected

    @invariant()
    def active_are_those_who_can_pay_a_full_charge(self):
        expected = [self.left(user) >= FULL for user in USERS]
        assert self.counters.active(numbers(USERS)).tolist() == expected

    @invariant()
    def affordable_are_as_many_full_charges_as_fit_into_the_budget(self):
        expected = [self.left(user) // FULL for user in USERS]
        assert self.counters.affordable(numbers(USERS)).tolist() == expected

    @invariant()
    def charged_users_are_those_with_an_entry(self):
        assert self.counters.charged == len(self.model)

    @invariant()
    def exhausted_users_are_those_who_cannot_pay_a_full_charge(self):
        assert self.counters.exhausted == sum(self.left(user) < FULL for user in self.model)


TestCountersAgainstDictionary = pytest.mark.slow(CountersAgainstDictionary.TestCase)
TestCountersAgainstDictionary.settings = repeatable


def test_new_counters_know_nobody():
    counters = Counters(1)
    assert (counters.charged, counters.exhausted) == (0, 0)
    assert counters.active(numbers([5, 6])).tolist() == [True, True]
    assert counters.units(numbers([5, 6])).tolist() == [0, 0]


@repeatable
@given(st.permutations(USERS))
def test_users_may_be_looked_up_in_any_order(users):
    counters = Counters(2)
    counters.charge(full(*USERS[:6]))
    counters.charge(full(*USERS[:3]))
    asked = np.array(users, dtype=np.uint64)
    expected = [2 if user in USERS[:3] else 1 if user in USERS[:6] else 0 for user in users]
    assert counters.units(asked).tolist() == [FULL * times for times in expected]
    assert counters.active(asked).tolist() == [times < 2 for times in expected]


def test_a_user_takes_ten_bytes_from_the_first_charge_on():
    counters = Counters(2)
    for charged in ([], [5], [5, 2**64 - 1]):
        counters.charge(full(*charged))
        taken = counters.snapshot()
        assert (taken.users.dtype, taken.units.dtype) == (np.uint64, np.uint16)
        assert counters.units(numbers([5])).dtype == np.uint16


def test_a_snapshot_does_not_change_with_later_charges():
    counters = Counters(2)
    counters.charge(full(5))
    taken = counters.snapshot()
    counters.charge(full(5, 6))
    assert (taken.users.tolist(), taken.units.tolist()) == ([5], [FULL])


def test_looking_up_nobody_gives_nothing():
    counters = Counters(1)
    counters.charge(full(1))
    assert counters.active(numbers([])).tolist() == []
    assert counters.units(numbers([])).tolist() == []


def test_charging_nobody_changes_nothing():
    counters = Counters(1)
    counters.charge(Charges.none())
    assert counters.charged == 0


@pytest.mark.parametrize("contributions", [1, MOST_CONTRIBUTIONS])
def test_a_user_is_exhausted_by_exactly_as_many_charges_as_allowed(contributions):
    counters = Counters(contributions)
    for _ in range(contributions):
        assert counters.active(numbers([9])).all()
        counters.charge(full(9))
    assert not counters.active(numbers([9])).any()


def test_a_loud_report_leaves_less_than_a_full_charge_of_the_last_one():
    counters = Counters(1)
    counters.charge(charges({9: LOUD}))
    assert (counters.charged, counters.exhausted) == (1, 1)
    assert counters.affordable(numbers([9])).tolist() == [0]


def test_charges_add_up_over_all_users():
    assert charges({1: 2**16 - 1, 2: 2**16 - 1, 3: 2}).total == 2**17
    assert (len(full(1, 2)), full(1, 2).total) == (2, 2 * FULL)
