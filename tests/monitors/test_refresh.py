"""Refresh: which items rest, and until when."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.monitors.refresh import Refresh

repeatable = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("steps", [2, 3, 10])
def test_a_reported_item_is_asked_again_after_r_steps_and_not_before(steps):
    refresh = Refresh(steps)
    refresh.note(5, ["a"])
    resting = [step for step in range(6, 30) if "a" in refresh.resting(step)]
    assert resting == list(range(6, 5 + steps))


def test_with_r_of_one_nothing_ever_rests():
    refresh = Refresh(1)
    refresh.note(5, ["a"])
    assert not refresh.resting(6)


def test_without_a_setting_nothing_ever_rests():
    refresh = Refresh()
    refresh.note(5, ["a"])
    assert not refresh.resting(6)


def test_a_second_report_starts_the_rest_anew():
    refresh = Refresh(3)
    refresh.note(0, ["a"])
    assert not refresh.resting(3)
    refresh.note(3, ["a"])
    assert refresh.resting(5) == {"a"}
    assert not refresh.resting(6)


def test_skipped_steps_count_as_rest():
    refresh = Refresh(3)
    refresh.note(0, ["a"])
    assert not refresh.resting(100)


def test_items_that_rested_before_a_restart_go_on_resting():
    refresh = Refresh(2)
    refresh.note(4, ["forgotten"])
    refresh.restore({"a": 9, "b": 7})
    assert [refresh.resting(step) for step in (5, 6, 7, 8, 9)] == [
        {"a", "b"},
        {"a", "b"},
        {"a"},
        {"a"},
        set(),
    ]


@repeatable
@given(
    steps=st.integers(1, 5),
    reports=st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=12),
)
def test_an_item_rests_exactly_if_it_was_reported_less_than_r_steps_ago(steps, reports):
    refresh = Refresh(steps)
    for step, reported in enumerate(reports):
        recent = reports[max(0, step - steps + 1) : step]
        assert refresh.resting(step) == set().union(*recent)
        refresh.note(step, reported)


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "3"])
def test_a_refresh_of_no_whole_number_of_steps_is_refused(steps):
    with pytest.raises(SettingError, match="refresh"):
        Refresh(steps)
