"""Counting: only what users still count for, and what a decision costs them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import MonitorError
from streamer.monitors.counters import Charges
from streamer.monitors.counting import Counting
from streamer.monitors.seam import Decision, Holdings, Numbers
from streamer.privacy.prices import FULL, LOUD


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def items(*numbers):
    return np.array(numbers, dtype=np.int64)


def units(*numbers):
    return np.array(numbers, dtype=np.uint16)


def holdings(held):
    """From users to the names of what they hold, the latest first."""
    numbers = Numbers()
    pairs = [(user, numbers[item]) for user in sorted(held) for item in held[user]]
    return Holdings(
        users(*(user for user, _ in pairs)), items(*(item for _, item in pairs)), numbers
    )


def counts(counted):
    tally = counted.tally
    return dict(zip(tally.numbers.names(tally.items), tally.holders.tolist(), strict=True))


def decision(counted, prices):
    """From the names of the reported items to what they cost."""
    numbers = {counted.tally.numbers[item]: price for item, price in prices.items()}
    ordered = sorted(numbers)
    return Decision(
        0, items(*ordered), items(*[9] * len(ordered)), units(*map(numbers.get, ordered))
    )


def as_dictionary(charges):
    return dict(zip(charges.users.tolist(), charges.units.tolist(), strict=True))


class TestForm:
    """How much a user can change in a step depends on it."""

    def refusal(self, who, what, items_per_step):
        held = Holdings(users(*who), items(*what), Numbers({"a": 0, "b": 1, "c": 2, "d": 3}))
        with pytest.raises(MonitorError) as refusal:
            Counting(3, items_per_step).count(0, held)
        return str(refusal.value)

    @pytest.mark.parametrize("most", [1, 2, 3])
    @pytest.mark.parametrize("who", [[2, 1], [1, 3, 2], [1, 1, 0], [2, 2, 1]])
    def test_users_out_of_order_are_refused(self, who, most):
        assert "ascending order" in self.refusal(who, range(len(who)), most)

    @pytest.mark.parametrize("who", [[1, 1], [1, 2, 2, 3], [0, 1, 1]])
    def test_a_user_who_comes_twice_is_refused_where_one_item_counts(self, who):
        assert "more than 1 items" in self.refusal(who, range(len(who)), 1)

    @pytest.mark.parametrize("who", [[1, 1, 1], [1, 2, 2, 2], [0, 0, 1, 1, 1]])
    def test_more_items_than_count_are_refused(self, who):
        assert "more than 2 items" in self.refusal(who, [0, 1, 2, 3, 0][: len(who)], 2)

    @pytest.mark.parametrize("what", [[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    def test_the_same_item_twice_is_refused(self, what):
        assert "same item twice" in self.refusal([7, 7, 7], what, 3)

    def test_different_users_may_hold_the_same_items(self):
        held = holdings({1: "ab", 2: "ba", 3: "a", 9: "b"})
        assert counts(Counting(3, 2).count(0, held)) == {"a": 3, "b": 3}


def test_a_tally_says_of_which_step_it_is():
    assert Counting(3).count(7, holdings({1: "a"})).tally.step == 7


class TestBudget:
    """Of a user's items no more count than it can pay for."""

    @pytest.mark.parametrize(
        ("spent", "counting"),
        [
            *((0, "abc"), (LOUD, "ab"), (FULL, "ab"), (FULL + LOUD, "a"), (2 * FULL, "a")),
            *((2 * FULL + LOUD, ""), (3 * FULL, "")),
        ],
    )
    def test_the_latest_items_count(self, spent, counting):
        monitor = Counting(contributions=3, items_per_step=3)
        monitor.counters.charge(Charges(users(5), units(spent)))
        counted = monitor.count(0, holdings({5: "abc"}))
        assert counts(counted) == dict.fromkeys(counting, 1)
        assert (counted.users, counted.exhausted) == (1, not counting)

    def test_the_order_of_items_decides_not_their_numbers(self):
        monitor = Counting(contributions=1, items_per_step=3)
        counted = monitor.count(0, holdings({4: "cab", 5: "abc", 6: "bca"}))
        assert counts(counted) == {"a": 1, "b": 1, "c": 1}
        assert as_dictionary(monitor.charge(counted, decision(counted, {"b": FULL}))) == {6: FULL}

    def test_a_user_is_charged_for_each_reported_item(self):
        monitor = Counting(contributions=3, items_per_step=3)
        counted = monitor.count(0, holdings({4: "abc", 5: "b", 6: "ca"}))
        prices = {"a": FULL, "b": LOUD, "c": FULL}
        charged = as_dictionary(monitor.charge(counted, decision(counted, prices)))
        assert charged == {4: 2 * FULL + LOUD, 5: LOUD, 6: 2 * FULL}
        assert as_dictionary(monitor.counters.snapshot()) == charged

    def test_charges_never_exceed_the_budget_inside_a_step(self):
        monitor = Counting(contributions=2, items_per_step=3)
        for step in range(4):
            counted = monitor.count(step, holdings({5: "abc"}))
            monitor.charge(counted, decision(counted, dict.fromkeys("abc", FULL)))
        assert as_dictionary(monitor.counters.snapshot()) == {5: 2 * FULL}

    def test_nothing_reported_charges_nobody(self):
        monitor = Counting(contributions=2, items_per_step=3)
        counted = monitor.count(0, holdings({5: "abc", 6: "a"}))
        assert len(monitor.charge(counted, decision(counted, {}))) == 0
        assert monitor.counters.charged == 0


