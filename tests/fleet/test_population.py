"""What the users of a fleet do: lasting items, alone and beside outbreaks.

What else they do is tested by what arrives of it, in test_simulation.py.
"""

import numpy as np
import pytest

from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak
from streamer.fleet.population import Activity, activities
from streamer.fleet.simulation import simulate

COLUMNS = ("users", "items", "times")


def holders(fleet: Fleet, item: str) -> list[set[int]]:
    """Who has the item in each step, among others or not."""
    number = fleet.catalogue().number(item)
    return [set(step.users[step.items == number].tolist()) for step in activities(fleet)]


def rows(step: Activity) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(step, name).tolist() for name in COLUMNS), strict=True))


def test_the_same_users_have_a_lasting_item_in_every_step():
    fleet = Fleet(1000, 20, 1, active=0.1, session=2, lasting=(Lasting("a", 400),))
    first, *others = holders(fleet, "a")
    assert len(first) == 400
    assert all(users == first for users in others)


def test_lasting_items_have_different_users_and_all_of_them_if_need_be():
    fleet = Fleet(100, 2, 1, lasting=(Lasting("a", 60), Lasting("b", 40)))
    (first, _), (second, _) = holders(fleet, "a"), holders(fleet, "b")
    assert (len(first), len(second)) == (60, 40)
    assert not first & second


def test_two_seeds_choose_different_users():
    chosen = [holders(Fleet(1000, 1, seed, lasting=(Lasting("a", 400),)), "a") for seed in (1, 2)]
    assert chosen[0] != chosen[1]


def test_users_of_a_lasting_item_keep_it_while_an_outbreak_affects_them():
    fleet = Fleet(
        *(1000, 6, 1),
        lasting=(Lasting("a", 500),),
        outbreaks=(Outbreak("b", 600, 2, 2),),
    )
    lasting, outbreak = holders(fleet, "a"), holders(fleet, "b")
    assert [len(users) for users in lasting] == [500] * 6
    assert [len(users) for users in outbreak] == [0, 0, 600, 600, 0, 0]
    assert lasting[2] & outbreak[2]


def test_an_outbreak_affects_users_of_lasting_items_as_often_as_others():
    fleet = Fleet(
        *(20_000, 3, 1),
        lasting=(Lasting("a", 15_000),),
        outbreaks=(Outbreak("b", 2000, 2, 1),),
    )
    lasting, outbreak = holders(fleet, "a")[2], holders(fleet, "b")[2]
    assert len(lasting & outbreak) / 2000 == pytest.approx(0.75, abs=0.06)


@pytest.mark.parametrize("step_seconds", [60.0, 0.01])
def test_the_latest_of_a_users_items_is_the_outbreaks_or_else_the_lasting_one(step_seconds):
    fleet = Fleet(
        *(500, 5, 1),
        step_seconds=step_seconds,
        earlier=1.0,
        lasting=(Lasting("a", 300),),
        outbreaks=(Outbreak("b", 300, 0, 5),),
    )
    lasting, outbreak = map(fleet.catalogue().number, "ab")
    for step in activities(fleet):
        times_of: dict[int, dict[int, int]] = {}
        for user, item, time in rows(step):
            times_of.setdefault(user, {})[item] = time
        for times in times_of.values():
            named = outbreak if outbreak in times else lasting
            if named in times:
                latest = times.pop(named)
                assert all(time < latest for time in times.values())


def test_nobody_has_an_item_twice_in_a_step():
    fleet = Fleet(
        *(500, 10, 1),
        items=2,
        earlier=1.0,
        lasting=(Lasting("a", 300),),
        outbreaks=(Outbreak("b", 300, 0, 10),),
    )
    for step in activities(fleet):
        pairs = [row[:2] for row in rows(step)]
        assert len(set(pairs)) == len(pairs)
        assert max(np.bincount(step.users)) == 3


def test_what_users_do_is_what_is_transmitted():
    clean = dict.fromkeys(("duplicates", "delayed", "skewed", "bad"), 0.0)
    fleet = Fleet(300, 5, 1, lasting=(Lasting("a", 100),), **clean)
    for done, sent in zip(activities(fleet), simulate(fleet), strict=True):
        assert done.step == sent.step
        for name in COLUMNS:
            assert (getattr(done, name) == getattr(sent.events, name)).all()
