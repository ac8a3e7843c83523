"""When a step may close: when it is due and no partition can hold anything more for it."""

from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.closing import Frontier
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming

LENGTH, EPOCH, LATENESS, SKEW = 10, 100, 5, 3
TIMING = StepTiming(LENGTH, EPOCH, LATENESS)
SCHEDULE = Schedule(TIMING, SKEW)
LONG_AFTER = EPOCH + 10_000
"""When every step of these tests is due."""

names = st.sampled_from("abc")
moments = st.integers(EPOCH, EPOCH + 500)
findings = st.lists(st.tuples(st.sampled_from(["read", "drained"]), names, moments))


def over(step):
    """The first arrival that is too late for this step."""
    return TIMING.end(step) + LATENESS


def past(step):
    """The first arrival after which nothing can follow for this step, by any broker's clock."""
    return over(step) + SKEW


def frontier(*partitions):
    made = Frontier(SCHEDULE)
    made.watch(partitions)
    return made


def follow(made, found):
    for kind, partition, moment in found:
        getattr(made, kind)(partition, moment)


def furthest(found, partition):
    """How far this partition is known to be read, in time of arrival."""
    known = [moment - SKEW for _, name, moment in found if name == partition]
    return max(known, default=None)


class TestReading:
    def test_a_step_may_close_with_the_first_record_that_is_too_late_by_the_skew(self):
        made = frontier("a")
        made.read("a", past(4) - 1)
        assert made.closable(LONG_AFTER) == 3
        made.read("a", past(4))
        assert made.closable(LONG_AFTER) == 4

    def test_after_a_change_of_leaders_arrivals_may_step_back_by_the_skew(self):
        """The new leader's clock is behind the old one's: what it writes still counts."""
        made = frontier("a")
        old = over(4) + SKEW - 1
        made.read("a", old)
        assert TIMING.last_over(old - SKEW) == 3
        assert made.closable(LONG_AFTER) == 3
        made.read("a", old - SKEW)
        assert made.closable(LONG_AFTER) == 3

    def test_an_earlier_arrival_after_a_later_one_reopens_nothing(self):
        made = frontier("a")
        made.read("a", past(4))
        made.read("a", past(1))
        assert made.closable(LONG_AFTER) == 4

    def test_nothing_closes_while_no_partition_is_known(self):
        assert frontier().closable(LONG_AFTER) is None

    def test_nothing_closes_before_every_partition_was_heard_of(self):
        made = frontier("a", "b")
        made.read("a", past(9))
        assert made.closable(LONG_AFTER) is None
        made.read("b", past(2))
        assert made.closable(LONG_AFTER) == 2

    def test_a_backlog_holds_up_those_who_have_none(self):
        made = frontier("idle", "busy")
        made.read("busy", past(1))
        for now in range(past(1), past(50)):
            made.drained("idle", now)
        assert made.closable(LONG_AFTER) == 1

    def test_a_partition_that_is_heard_of_unasked_counts_too(self):
        made = frontier("a")
        made.read("a", past(9))
        made.read("b", past(2))
        assert made.closable(LONG_AFTER) == 2


class TestDrained:
    def test_a_step_may_close_once_the_skew_has_passed_too(self):
        made = frontier("a")
        made.drained("a", over(4) + SKEW - 1)
        assert made.closable(LONG_AFTER) == 3
        made.drained("a", over(4) + SKEW)
        assert made.closable(LONG_AFTER) == 4

    def test_an_idle_partition_stalls_nobody(self):
        made = frontier("idle", "busy")
        made.read("busy", past(7))
        made.drained("idle", over(7) + SKEW)
        assert made.closable(LONG_AFTER) == 7

    def test_what_was_read_counts_for_more_than_an_earlier_look(self):
        made = frontier("a")
        made.read("a", past(6))
        made.drained("a", over(6))
        assert made.closable(LONG_AFTER) == 6


class TestPartitionsThatAreAdded:
    def test_a_new_partition_holds_everything_up_until_it_is_read(self):
        made = frontier("a")
        made.read("a", past(5))
        made.watch(["b"])
        assert made.closable(LONG_AFTER) is None
        made.drained("b", over(5) + SKEW)
        assert made.closable(LONG_AFTER) == 5

    def test_to_be_told_of_a_partition_again_changes_nothing(self):
        made = frontier("a", "b")
        made.read("a", past(5))
        made.read("b", past(3))
        made.watch(["a", "b"])
        assert made.closable(LONG_AFTER) == 3


class TestAhead:
    def test_those_behind_the_others_are_not_ahead(self):
        made = frontier("a", "b", "c")
        for partition, step in (("a", 4), ("b", 2), ("c", 9)):
            made.read(partition, past(step))
        assert sorted(made.ahead()) == ["a", "c"]

    def test_of_equals_nobody_is_ahead(self):
        made = frontier("a", "b")
        made.read("a", past(4))
        made.read("b", past(4))
        assert made.ahead() == []

    def test_everybody_is_ahead_of_one_that_was_never_heard_of(self):
        made = frontier("a", "b", "silent")
        made.read("a", past(4))
        made.read("b", past(2))
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
    def test_a_step_that_is_not_due_stays_open_whatever_is_read(self):
        made = frontier("a")
        made.read("a", over(9))
        due = SCHEDULE.due_at(4)
        assert made.closable(due - 1) == 3
        assert made.closable(due) == 4

    @given(now=moments)
    def test_what_is_due_closes_if_everything_is_drained_now(self, now):
        made = frontier("a", "b")
        made.drained("a", now)
        made.drained("b", now)
        assert made.closable(now) == SCHEDULE.last_due(now)

    @given(found=findings, now=moments)
    def test_once_everything_is_read_only_the_clock_says_what_closes(self, found, now):
        """What users sent, and when it was read, shows nowhere."""
        made = frontier("a", "b", "c")
        follow(made, found)
        for partition in "abc":
            made.drained(partition, now)
        assert made.closable(now) == SCHEDULE.last_due(now)


@given(found=findings, arrivals=st.dictionaries(names, moments))
def test_nothing_that_is_still_to_come_counts_for_a_step_that_closes(found, arrivals):
    """However partitions were read: what arrives after that belongs to later steps."""
    made = frontier("a", "b", "c")
    follow(made, found)
    closable = made.closable(LONG_AFTER)
    for partition, arrival in arrivals.items():
        known = furthest(found, partition)
        if closable is not None and arrival >= known:
            assert TIMING.last_over(arrival) >= closable


@given(found=findings, more=findings)
def test_what_may_close_never_goes_back(found, more):
    made = frontier("a", "b", "c")
    follow(made, found)
    before = made.closable(LONG_AFTER)
    follow(made, more)
    after = made.closable(LONG_AFTER)
    assert before is None or after >= before


@given(found=findings, data=st.data())
def test_the_order_of_what_is_found_does_not_matter(found, data):
    one, other = frontier("a", "b", "c"), frontier("a", "b", "c")
    follow(one, found)
    follow(other, data.draw(st.permutations(found)))
    assert one.closable(LONG_AFTER) == other.closable(LONG_AFTER)


@given(found=findings)
def test_a_step_closes_exactly_when_all_partitions_are_past_it(found):
    made = frontier("a", "b", "c")
    follow(made, found)
    passed = [furthest(found, partition) for partition in "abc"]
    if None in passed:
        assert made.closable(LONG_AFTER) is None
    else:
        assert made.closable(LONG_AFTER) == TIMING.last_over(min(passed))
