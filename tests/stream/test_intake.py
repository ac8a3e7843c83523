"""From records to open steps: what is counted as what, and where to read on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.file_range import FileRange
from streamer.stream.intake import Batch
from streamer.stream.reasons import Reason
from tests.stream.making import (
    AHEAD,
    LATENESS,
    LENGTH,
    batch,
    new_intake,
    pseudonym,
    record,
)


def at_step(step, user="u"):
    return record(user, "x", step=step)


class TestOutcomes:
    def test_events_of_open_steps_are_accepted_and_buffered(self):
        intake = new_intake()
        received = intake.receive(batch([at_step(4), at_step(2), at_step(4, "v")]), 1, None)
        assert (received.accepted, received.already_closed, received.late) == (3, 0, 0)
        assert (intake.open_steps, intake.buffered) == ([2, 4], 3)

    def test_before_the_first_step_is_closed_every_step_is_open(self):
        assert new_intake().receive(batch([at_step(0)]), None, None).accepted == 1

    def test_events_of_closed_steps_are_decided_before_and_not_buffered(self):
        intake = new_intake()
        received = intake.receive(batch([at_step(3), at_step(4), at_step(5)]), 4, None)
        assert (received.accepted, received.already_closed) == (1, 2)
        assert intake.open_steps == [5]

    def test_late_events_are_counted_and_not_buffered(self):
        intake = new_intake()
        over = LENGTH + LATENESS
        received = intake.receive(batch([at_step(0), at_step(0)], [over - 1, over]), None, None)
        assert (received.accepted, received.late) == (1, 1)
        assert intake.buffered == 1

    def test_a_late_event_of_a_closed_step_is_late(self):
        received = new_intake().receive(batch([at_step(0)], [LENGTH + LATENESS]), 0, None)
        assert (received.late, received.already_closed) == (1, 0)

    def test_rejections_of_all_kinds_come_in_the_order_of_the_records(self):
        records = [record("u", "x", time=AHEAD + 1), b"?", at_step(0), record("u", "x"), b""]
        received = new_intake().receive(batch(records, [0, 0, 0, AHEAD + 1, 0]), None, 0)
        assert [(rejection.place, rejection.reason) for rejection in received.rejections] == [
            (0, Reason.TIME_AHEAD),
            (1, Reason.NOT_JSON),
            (3, Reason.ARRIVAL_AHEAD),
            (4, Reason.EMPTY),
        ]

    def test_events_after_the_range_of_a_file_are_left_and_not_kept(self):
        intake = new_intake(file_range=FileRange(until=2))
        records = [at_step(0), at_step(1), at_step(2), b"?", at_step(9)]
        received = intake.receive(batch(records), 0, None)
        assert (received.accepted, received.already_closed, received.left) == (1, 1, 2)
        assert intake.open_steps == [1]

    def test_events_out_of_the_order_of_a_sorted_file_are_late_and_not_kept(self):
        intake = new_intake(file_range=FileRange(ordered=True))
        records = [record(user, "x", step=step) for user, step in (("u", 1), ("v", 1), ("w", 0))]
        received = intake.receive(batch(records), None, None)
        assert (received.accepted, received.late) == (2, 1)
        assert intake.open_steps == [1]

    EVENTS = st.builds(
        record,
        st.sampled_from("uvw"),
        st.sampled_from("xyz"),
        time=st.integers(0, 60) | st.just(10**6),
    )

    @given(
        records=st.lists(EVENTS | st.sampled_from([None, b"", b"?", b"{}", b"[]"]), max_size=12),
        arrivals=st.none() | st.lists(st.integers(0, 80), min_size=12, max_size=12),
        closed=st.none() | st.integers(-1, 5),
        now=st.none() | st.just(-AHEAD + 40),
        first=st.integers(-1, 5),
        until=st.none() | st.integers(0, 6),
        ordered=st.booleans(),
    )
    def test_every_record_is_counted_once(
        self, records, arrivals, closed, now, first, until, ordered
    ):
        # What has arrivals is no file.
        intake = new_intake(file_range=None if arrivals else FileRange(until, ordered))
        intake.begin(first)
        arrivals = arrivals and arrivals[: len(records)]
        received = intake.receive(batch(records, arrivals), closed, now)
        rejected = len(received.rejections)
        old = received.already_closed + received.missed
        counted = received.accepted + received.late + old + received.left
        assert counted + rejected == len(records)
        assert intake.buffered == received.accepted


class TestEventsOfClosedSteps:
    """Read again after a restart, or missed: the step was closed without them."""

    @staticmethod
    def outcome(received):
        assert not received.accepted
        return received.already_closed, received.missed

    def test_of_a_step_that_was_closed_here_they_are_missed(self):
        intake = new_intake()
        intake.begin(3)
        received = intake.receive(batch([at_step(2), at_step(3), at_step(4)]), 4, None)
        assert self.outcome(received) == (1, 2)

    def test_what_the_process_before_had_read_is_read_again(self):
        intake = new_intake()
        intake.begin(3)
        intake.resume({"p": 10}, {"p": 12})
        received = intake.receive(batch([at_step(2)] * 5, first=10), 2, None)
        assert self.outcome(received) == (2, 3)

    def test_it_had_read_nothing_of_a_partition_that_its_journal_does_not_name(self):
        intake = new_intake()
        intake.begin(3)
        intake.resume({"p": 10}, {"p": 12})
        received = intake.receive(batch([at_step(2)], partition="q"), 2, None)
        assert self.outcome(received) == (0, 1)

    def test_without_a_note_of_what_it_had_read_they_are_read_again(self):
        intake = new_intake()
        intake.begin(3)
        intake.resume({"p": 10})
        received = intake.receive(batch([at_step(2)], first=10), 2, None)
        assert self.outcome(received) == (1, 0)

    def test_how_far_was_ever_read_does_not_go_back_with_a_restart(self):
        intake = new_intake()
        assert intake.read() == {}
        intake.resume({"p": 10, "r": 5}, {"p": 12, "q": 7})
        assert intake.read() == {"p": 12, "q": 7, "r": 5}
        intake.receive(batch([b"?"], first=10), None, None)
        assert intake.read()["p"] == 12
        intake.receive(batch([b"?", b"?"], first=11), None, None)
        assert intake.read() == {"p": 13, "q": 7, "r": 5}


class TestTake:
    def test_a_step_that_is_taken_is_no_longer_open(self):
        intake = new_intake()
        intake.receive(batch([at_step(2), at_step(3)]), None, None)
        assert len(intake.take(2)) == 1
        assert (intake.open_steps, intake.buffered) == ([3], 1)
        assert intake.take(2) is None

    def test_a_step_without_events_has_nothing_to_take(self):
        assert new_intake().take(7) is None

    def test_the_users_in_it_are_pseudonyms(self):
        intake = new_intake()
        intake.receive(batch([at_step(2, "alice"), at_step(2, "bob")]), None, None)
        users = intake.take(2).holdings(1).users.tolist()
        assert users == sorted([pseudonym("alice"), pseudonym("bob")])

    def test_each_step_holds_its_own_events(self):
        intake = new_intake()
        events = [("a", "x", 1), ("b", "y", 2), ("c", "x", 2), ("a", "z", 3)]
        records = [record(user, item, step=step) for user, item, step in events]
        intake.receive(batch(records), None, None)
        held = {}
        for step in (1, 2, 3):
            contents = intake.take(step).holdings(1)
            names = list(contents.numbers)
            items = [names[item] for item in contents.items.tolist()]
            held[step] = dict(zip(contents.users.tolist(), items, strict=True))
        a, b, c = map(pseudonym, "abc")
        assert held == {1: {a: "x"}, 2: {b: "y", c: "x"}, 3: {a: "z"}}

    def test_events_of_several_batches_and_partitions_meet(self):
        intake = new_intake()
        for partition, user in (("p", "a"), ("q", "b"), ("p", "c")):
            intake.receive(batch([at_step(0, user)], partition=partition), None, None)
        assert len(intake.take(0)) == 3


class TestOffsets:
    def test_nothing_is_known_of_a_partition_that_was_not_read(self):
        assert new_intake().offsets() == {}

    def test_an_empty_batch_says_nothing(self):
        intake = new_intake()
        intake.receive(batch([]), None, None)
        assert intake.offsets() == {}

    def test_it_is_the_first_event_of_an_open_step(self):
        intake = new_intake()
        intake.receive(batch([b"?", at_step(1), at_step(0), at_step(1)], first=100), None, None)
        assert intake.offsets() == {"p": 101}

    def test_it_moves_on_when_a_step_is_taken(self):
        intake = new_intake()
        intake.receive(batch([at_step(0), at_step(1), at_step(0)], first=100), None, None)
        intake.take(0)
        assert intake.offsets() == {"p": 101}

    def test_without_open_steps_it_is_the_position(self):
        intake = new_intake()
        intake.receive(batch([at_step(0), at_step(0)], first=100), None, None)
        intake.take(0)
        assert intake.offsets() == {"p": 102}

    def test_a_later_batch_does_not_move_it_past_an_open_event(self):
        intake = new_intake()
        for first in (100, 101, 102):
            intake.receive(batch([at_step(0)], first=first), None, None)
        assert intake.offsets() == {"p": 100}

    def test_gaps_between_offsets_are_kept(self):
        intake = new_intake()
        records = [at_step(0), at_step(1), at_step(1)]
        intake.receive(Batch("p", np.array([5, 90, 700]), records), None, None)
        assert intake.offsets() == {"p": 5}
        intake.take(0)
        assert intake.offsets() == {"p": 90}
        intake.take(1)
        assert intake.offsets() == {"p": 701}

    def test_partitions_are_separate(self):
        intake = new_intake()
        intake.receive(batch([at_step(0), at_step(1)], partition="p", first=10), None, None)
        intake.receive(batch([at_step(1)], partition="q", first=70), None, None)
        intake.receive(batch([b"?"], partition="r", first=7), None, None)
        intake.take(0)
        assert intake.offsets() == {"p": 11, "q": 70, "r": 8}

    @pytest.mark.parametrize(
        ("one", "arrival"),
        [(at_step(0), LENGTH + LATENESS), (b"?", 0), (record("u", "x", time=10**6), 0)],
        ids=["late", "rejected", "ahead"],
    )
    def test_what_does_not_count_is_not_read_again(self, one, arrival):
        intake = new_intake()
        intake.receive(batch([one], [arrival], first=100), None, None)
        assert intake.offsets() == {"p": 101}

    def test_what_was_decided_before_is_not_read_again(self):
        intake = new_intake()
        intake.receive(batch([at_step(0), at_step(3)], first=100), 2, None)
        assert intake.offsets() == {"p": 101}

    def test_after_a_restart_an_idle_partition_keeps_its_own(self):
        intake = new_intake()
        intake.resume({"p": 100, "q": 70})
        assert intake.offsets() == {"p": 100, "q": 70}
        intake.receive(batch([b"?"], partition="p", first=100), None, None)
        assert intake.offsets() == {"p": 101, "q": 70}

    def test_after_a_restart_an_open_event_is_where_it_is_read_again(self):
        intake = new_intake()
        intake.resume({"p": 100})
        intake.receive(batch([at_step(0), at_step(3)], first=100), 2, None)
        assert intake.offsets() == {"p": 101}
        intake.take(3)
        assert intake.offsets() == {"p": 102}

    def test_what_it_is_told_and_what_it_tells_are_not_the_same_thing(self):
        intake, resumed = new_intake(), {"p": 100}
        intake.resume(resumed)
        intake.offsets()["p"] = 7
        intake.receive(batch([b"?"], first=100), None, None)
        assert (resumed, intake.offsets()) == ({"p": 100}, {"p": 101})

    @given(
        st.lists(
            st.tuples(st.sampled_from("pq"), st.lists(st.integers(0, 4), min_size=1, max_size=4))
            | st.integers(0, 4),
            max_size=12,
        )
    )
    def test_it_is_the_smallest_offset_of_an_event_in_an_open_step(self, actions):
        """Batches of events by their steps, and steps to take, in any order."""
        intake = new_intake()
        positions, open_events = {}, []
        for action in actions:
            if isinstance(action, int):
                intake.take(action)
                open_events = [event for event in open_events if event[1] != action]
                continue
            partition, steps = action
            first = positions.get(partition, 100)
            records = [at_step(step) for step in steps]
            intake.receive(batch(records, partition=partition, first=first), None, None)
            open_events += [(partition, step, first + n) for n, step in enumerate(steps)]
            positions[partition] = first + len(steps)
        expected = {
            partition: min([position, *(o for p, _, o in open_events if p == partition)])
            for partition, position in positions.items()
        }
        assert intake.offsets() == expected
