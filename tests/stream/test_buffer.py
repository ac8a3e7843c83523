"""The buffer of a step against the plainest model there is: dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.buffer import StepBuffer

# A few users who meet often, and the ends of the 64-bit range.
USERS = st.sampled_from([0, 1, 2, 2**32, 2**53 + 1, 2**63, 2**64 - 1])
# Numbers are given in the order of first sight, which must not matter to ties.
NAMES = st.sampled_from(["", "a", "b", "B", "aa", "é", "z", "🦊", "\0", "10", "9"])
EVENTS = st.lists(st.tuples(USERS, NAMES, st.integers(-2, 2) | st.integers(0, 2**53)))


def filled(events, sizes=()):
    """A buffer of these events, added in batches of these sizes and then all at once."""
    buffer = StepBuffer()
    start = 0
    for size in (*sizes, len(events)):
        part = events[start : start + size]
        start += size
        buffer.add(
            np.array([user for user, _, _ in part], dtype=np.uint64),
            [name for _, name, _ in part],
            np.array([time for _, _, time in part], dtype=np.int64),
        )
    return buffer


def held(buffer, most=1):
    """From users to the items that count, the latest first."""
    contents = buffer.holdings(most)
    names = {number: name for name, number in contents.numbers.items()}
    users = contents.users.tolist()
    assert users == sorted(users), "users are in ascending order"
    found = {}
    for user, item in zip(users, contents.items.tolist(), strict=True):
        found.setdefault(user, []).append(names[item])
    return found


def model(events, most=1):
    latest = {}
    for user, name, time in events:
        mine = latest.setdefault(user, {})
        mine[name] = max(mine.get(name, time), time)
    return {
        user: sorted(mine, key=lambda name: (mine[name], name), reverse=True)[:most]
        for user, mine in latest.items()
    }


class TestOneItemAUser:
    def test_the_latest_event_counts(self):
        assert held(filled([(1, "z", 5), (1, "a", 6), (1, "m", 4)])) == {1: ["a"]}

    def test_of_events_at_the_same_time_the_greater_text_counts(self):
        assert held(filled([(1, "b", 5), (1, "c", 5), (1, "a", 5)])) == {1: ["c"]}

    def test_a_user_with_several_events_does_not_touch_the_others(self):
        events = [(3, "x", 1), (2, "y", 1), (2, "z", 2), (1, "x", 1)]
        assert held(filled(events)) == {1: ["x"], 2: ["z"], 3: ["x"]}

    def test_the_same_event_twice_is_one(self):
        assert held(filled([(1, "a", 5), (1, "a", 5)])) == {1: ["a"]}

    def test_a_buffer_without_events_holds_nothing(self):
        assert held(StepBuffer()) == {}

    def test_ties_of_some_users_do_not_touch_the_others(self):
        events = [(user, name, time) for user in range(6) for time in (1, 2) for name in "bca"]
        events += [(1, "later", 3), (4, "earlier", 0), (9, "alone", 2), (3, "zz", 2)]
        held_by = {0: "c", 1: "later", 2: "c", 3: "zz", 4: "c", 5: "c", 9: "alone"}
        assert held(filled(events)) == {user: [item] for user, item in held_by.items()}


class TestSeveralItemsAUser:
    def test_the_latest_items_count_the_latest_first(self):
        events = [(1, "z", 5), (1, "a", 6), (1, "m", 4)]
        assert held(filled(events), 2) == {1: ["a", "z"]}
        assert held(filled(events), 3) == held(filled(events), 100) == {1: ["a", "z", "m"]}

    def test_of_items_at_the_same_time_the_greater_text_goes_first(self):
        events = [(1, "b", 5), (1, "c", 5), (1, "a", 5), (1, "A", 6)]
        assert held(filled(events), 3) == {1: ["A", "c", "b"]}

    def test_an_item_counts_once_and_is_as_late_as_its_latest_event(self):
        events = [(1, "a", 1), (1, "b", 3), (1, "a", 4), (1, "c", 2), (1, "b", 3)]
        assert held(filled(events), 2) == {1: ["a", "b"]}

    def test_an_item_that_is_often_sent_does_not_hide_the_others(self):
        events = [(1, "a", time) for time in range(50)] + [(1, "b", 0), (1, "c", 1)]
        assert held(filled(events), 3) == {1: ["a", "c", "b"]}

    def test_users_with_one_item_stand_between_those_with_several(self):
        events = [(user, name, time) for user in (2, 4) for time, name in enumerate("xyz")]
        events += [(user, "a", time) for user in (1, 3, 5) for time in range(2)]
        several, single = ["z", "y"], ["a"]
        expected = {1: single, 2: several, 3: single, 4: several, 5: single}
        assert held(filled(events), 2) == expected

    @pytest.mark.parametrize("most", [1, 3, 5])
    def test_many_ties_of_many_users(self, most):
        generator = np.random.default_rng(1)
        users, names, times = (generator.integers(0, top, 5_000) for top in (400, 50, 3))
        events = [
            (user, f"i-{name}", time)
            for user, name, time in zip(users.tolist(), names.tolist(), times.tolist(), strict=True)
        ]
        assert held(filled(events), most) == model(events, most)

    @given(EVENTS, st.integers(1, 4))
    def test_it_holds_what_dictionaries_hold(self, events, most):
        assert held(filled(events), most) == model(events, most)


class TestOrder:
    @given(
        EVENTS.flatmap(lambda events: st.tuples(st.just(events), st.permutations(events))),
        st.lists(st.integers(0, 5), max_size=5),
        st.integers(1, 4),
    )
    def test_order_and_batches_change_nothing(self, orders, sizes, most):
        events, other_order = orders
        assert held(filled(other_order, sizes), most) == held(filled(events), most)

    @given(EVENTS)
    def test_looking_at_the_contents_changes_nothing(self, events):
        buffer = filled(events)
        assert held(buffer, 2) == held(buffer, 2)


class TestSize:
    @pytest.mark.parametrize("size", [63, 64, 65, 96, 97, 1_000])
    def test_it_grows_one_by_one(self, size):
        events = [(user, f"i-{user % 7}", user) for user in range(size)]
        buffer = filled(events, [1] * size)
        assert len(buffer) == size
        assert held(buffer) == model(events)

    @pytest.mark.parametrize("sizes", [(64, 1), (65,), (10, 5_000), (5_000, 1, 5_000)])
    def test_it_grows_by_batches_of_any_size(self, sizes):
        events = [(user, f"i-{user % 7}", user) for user in range(sum(sizes))]
        assert held(filled(events, sizes)) == model(events)

    def test_duplicates_are_counted_in_its_length(self):
        assert len(filled([(1, "a", 5), (1, "a", 5)])) == 2

    def test_items_are_numbered_once_each(self):
        contents = filled([(user, "ab"[user % 2], 0) for user in range(100)]).holdings(1)
        assert contents.numbers == {"a": 0, "b": 1}
