"""Counters against the plainest model there is: a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamer.monitors.counters import Counters

repeatable = settings(max_examples=80, deadline=None, derandomize=True, database=None)
# A few users who meet often, and the ends of the 64-bit range.
USERS = [0, 1, 2, 3, 7, 2**53, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]


def numbers(users):
    return np.array(sorted(users), dtype=np.uint64)


class CountersAgainstDictionary(RuleBasedStateMachine):
    @initialize(limit=st.integers(1, 4))
    def start(self, limit):
        self.limit = limit
        self.counters = Counters(limit)
        self.model = {}

    @rule(users=st.sets(st.sampled_from(USERS)))
    def charge(self, users):
        active = {user for user in users if self.model.get(user, 0) < self.limit}
        self.counters.charge(numbers(active))
        for user in active:
            self.model[user] = self.model.get(user, 0) + 1

    @rule(user=st.sampled_from(USERS), data=st.data())
    def charge_several_times_at_once(self, user, data):
        left = self.limit - self.model.get(user, 0)
        if left:
            times = data.draw(st.integers(1, left))
            self.counters.charge(numbers([user]), np.array([times], dtype=np.uint16))
            self.model[user] = self.model.get(user, 0) + times

    @rule()
    def go_on_from_a_snapshot(self):
        users, charges = self.counters.snapshot()
        self.counters = Counters(self.limit)
        self.counters.restore(users, charges)

    @invariant()
    def charges_are_those_of_the_dictionary(self):
        expected = [self.model.get(user, 0) for user in USERS]
        assert self.counters.charges(numbers(USERS)).tolist() == expected

    @invariant()
    def active_are_those_below_the_limit(self):
        expected = [self.model.get(user, 0) < self.limit for user in USERS]
        assert self.counters.active(numbers(USERS)).tolist() == expected

    @invariant()
    def charged_users_are_those_with_an_entry(self):
        assert self.counters.charged == len(self.model)

    @invariant()
    def exhausted_users_are_those_at_the_limit(self):
        spent = [user for user, charge in self.model.items() if charge >= self.limit]
        assert self.counters.exhausted == len(spent)


TestCountersAgainstDictionary = CountersAgainstDictionary.TestCase
TestCountersAgainstDictionary.settings = repeatable


def test_new_counters_know_nobody():
    counters = Counters(1)
    assert (counters.charged, counters.exhausted) == (0, 0)
    assert counters.active(numbers([5, 6])).tolist() == [True, True]
    assert counters.charges(numbers([5, 6])).tolist() == [0, 0]


@repeatable
@given(st.permutations(USERS))
def test_users_may_be_looked_up_in_any_order(users):
    counters = Counters(2)
    counters.charge(numbers(USERS[:6]))
    counters.charge(numbers(USERS[:3]))
    asked = np.array(users, dtype=np.uint64)
    expected = [2 if user in USERS[:3] else 1 if user in USERS[:6] else 0 for user in users]
    assert counters.charges(asked).tolist() == expected
    assert counters.active(asked).tolist() == [charge < 2 for charge in expected]


def test_a_user_takes_ten_bytes_from_the_first_charge_on():
    counters = Counters(2)
    for charged in ([], [5], [5, 2**64 - 1]):
        counters.charge(numbers(charged))
        users, charges = counters.snapshot()
        assert (users.dtype, charges.dtype) == (np.uint64, np.uint16)
        assert counters.charges(numbers([5])).dtype == np.uint16


def test_looking_up_nobody_gives_nothing():
    counters = Counters(1)
    counters.charge(numbers([1]))
    assert counters.active(numbers([])).tolist() == []
    assert counters.charges(numbers([])).tolist() == []


def test_charging_nobody_changes_nothing():
    counters = Counters(1)
    counters.charge(numbers([]))
    assert counters.charged == 0


@pytest.mark.parametrize("limit", [1, 10_000])
def test_a_user_is_exhausted_by_exactly_as_many_charges_as_allowed(limit):
    counters = Counters(limit)
    for _ in range(limit):
        assert counters.active(numbers([9])).all()
        counters.charge(numbers([9]))
    assert not counters.active(numbers([9])).any()
