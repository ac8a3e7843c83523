"""Which events of a file count in a run, and that one user decides it for nobody else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.fate import Fates
from streamer.stream.file_range import FileRange

STEPS = st.integers(0, 12)
MINE = "me"
OTHERS = st.sampled_from(["ann", "bob", "cat"])


def judge(file_range, events):
    """What becomes of (step, user) pairs, one word each."""
    never = np.zeros(len(events), dtype=np.bool_)
    steps = np.array([step for step, _ in events], dtype=np.int64)
    fates = Fates(steps, never, never, never, never)
    judged = file_range.judge(fates, [user for _, user in events])
    assert not (judged.late & judged.left).any()
    words = zip(judged.late, judged.left, strict=True)
    return ["late" if late else "left" if left else "counts" for late, left in words]


def by_definition(events, until=None):
    """Late: two users have an event of a later step before it."""
    words = []
    for place, (step, _) in enumerate(events):
        if until is not None and step >= until:
            words.append("left")
            continue
        ahead = {
            user
            for other, user in events[:place]
            if other > step and (until is None or other < until)
        }
        words.append("late" if len(ahead) > 1 else "counts")
    return words


def test_without_an_end_and_in_any_order_everything_counts():
    file_range = FileRange()
    assert judge(file_range, [(5, "a"), (9, "b"), (1, "c")]) == ["counts"] * 3
    assert file_range.passed is None


def test_what_is_at_or_after_the_end_is_left():
    assert judge(FileRange(until=5), [(4, "a"), (5, "a"), (10**9, "a")]) == [
        *("counts", "left", "left")
    ]


def test_a_sorted_file_is_past_a_step_when_two_users_are():
    file_range = FileRange(ordered=True)
    passed = []
    for event in [(3, "a"), (3, "b"), (7, "a"), (9, "a"), (8, "b"), (9, "b")]:
        assert judge(file_range, [event]) == ["counts"]
        passed.append(file_range.passed)
    assert passed == [None, 2, 2, 2, 7, 8]


def test_an_event_of_a_step_that_a_sorted_file_is_past_is_late():
    events = [(3, "a"), (4, "a"), (3, "b"), (4, "b"), (3, "c"), (4, "c")]
    assert judge(FileRange(ordered=True), events) == [*["counts"] * 4, "late", "counts"]


def test_what_is_left_for_the_next_run_makes_nothing_late():
    events = [(3, "a"), (9, "b"), (9, "c"), (3, "d")]
    file_range = FileRange(until=5, ordered=True)
    assert judge(file_range, events) == ["counts", "left", "left", "counts"]
    assert file_range.passed == 2


@given(st.lists(st.tuples(STEPS, OTHERS)), st.none() | STEPS, st.integers(0, 20))
def test_late_is_what_two_users_are_past_however_much_is_read_at_a_time(events, until, cut):
    file_range = FileRange(until, ordered=True)
    judged = judge(file_range, events[:cut]) + judge(file_range, events[cut:])
    assert judged == by_definition(events, until)


@given(
    others=st.lists(st.tuples(STEPS, OTHERS)).map(sorted),
    mine=st.lists(st.tuples(st.integers(0, 40), STEPS | st.just(10**6))),
    until=st.none() | STEPS,
)
def test_in_a_sorted_file_one_users_events_decide_nothing_about_others(others, mine, until):
    """However many there are, and wherever in the file."""
    events = list(others)
    for place, step in mine:
        events.insert(place, (step, MINE))
    fates = judge(FileRange(until, ordered=True), events)
    of_others = [fate for fate, (_, user) in zip(fates, events, strict=True) if user != MINE]
    assert of_others == judge(FileRange(until, ordered=True), others)
    assert "late" not in of_others
