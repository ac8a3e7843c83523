"""What a simulated fleet sends: who, what, when, and how it arrives.

Shares are tested at a fixed seed, with room for six standard deviations and more.
"""

from itertools import islice, pairwise

import numpy as np
import pytest

from streamer.fleet.bad_records import Kind
from streamer.fleet.catalogue import PERSONAL_ITEMS
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak, Shape
from streamer.fleet.simulation import in_arrival_order, simulate
from streamer.fleet.truth import held_items

CLEAN = dict.fromkeys(("duplicates", "delayed", "skewed", "bad"), 0.0)
COLUMNS = ("users", "items", "times", "arrivals", "kinds")


def columns(events) -> list[list[int]]:
    return [getattr(events, name).tolist() for name in COLUMNS]


def active_sets(fleet: Fleet) -> list[set[int]]:
    return [set(step.events.users.tolist()) for step in simulate(fleet)]


def test_the_same_fleet_sends_the_same_and_another_seed_something_else():
    one, same, other = (
        [columns(step.events) for step in simulate(Fleet(500, 5, seed))] for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_every_record_says_a_time_of_its_step():
    fleet = Fleet(500, 5, 1, step_seconds=7.5, skewed=1.0, delayed=1.0, bad=0.5)
    steps = list(simulate(fleet))
    assert [step.step for step in steps] == list(range(fleet.first_step, fleet.first_step + 5))
    for step in steps:
        assert (step.events.times // 7500 == step.step).all()


# Sessions


@pytest.mark.parametrize("share", [0.05, 0.3, 0.95])
def test_the_share_of_active_users_is_the_one_asked_for(share):
    sets = active_sets(Fleet(20_000, 30, 1, active=share, session=5))
    assert [len(users) / 20_000 for users in sets] == pytest.approx([share] * 30, abs=0.025)


def test_all_and_none_are_shares_too():
    assert [len(users) for users in active_sets(Fleet(50, 3, 1, active=1.0))] == [50, 50, 50]
    assert [len(users) for users in active_sets(Fleet(50, 3, 1, active=0.0))] == [0, 0, 0]


@pytest.mark.parametrize("session", [2, 10, 50])
def test_users_stay_for_as_long_as_a_session_lasts_on_average(session):
    sets = active_sets(Fleet(20_000, 30, 1, active=0.3, session=session))
    left = sum(len(now - then) for now, then in pairwise(sets))
    assert left / sum(map(len, sets[:-1])) == pytest.approx(1 / session, abs=0.01)


# Items


def test_background_items_follow_the_law_of_zipf():
    alone = {"active": 1.0, "personal": 0.0, "earlier": 0.0}
    fleet = Fleet(50_000, 4, 1, items=100, exponent=1.0, **alone, **CLEAN)
    drawn = np.concatenate([step.events.items for step in simulate(fleet)])
    shares = np.bincount(drawn, minlength=100) / len(drawn)
    law = 1 / np.arange(1, 101)
    assert shares == pytest.approx(law / law.sum(), abs=0.005)


def test_an_exponent_of_0_makes_all_items_equally_frequent():
    fleet = Fleet(50_000, 4, 1, active=1, items=10, exponent=0.0, personal=0, **CLEAN)
    drawn = np.concatenate([step.events.items for step in simulate(fleet)])
    assert np.bincount(drawn) / len(drawn) == pytest.approx([0.1] * 10, abs=0.005)


def test_personal_items_have_their_share_and_one_holder_each():
    fleet = Fleet(5000, 20, 1, personal=0.4, items=1000)
    first = fleet.catalogue().shared
    holders: dict[int, set[int]] = {}
    personal = total = 0
    for step in simulate(fleet):
        good = step.events.take(step.events.kinds == Kind.EVENT)
        total += len(good)
        own = good.take(good.items >= first)
        personal += len(own)
        for user, item in zip(own.users.tolist(), own.items.tolist(), strict=True):
            holders.setdefault(item, set()).add(user)
    assert personal / total == pytest.approx(0.4, abs=0.02)
    assert all(len(users) == 1 for users in holders.values())
    assert len(holders) > 5000
    assert max(holders) < first + 5000 * PERSONAL_ITEMS


def test_some_users_had_another_item_earlier_in_the_step():
    fleet = Fleet(20_000, 3, 1, earlier=0.25, items=2, personal=0.5, **CLEAN)
    for step in simulate(fleet):
        by_user: dict[int, list[tuple[int, int]]] = {}
        rows = zip(step.events.users, step.events.times, step.events.items, strict=True)
        for user, time, item in rows:
            by_user.setdefault(int(user), []).append((int(time), int(item)))
        several = [events for events in by_user.values() if len(events) > 1]
        assert len(several) / len(by_user) == pytest.approx(0.25, abs=0.04)
        assert all(len({item for _, item in events}) == 2 for events in several)


# Outbreaks


def holders(fleet: Fleet, item: str) -> list[set[int]]:
    """Who holds the item in each step."""
    number, sets = fleet.catalogue().number(item), []
    for step in simulate(fleet):
        good = step.events.take(step.events.kinds == Kind.EVENT)
        sets.append(set(good.users[good.items == number].tolist()))
    return sets


@pytest.mark.parametrize("step_seconds", [60.0, 0.01])
@pytest.mark.parametrize("shape", Shape)
def test_an_outbreak_has_exactly_its_holders_in_every_step(shape, step_seconds):
    outbreak = Outbreak("crash:X", 400, 3, 6, shape)
    dirty = {"earlier": 0.9, "duplicates": 0.3, "delayed": 0.5, "skewed": 0.5, "bad": 0.3}
    fleet = Fleet(1000, 12, 1, step_seconds=step_seconds, outbreaks=(outbreak,), **dirty)
    sizes = [len(users) for users in holders(fleet, "crash:X")]
    assert sizes == [outbreak.holders(step) for step in range(12)]


@pytest.mark.parametrize("shape", Shape)
def test_the_same_users_stay_affected_while_an_outbreak_lasts(shape):
    fleet = Fleet(5000, 10, 1, session=2, outbreaks=(Outbreak("crash:X", 400, 0, 10, shape),))
    for now, then in pairwise(holders(fleet, "crash:X")):
        assert now <= then or then <= now


def test_outbreaks_at_once_affect_different_users_and_everyone_if_need_be():
    pair = (Outbreak("a", 60, 0, 4, Shape.RAMP), Outbreak("b", 40, 2, 4))
    fleet = Fleet(100, 6, 1, active=0.1, outbreaks=pair)
    first, second = holders(fleet, "a"), holders(fleet, "b")
    assert [len(users) for users in first] == [15, 30, 45, 60, 0, 0]
    assert [len(users) for users in second] == [0, 0, 40, 40, 40, 40]
    assert not any(one & other for one, other in zip(first, second, strict=True))


def test_users_are_free_again_when_their_outbreak_is_over():
    pair = (Outbreak("a", 100, 0, 2), Outbreak("b", 100, 2, 2))
    fleet = Fleet(100, 4, 1, outbreaks=pair)
    assert [len(users) for users in holders(fleet, "b")] == [0, 0, 100, 100]


def test_the_holders_of_an_item_with_two_outbreaks_add_up():
    pair = (Outbreak("a", 30, 0, 3), Outbreak("a", 20, 1, 3))
    assert [len(users) for users in holders(Fleet(100, 4, 1, outbreaks=pair), "a")] == [
        *(30, 50, 50, 20)
    ]


def test_an_outbreak_takes_those_first_who_are_active_anyway():
    fleet = Fleet(10_000, 1, 1, active=0.5, outbreaks=(Outbreak("a", 3000, 0, 1),))
    assert len(active_sets(fleet)[0]) / 10_000 == pytest.approx(0.5, abs=0.04)


# Transmission


def in_order(fleet: Fleet):
    return list(in_arrival_order(fleet, simulate(fleet)))


def test_a_clean_stream_is_written_in_the_order_of_its_times():
    times = np.concatenate([events.times for events in in_order(Fleet(2000, 10, 1, **CLEAN))])
    assert (np.diff(times) >= 0).all()
    assert len(times) > 5000


@pytest.mark.parametrize("step_seconds", [1.0, 60.0])
def test_nothing_is_lost_or_added_on_the_way_and_arrivals_are_in_order(step_seconds):
    messy = {"delayed": 0.5, "skewed": 0.5, "delay_seconds": 20.0, "skew_seconds": 10.0}
    fleet = Fleet(300, 40, 1, step_seconds=step_seconds, **messy)
    batches = in_order(fleet)
    arrivals = np.concatenate([events.arrivals for events in batches])
    assert (np.diff(arrivals) >= 0).all()

    def rows(parts):
        return sorted(row for events in parts for row in zip(*columns(events), strict=True))

    assert rows(batches) == rows(step.events for step in simulate(fleet))


def test_delays_make_the_asked_for_share_late_and_none_by_more_than_asked():
    settings = {**CLEAN, "delayed": 0.2, "delay_seconds": 90.0}
    for step in simulate(Fleet(50_000, 3, 1, **settings)):
        delay = step.events.arrivals - step.events.times
        assert np.mean(delay > 0) == pytest.approx(0.2, abs=0.02)
        assert 0 <= delay.min() <= 85_000 < delay.max() <= 90_000


def test_a_wrong_clock_is_wrong_by_as_much_all_the_time():
    settings = {**CLEAN, "skewed": 0.3, "skew_seconds": 5.0}
    off: dict[int, set[int]] = {}
    for step in simulate(Fleet(20_000, 10, 1, **settings)):
        ahead = step.events.times - step.events.arrivals
        for user, amount in zip(step.events.users.tolist(), ahead.tolist(), strict=True):
            off.setdefault(user, set()).add(amount)
    assert all(len(amounts) == 1 for amounts in off.values())
    amounts = np.array([amount for (amount,) in off.values()])
    assert np.mean(amounts != 0) == pytest.approx(0.3, abs=0.03)
    assert -5000 <= amounts.min() < -4500
    assert 4500 < amounts.max() <= 5000


def test_duplicates_are_written_again_as_they_were_and_not_before():
    settings = {**CLEAN, "duplicates": 0.1, "delay_seconds": 30.0}
    fleet = Fleet(50_000, 1, 1, **settings)
    (with_copies,), (without,) = simulate(fleet), simulate(Fleet(50_000, 1, 1, **CLEAN))
    copies = with_copies.events.take(slice(len(without.events), None))
    assert len(copies) / len(without.events) == pytest.approx(0.1, abs=0.02)
    originals = set(zip(*columns(without.events)[:3], strict=True))
    assert set(zip(*columns(copies)[:3], strict=True)) <= originals
    assert (copies.arrivals - copies.times).min() >= 0
    assert 28_000 < (copies.arrivals - copies.times).max() <= 30_000


def test_bad_records_have_their_share_and_are_of_every_kind():
    (step,) = simulate(Fleet(50_000, 1, 1, **{**CLEAN, "bad": 0.1}))
    kinds = step.events.kinds
    assert np.mean(kinds != Kind.EVENT) == pytest.approx(0.1 / 1.1, abs=0.02)
    assert set(kinds.tolist()) == set(Kind)


def test_whoever_counts_bad_records_counts_users_who_are_not_there():
    fleet = Fleet(50_000, 1, 1, active=0.3, **{**CLEAN, "bad": 0.1})
    (step,) = simulate(fleet)
    users, kinds = step.events.users, step.events.kinds
    honest, fooled = np.unique(users[kinds == Kind.EVENT]), np.unique(users)
    number = np.count_nonzero(kinds)
    assert (len(fooled) - len(honest)) / number == pytest.approx(0.7, abs=0.1)


def test_bad_transmission_changes_the_stream_but_not_the_truth():
    dirty = {"duplicates": 0.5, "delayed": 0.5, "skewed": 0.5, "bad": 0.5}
    clean_fleet, dirty_fleet = Fleet(500, 5, 1, **CLEAN), Fleet(500, 5, 1, **dirty)
    for clean, dirtied in zip(simulate(clean_fleet), simulate(dirty_fleet), strict=True):
        assert len(dirtied.events) > len(clean.events)
        assert held_items(clean).tolist() == held_items(dirtied).tolist()


# Size


def test_a_stream_of_a_billion_steps_starts_at_once():
    fleet = Fleet(10, 1_000_000_000, 1, step_seconds=1.0)
    assert len(list(islice(in_arrival_order(fleet, simulate(fleet)), 100))) == 100


def test_only_what_may_still_be_overtaken_is_held_back():
    messy = {"delayed": 0.5, "skewed": 0.5, "delay_seconds": 3.0, "skew_seconds": 2.0}
    fleet = Fleet(1000, 200, 1, step_seconds=1.0, **messy)
    sent = written = largest = most_held = 0

    def counted():
        nonlocal sent, largest
        for step in simulate(fleet):
            sent, largest = sent + len(step.events), max(largest, len(step.events))
            yield step

    for events in in_arrival_order(fleet, counted()):
        written += len(events)
        most_held = max(most_held, sent - written)
    assert sent == written
    # Two seconds for fast clocks, two for slow ones, three for a delay.
    assert largest < most_held <= 7 * largest
