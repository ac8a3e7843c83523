"""Which items count, and the steps of a fleet as a monitor sees them."""

from collections import Counter

import numpy as np
import pytest

from streamer.fleet.catalogue import Catalogue
from streamer.fleet.fleet import Fleet
from streamer.fleet.holdings import held_steps, latest_items
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak
from streamer.fleet.population import activities
from streamer.fleet.simulation import simulate
from streamer.fleet.truth import held_items

CATALOGUE = Catalogue(0, ("apple", "äpfel", "zebra", "Zebra"))
BUSY = Fleet(
    *(400, 6, 1),
    step_seconds=0.01,
    earlier=0.6,
    lasting=(Lasting("a", 150), Lasting("b", 100)),
    outbreaks=(Outbreak("c", 200, 2, 3),),
)


def latest(most: int, *rows: tuple[int, str, int]) -> list[tuple[int, str]]:
    users, names, times = zip(*rows, strict=True)
    items = [CATALOGUE.named.index(name) for name in names]
    held = latest_items(*map(np.array, (users, items, times)), CATALOGUE, most)
    return [(user, CATALOGUE.text(item)) for user, item in zip(*map(list, held), strict=True)]


def test_the_latest_items_count_the_latest_first():
    rows = ((1, "apple", 3), (1, "zebra", 7), (1, "Zebra", 5))
    assert latest(1, *rows) == [(1, "zebra")]
    assert latest(2, *rows) == [(1, "zebra"), (1, "Zebra")]
    assert latest(9, *rows) == [(1, "zebra"), (1, "Zebra"), (1, "apple")]


def test_of_items_at_the_same_time_the_greatest_texts_count():
    rows = [(1, name, 5) for name in CATALOGUE.named]
    for order in (rows, rows[::-1]):
        assert latest(3, *order) == [(1, "äpfel"), (1, "zebra"), (1, "apple")]


def test_an_item_counts_once_however_often_it_occurs():
    rows = ((1, "apple", 9), (1, "zebra", 8), (1, "apple", 7), (1, "apple", 9))
    assert latest(3, *rows) == [(1, "apple"), (1, "zebra")]


def test_each_users_items_count_on_their_own():
    rows = ((4, "apple", 1), (2, "zebra", 9), (4, "zebra", 2), (2, "zebra", 3))
    assert latest(2, *rows) == [(2, "zebra"), (4, "zebra"), (4, "apple")]


def test_nothing_counts_in_a_step_without_events():
    (step,) = held_steps(Fleet(10, 1, 1, active=0.0), items_per_step=3)
    assert (len(step.users), len(step.items), step.holders.sum()) == (0, 0, 0)


def test_holders_are_those_that_the_truth_of_the_records_says():
    for held, sent in zip(held_steps(BUSY, 1), simulate(BUSY), strict=True):
        assert held.step == sent.step
        assert held.users.dtype == np.uint64
        assert (np.diff(held.users.astype(np.int64)) > 0).all()
        true = np.bincount(held_items(sent), minlength=len(held.holders))
        assert true.tolist() == held.holders.tolist()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_user_counts_for_up_to_as_many_items_as_wanted(most):
    for held, done in zip(held_steps(BUSY, most), activities(BUSY), strict=True):
        had = Counter(done.users.tolist())
        counted = Counter(held.users.tolist())
        assert counted == {user: min(most, number) for user, number in had.items()}
        assert max(counted.values()) == min(
            most, 3 if held.step - BUSY.first_step in (2, 3, 4) else 2
        )


@pytest.mark.parametrize("most", [1, 3])
def test_the_ground_truth_is_everybody_who_has_the_item_counted_or_not(most):
    lasting, outbreak = map(BUSY.catalogue().number, "ac")
    steps = list(held_steps(BUSY, most))
    assert [step.holders[lasting] for step in steps] == [150] * 6
    assert [step.holders[outbreak] for step in steps] == [0, 0, 200, 200, 200, 0]
    counted = [np.count_nonzero(step.items == lasting) for step in steps]
    assert (counted == [150] * 6) == (most == 3)