def affordable(model, user, budget):
    return (budget - model[user]) // FULL


HELD = st.dictionaries(
    st.integers(0, 9), st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True)
)
PRICES = st.dictionaries(st.sampled_from("abcde"), st.sampled_from([LOUD, FULL]))


@given(
    steps=st.lists(st.tuples(HELD, PRICES), max_size=8),
    contributions=st.integers(1, 4),
    most=st.integers(1, 4),
)
def test_it_counts_and_charges_as_dictionaries_do(steps, contributions, most):
    counting, model = Counting(contributions, most), Counter()
    for step, (wishes, prices) in enumerate(steps):
        held = {user: latest[:most] for user, latest in wishes.items()}
        active = {
            user: latest[: affordable(model, user, contributions * FULL)]
            for user, latest in held.items()
        }
        counted = counting.count(step, holdings(held))
        assert counts(counted) == Counter(item for latest in active.values() for item in latest)
        assert counted.users == len(held)
        assert counted.exhausted == sum(not latest for latest in active.values())

        known = {item: cost for item, cost in prices.items() if item in counted.tally.numbers}
        charged = as_dictionary(counting.charge(counted, decision(counted, known)))
        paid = {user: sum(known.get(item, 0) for item in latest) for user, latest in active.items()}
        assert charged == {user: cost for user, cost in paid.items() if cost}
        model.update(charged)
        assert as_dictionary(counting.counters.snapshot()) == model
        assert max(model.values(), default=0) <= contributions * FULL


def test_a_new_period_forgets_all_charges_and_has_its_own_limits():
    counting = Counting(contributions=1)
    held = holdings({1: "a", 2: "a"})
    counting.charge(counting.count(0, held), Decision.flat(0, items(0), items(9)))
    assert counting.counters.exhausted == 2
    counting.begin(contributions=2, items_per_step=2)
    counting.charge(counting.count(1, held), Decision.flat(1, items(0), items(9)))
    assert (counting.counters.charged, counting.counters.exhausted) == (2, 0)
    assert counts(counting.count(2, holdings({3: "ab"}))) == {"a": 1, "b": 1}


def test_gone_charges_the_active_holders_in_full_and_still_there_nobody():
    counting = Counting(contributions=2, items_per_step=2)
    counted = counting.count(0, holdings({1: "a", 2: "ab", 3: "b", 4: "c"}))
    # a is reported and loud, b is gone, as is an item that nobody holds; c is still there.
    charges = counting.charge(counted, Decision(0, items(0), items(900), units(LOUD), items(1, 9)))
    assert as_dictionary(charges) == {1: LOUD, 2: LOUD + FULL, 3: FULL}
