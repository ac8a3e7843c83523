"""Counting: each user once, only those who still count, and what a decision costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import MonitorError
from streamer.monitors.counting import Counting
from streamer.monitors.seam import Decision, Holdings, Numbers


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def items(*numbers):
    return np.array(numbers, dtype=np.int64)


def holdings(held):
    """From users to the names of what they hold."""
    numbers = Numbers()
    who = sorted(held)
    return Holdings(users(*who), items(*(numbers[held[user]] for user in who)), numbers)


def counts(counted):
    tally = counted.tally
    return dict(zip(tally.numbers.names(tally.items), tally.holders.tolist(), strict=True))


@pytest.mark.parametrize("wrong", [[1, 1], [2, 1], [1, 2, 2, 3], [3, 1, 2]])
def test_users_who_come_twice_or_out_of_order_are_refused(wrong):
    held = Holdings(users(*wrong), items(*[0] * len(wrong)), Numbers({"a": 0}))
    with pytest.raises(MonitorError, match="ascending order, each once"):
        Counting(3).count(0, held)


def test_a_tally_says_of_which_step_it_is():
    assert Counting(3).count(7, holdings({1: "a"})).tally.step == 7


@given(
    held=st.dictionaries(st.integers(0, 9), st.sampled_from("abc")),
    charged=st.dictionaries(st.integers(0, 9), st.integers(1, 2)),
    reported=st.sets(st.sampled_from("abc")),
)
def test_it_counts_and_charges_as_a_dictionary_does(held, charged, reported):
    counting = Counting(contributions=2)
    for user, times in charged.items():
        for _ in range(times):
            counting.counters.charge(users(user))
    active = {user: item for user, item in held.items() if charged.get(user, 0) < 2}

    counted = counting.count(0, holdings(held))
    assert counts(counted) == {
        item: list(active.values()).count(item) for item in set(active.values())
    }
    assert counted.exhausted == len(held) - len(active)

    known = [item for item in sorted(reported) if item in counted.tally.numbers]
    numbers = sorted(counted.tally.numbers[item] for item in known)
    who = counting.charge(counted, Decision(0, items(*numbers), items(*[9] * len(numbers))))
    assert who.tolist() == sorted(user for user, item in active.items() if item in reported)
    for user in range(10):
        times = charged.get(user, 0) + (user in who.tolist())
        assert counting.counters.charges(users(user)).tolist() == [times]


def test_a_new_period_forgets_all_charges_and_has_its_own_limit():
    counting = Counting(contributions=1)
    held = holdings({1: "a", 2: "a"})
    counting.charge(counting.count(0, held), Decision(0, items(0), items(9)))
    assert counting.counters.exhausted == 2
    counting.begin(contributions=2)
    counting.charge(counting.count(1, held), Decision(1, items(0), items(9)))
    assert (counting.counters.charged, counting.counters.exhausted) == (2, 0)
