"""Waits between attempts double up to the longest one."""

from itertools import islice

from streamer.backoff import Backoff


def first_of(count, backoff):
    return list(islice(backoff.waits(), count))


def test_each_wait_is_twice_the_one_before_up_to_the_longest():
    assert first_of(7, Backoff(0.5, 10.0)) == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_longest_wait_equal_to_the_first_never_grows():
    assert first_of(3, Backoff(2.0, 2.0)) == [2.0, 2.0, 2.0]


def test_every_run_of_failures_begins_with_the_first_wait():
    backoff = Backoff(1.0, 4.0)
    waits = backoff.waits()
    assert [next(waits), next(waits)] == [1.0, 2.0]
    assert next(backoff.waits()) == 1.0
    assert next(waits) == 4.0
