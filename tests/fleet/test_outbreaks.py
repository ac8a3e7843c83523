"""Outbreaks: their sizes in each step, how they are written and how they are planned."""

import pytest

from streamer.errors import SettingError
from streamer.fleet.outbreaks import (
    Outbreak,
    Shape,
    holders_at_once,
    parse_outbreak,
    plan_outbreaks,
)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        (Shape.FLAT, [0, 0, 100, 100, 100, 100, 0, 0]),
        (Shape.RAMP, [0, 0, 25, 50, 75, 100, 0, 0]),
        (Shape.SPIKE, [0, 0, 100, 57, 25, 7, 0, 0]),
    ],
)
def test_each_shape_has_its_number_of_holders_in_each_step(shape, sizes):
    outbreak = Outbreak("crash", 100, start=2, length=4, shape=shape)
    assert [outbreak.holders(step) for step in range(8)] == sizes


@pytest.mark.parametrize("shape", Shape)
def test_while_it_lasts_an_outbreak_has_a_holder_and_at_some_time_all(shape):
    sizes = [Outbreak("crash", 3, 0, 50, shape).holders(step) for step in range(50)]
    assert min(sizes) >= 1
    assert max(sizes) == 3


@pytest.mark.parametrize(
    ("text", "outbreak"),
    [
        ("crash:A.java:42,800,5,10", Outbreak("crash:A.java:42", 800, 5, 10)),
        ("crash,800,5,10,spike", Outbreak("crash", 800, 5, 10, Shape.SPIKE)),
        (" crash , 800, 5, 10, ramp ", Outbreak("crash", 800, 5, 10, Shape.RAMP)),
        ("search:a,b,1,0,1", Outbreak("search:a,b", 1, 0, 1)),
        ("9,8,7,6", Outbreak("9", 8, 7, 6)),
        ("ä" * 500 + ",1,0,1", Outbreak("ä" * 500, 1, 0, 1)),
    ],
)
def test_an_outbreak_is_read_from_text(text, outbreak):
    assert parse_outbreak(text) == outbreak


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "ITEM,SIZE,START,LENGTH"),
        ("crash", "ITEM,SIZE,START,LENGTH"),
        ("crash,1,2", "ITEM,SIZE,START,LENGTH"),
        ("crash,many,0,1", "ITEM,SIZE,START,LENGTH"),
        ("crash,-1,0,1", "ITEM,SIZE,START,LENGTH"),
        ("crash,1.5,0,1", "ITEM,SIZE,START,LENGTH"),
        ("crash,١,0,1", "ITEM,SIZE,START,LENGTH"),
        ("crash,1,0,1,", "ITEM,SIZE,START,LENGTH"),
        ("crash,1,0,1,wave", "flat, ramp, spike"),
        (",1,0,1", "printable text of 1 to 1,000 bytes"),
        ("a\nb,1,0,1", "printable text"),
        ("a\udcff,1,0,1", "printable text"),
        ("a" * 1001 + ",1,0,1", "printable text"),
        ("ä" * 501 + ",1,0,1", "printable text"),
        ("crash,0,0,1", "size must be at least 1"),
        ("crash,1,0,0", "length must be at least 1"),
    ],
)
def test_what_is_no_outbreak_is_refused(text, complaint):
    with pytest.raises(SettingError, match="outbreak is") as caught:
        parse_outbreak(text)
    assert complaint in str(caught.value)


def test_an_outbreak_cannot_start_before_the_first_step():
    with pytest.raises(SettingError, match="start must be at least 0"):
        Outbreak("crash", 1, -1, 1)


def test_users_are_needed_at_once_only_by_outbreaks_that_overlap():
    outbreaks = [Outbreak("a", 10, 0, 5), Outbreak("b", 20, 4, 5), Outbreak("c", 40, 9, 1)]
    assert holders_at_once(outbreaks, 0, 10) == 40
    assert holders_at_once(outbreaks, 0, 9) == 30
    assert holders_at_once(outbreaks, 5, 9) == 20
    assert holders_at_once(outbreaks, 10, 20) == 0


def test_planned_outbreaks_come_from_the_seed_and_fit_the_fleet():
    planned = plan_outbreaks(10, users=10_000, steps=100, seed=1)
    assert planned == plan_outbreaks(10, users=10_000, steps=100, seed=1)
    assert planned != plan_outbreaks(10, users=10_000, steps=100, seed=2)
    assert len(planned) == len({outbreak.item for outbreak in planned}) == 10
    assert len({outbreak.size for outbreak in planned}) > 5
    assert {outbreak.shape for outbreak in planned} == set(Shape)
    assert all(100 <= outbreak.size <= 1000 for outbreak in planned)
    assert all(outbreak.start < 100 and outbreak.length <= 40 for outbreak in planned)


def test_planned_outbreaks_never_need_more_users_than_others_leave():
    given = [Outbreak("given", 990, 0, 100)]
    planned = plan_outbreaks(100, users=1000, steps=100, seed=1, others=given)
    assert planned
    assert holders_at_once([*given, *planned], 0, 100) == 1000
    assert plan_outbreaks(5, users=990, steps=100, seed=1, others=given) == ()


@pytest.mark.parametrize("number", [-1, 101])
def test_the_number_of_planned_outbreaks_is_limited(number):
    with pytest.raises(SettingError, match=f"outbreaks is {number}"):
        plan_outbreaks(number, users=10, steps=10, seed=1)
