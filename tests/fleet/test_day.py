"""The day of a real service."""

from dataclasses import replace

import numpy as np
import pytest

from streamer.errors import SettingError
from streamer.fleet.day import STEPS, USERS, check_steps, day_fleet, outbreaks_before
from streamer.fleet.holdings import held_steps


def test_three_items_last_all_day_and_every_hour_has_its_outbreak():
    day = day_fleet(1)
    assert (day.users, day.steps, day.step_seconds) == (20_000, 1440, 60)
    assert [one.size for one in day.lasting] == [5000] * 3
    assert [one.start // 60 for one in day.outbreaks] == list(range(24))
    assert {(one.size, one.length) for one in day.outbreaks} == {(1000, 10)}
    items = {one.item for one in (*day.outbreaks, *day.lasting)}
    assert len(items) == 27


def test_a_day_is_one_budget_period():
    assert day_fleet(1).first_step % STEPS == 0


def test_the_numbers_of_users_are_exact_and_nothing_else_comes_near():
    day = replace(day_fleet(1), steps=42, outbreaks=outbreaks_before(42))
    shared = day.catalogue().shared
    for number, step in enumerate(held_steps(day, items_per_step=3)):
        largest = [1000 * (30 <= number < 40), 5000, 5000, 5000]
        assert np.sort(step.holders[10_000:shared]).tolist() == largest
        background = step.holders[:10_000]
        assert background.max() < 250
        assert np.count_nonzero(background) > 1000  # a long tail
        assert len(np.unique(step.users)) < USERS


def test_the_day_of_a_seed_is_always_the_same():
    def first_step(seed: int) -> list[int]:
        return next(held_steps(day_fleet(seed), 1)).users.tolist()

    assert first_step(1) == first_step(1) != first_step(2)


def test_a_shorter_day_has_the_outbreaks_that_begin_in_it():
    assert outbreaks_before(30) == ()
    assert len(outbreaks_before(31)) == 1
    assert outbreaks_before(91) == outbreaks_before(STEPS)[:2]


def test_a_day_has_an_end():
    check_steps(STEPS)
    with pytest.raises(SettingError, match="steps is 1441: the day of --preset has 1,440 steps"):
        check_steps(STEPS + 1)
