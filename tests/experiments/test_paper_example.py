"""The paper's example: the families and their sizes, at a number of users given."""

from dataclasses import replace

import numpy as np
import pytest

from streamer.errors import SettingError
from streamer.experiments.paper_example import FEWEST_USERS, MOST_USERS, paper_example
from streamer.privacy.baseline_plans import plan_restarts
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.terms import Neighbours
from streamer.privacy.threshold import plan

pytestmark = pytest.mark.slow

GUARANTEE = Guarantee(1.0, 1e-6, 3)
GUARANTEES = [GUARANTEE, replace(GUARANTEE, neighbours=Neighbours.ADD_REMOVE, epsilon=2.0)]
A, B, C = range(3)


@pytest.fixture(
    scope="module",
    params=zip([FEWEST_USERS, 100_003], GUARANTEES, strict=True),
    ids=["fewest-replace", "100003-add-remove"],
)
def chosen(request):
    return request.param


@pytest.fixture(scope="module")
def users(chosen):
    return chosen[0]


@pytest.fixture(scope="module")
def guarantee(chosen):
    return chosen[1]


@pytest.fixture(scope="module")
def example(users, guarantee):
    return paper_example(users, guarantee, beta=0.05)


@pytest.fixture(scope="module")
def members(example):
    return example.members(np.random.default_rng(1))


def reach_of_the_classic_technique(example, guarantee, goal):
    halts, ignored = example.halts(goal), example.ignored(goal)
    return plan_restarts(guarantee, example.workload, halts, ignored).reach


def test_the_families_are_three_and_the_smallest_sets_come_first(example):
    assert [family.name for family in example.families] == ["A", "B", "C"]
    sizes = [family.size for family in example.families]
    assert sizes == sorted(set(sizes))


def test_each_family_splits_all_users_into_disjoint_sets(example, members):
    families = example.family_of_step()
    for place in (A, B, C):
        sets = [held for held, family in zip(members, families, strict=True) if family == place]
        assert np.array_equal(np.sort(np.concatenate(sets)), np.arange(example.users))


def test_each_set_has_a_step_of_its_own(example, members):
    assert len(members) == len(example.family_of_step()) == example.steps
    assert example.steps == sum(family.sets for family in example.families)


def test_no_set_is_smaller_than_its_family_says(example, members):
    families = example.family_of_step()
    for held, family in zip(members, families, strict=True):
        assert len(held) >= example.families[family].size


def test_the_members_of_a_set_come_in_rising_order(members):
    assert all(np.all(held[1:] > held[:-1]) for held in members)


def test_another_draw_makes_other_sets(example, members):
    again = example.members(np.random.default_rng(2))
    assert not np.array_equal(members[0], again[0])


def test_more_steps_are_planned_for_than_there_are(example):
    assert example.workload.period_steps >= example.steps


def test_every_user_may_hold_an_item_of_its_own(example):
    assert example.workload.items == example.users


def test_a_is_as_large_as_the_monitor_guarantees_to_find(example, guarantee):
    assert example.families[A].size >= plan(guarantee, example.workload).guaranteed_weight


def test_c_is_within_the_classic_reach_with_the_halts_of_c(example, guarantee):
    assert example.families[C].size >= reach_of_the_classic_technique(example, guarantee, C)


def test_b_is_beyond_the_classic_reach_with_the_halts_of_b_and_c(example, guarantee):
    assert example.families[B].size < reach_of_the_classic_technique(example, guarantee, B)


def test_a_is_beyond_the_classic_reach_with_the_halts_of_all(example, guarantee):
    assert example.families[A].size < reach_of_the_classic_technique(example, guarantee, A)


def test_a_goal_costs_the_halts_of_its_family_and_of_the_larger_ones(example):
    sets = [family.sets for family in example.families]
    assert [example.halts(goal) for goal in (A, B, C)] == [sum(sets), sets[1] + sets[2], sets[2]]


def test_what_is_ignored_is_the_largest_set_below_the_goal(example, members):
    families = example.family_of_step()
    largest = [
        max(len(held) for held, family in zip(members, families, strict=True) if family == place)
        for place in (A, B)
    ]
    assert [example.ignored(goal) for goal in (A, B, C)] == [1, *largest]


@pytest.mark.parametrize("few", [0, FEWEST_USERS - 1, MOST_USERS + 1])
def test_a_number_of_users_out_of_range_is_refused(few):
    with pytest.raises(SettingError, match="users"):
        paper_example(few, GUARANTEE, beta=0.05)


def test_too_few_users_for_a_strict_guarantee_are_refused_with_how_many_it_takes():
    with pytest.raises(SettingError, match="are needed for two sets"):
        paper_example(FEWEST_USERS, replace(GUARANTEE, epsilon=0.05), beta=0.05)
