"""When a step may close: as soon as no partition can hold anything more for it, never before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.closing import Frontier
from streamer.stream.timing import StepTiming

LENGTH, EPOCH, LATENESS, SKEW = 10, 100, 5, 3
TIMING = StepTiming(LENGTH, EPOCH, LATENESS)

names = st.sampled_from("abc")
moments = st.integers(EPOCH, EPOCH + 500)
findings = st.lists(st.tuples(st.sampled_from(["read", "drained"]), names, moments))


def over(step):
    """The first arrival that is too late for this step."""
    return TIMING.end(step) + LATENESS


def frontier(*partitions, skew=SKEW):
    made = Frontier(TIMING, skew)
    made.watch(partitions)
    return made


def follow(made, found):
    for kind, partition, moment in found:
        getattr(made, kind)(partition, moment)


def furthest(found, partition):
    """How far this partition is known to be read, in time of arrival."""
    known = [
        moment if kind == "read" else moment - SKEW
        for kind, name, moment in found
        if name == partition
    ]
    return max(known, default=None)


class TestReading:
    def test_a_step_may_close_with_the_first_record_that_is_too_late_for_it(self):
        made = frontier("a")
        made.read("a", over(4) - 1)
        assert made.closable() == 3
        made.read("a", over(4))
        assert made.closable() == 4

    def test_an_earlier_arrival_after_a_later_one_reopens_nothing(self):
        made = frontier("a")
        made.read("a", over(4))
        made.read("a", over(1))
        assert made.closable() == 4

    def test_nothing_closes_while_no_partition_is_known(self):
        assert frontier().closable() is None

    def test_nothing_closes_before_every_partition_was_heard_of(self):
        made = frontier("a", "b")
        made.read("a", over(9))
        assert made.closable() is None
        made.read("b", over(2))
        assert made.closable() == 2

    def test_a_backlog_holds_up_those_who_have_none(self):
        made = frontier("idle", "busy")
        made.read("busy", over(1))
        for now in range(over(1), over(50)):
            made.drained("idle", now)
        assert made.closable() == 1

    def test_a_partition_that_is_heard_of_unasked_counts_too(self):
        made = frontier("a")
        made.read("a", over(9))
        made.read("b", over(2))
        assert made.closable() == 2


class TestDrained:
    def test_a_step_may_close_once_the_skew_has_passed_too(self):
        made = frontier("a")
        made.drained("a", over(4) + SKEW - 1)
        assert made.closable() == 3
        made.drained("a", over(4) + SKEW)
        assert made.closable() == 4

    def test_an_idle_partition_stalls_nobody(self):
        made = frontier("idle", "busy")
        made.read("busy", over(7))
        made.drained("idle", over(7) + SKEW)
        assert made.closable() == 7

    def test_what_was_read_counts_for_more_than_an_earlier_look(self):
        made = frontier("a")
        made.read("a", over(6))
        made.drained("a", over(6))
        assert made.closable() == 6


class TestPartitionsThatAreAdded:
    def test_a_new_partition_holds_everything_up_until_it_is_read(self):
        made = frontier("a")
        made.read("a", over(5))
        made.watch(["b"])
        assert made.closable() is None
        made.drained("b", over(5) + SKEW)
        assert made.closable() == 5

    def test_to_be_told_of_a_partition_again_changes_nothing(self):
        made = frontier("a", "b")
        made.read("a", over(5))
        made.read("b", over(3))
        made.watch(["a", "b"])
        assert made.closable() == 3


class TestAhead:
    def test_those_behind_the_others_are_not_ahead(self):
        made = frontier("a", "b", "c")
        for partition, step in (("a", 4), ("b", 2), ("c", 9)):
            made.read(partition, over(step))
        assert sorted(made.ahead()) == ["a", "c"]

    def test_of_equals_nobody_is_ahead(self):
        made = frontier("a", "b")
        made.read("a", over(4))
        made.read("b", over(4))
        assert made.ahead() == []

    def test_everybody_is_ahead_of_one_that_was_never_heard_of(self):
        made = frontier("a", "b", "silent")
        made.read("a", over(4))
        made.read("b", over(2))
        assert sorted(made.ahead()) == ["a", "b"]

    def test_nobody_is_ahead_of_nobody(self):
        assert frontier().ahead() == []

    @given(found=findings)
    def test_never_all_partitions_are_ahead(self, found):
        made = frontier("a", "b", "c")
        follow(made, found)
        assert set(made.ahead()) < {"a", "b", "c"}

    @given(found=findings)
    def test_those_who_are_not_ahead_are_exactly_those_who_hold_things_up(self, found):
        made = frontier("a", "b", "c")
        follow(made, found)
        passed = {name: furthest(found, name) for name in "abc"}
        least = min(-1 if moment is None else moment for moment in passed.values())
        behind = {name for name, at in passed.items() if (-1 if at is None else at) == least}
        assert set(made.ahead()) == set("abc") - behind


class TestOurClock:
    @pytest.mark.parametrize(("now", "step"), [(-1, 3), (0, 4), (LENGTH - 1, 4), (LENGTH, 5)])
    def test_a_step_is_due_after_lateness_and_skew(self, now, step):
        assert frontier().due(over(4) + SKEW + now) == step

    def test_it_is_behind_by_the_time_since_the_last_closed_step_ended(self):
        assert frontier("a").behind(4, TIMING.end(4) + 27) == 27

    def test_without_skew_it_is_due_with_the_lateness(self):
        assert frontier(skew=0).due(over(4)) == 4

    @given(now=moments)
    def test_the_next_step_is_due_after_as_long_as_was_said_and_not_before(self, now):
        made = frontier()
        wait = made.until_next(now)
        assert 1 <= wait <= LENGTH
        assert made.due(now + wait) == made.due(now) + 1
        assert made.due(now + wait - 1) == made.due(now)

    @given(now=moments)
    def test_what_is_due_closes_if_everything_is_drained_now(self, now):
        made = frontier("a", "b")
        made.drained("a", now)
        made.drained("b", now)
        assert made.closable() == made.due(now)


@given(found=findings, arrivals=st.dictionaries(names, moments))
def test_nothing_that_is_still_to_come_counts_for_a_step_that_closes(found, arrivals):
    """However partitions were read: what arrives after that belongs to later steps."""
    made = frontier("a", "b", "c")
    follow(made, found)
    closable = made.closable()
    for partition, arrival in arrivals.items():
        known = furthest(found, partition)
        if closable is not None and arrival >= known:
            assert TIMING.last_over(arrival) >= closable


@given(found=findings, more=findings)
def test_what_may_close_never_goes_back(found, more):
    made = frontier("a", "b", "c")
    follow(made, found)
    before = made.closable()
    follow(made, more)
    after = made.closable()
    assert before is None or after >= before


@given(found=findings, data=st.data())
def test_the_order_of_what_is_found_does_not_matter(found, data):
    one, other = frontier("a", "b", "c"), frontier("a", "b", "c")
    follow(one, found)
    follow(other, data.draw(st.permutations(found)))
    assert one.closable() == other.closable()


@given(found=findings)
def test_a_step_closes_exactly_when_all_partitions_are_past_it(found):
    made = frontier("a", "b", "c")
    follow(made, found)
    passed = [furthest(found, partition) for partition in "abc"]
    if None in passed:
        assert made.closable() is None
    else:
        assert made.closable() == TIMING.last_over(min(passed))
