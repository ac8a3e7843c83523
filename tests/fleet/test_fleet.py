"""The settings of a fleet."""

from datetime import UTC, datetime

import pytest

from streamer.errors import SettingError
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak

SHARES = ("active", "personal", "earlier", "duplicates", "delayed", "skewed", "bad")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("users", 0),
        ("users", 1.5),
        ("steps", 0),
        ("steps", True),
        ("seed", -1),
        ("items", 1),
        *((share, value) for share in SHARES for value in (-0.01, 1.01, float("nan"))),
        ("step_seconds", 0.0),
        ("step_seconds", 1.0005),
        ("session", 0.5),
        ("exponent", -1.0),
        ("delay_seconds", -1.0),
        ("skew_seconds", 100_000.0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_its_name(setting, value):
    with pytest.raises(SettingError) as caught:
        Fleet(**{"users": 10, "steps": 10, "seed": 1, setting: value})
    name = setting.replace("_", "-")
    assert caught.value.setting == name
    assert str(caught.value).startswith(f"{name} is {value}: ")


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_of_none_and_of_all_are_allowed(share):
    Fleet(users=10, steps=10, seed=1, **dict.fromkeys(SHARES, share))


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        (datetime(2026, 1, 1), "time zone"),
        (datetime(1969, 12, 31, tzinfo=UTC), "1970"),
        (datetime(9999, 12, 31, tzinfo=UTC), "9999"),
    ],
)
def test_a_start_that_is_no_moment_of_the_stream_is_refused(start, complaint):
    with pytest.raises(SettingError, match="start is") as caught:
        Fleet(users=10, steps=10, seed=1, start=start)
    assert complaint in str(caught.value)


def test_a_stream_ends_before_dates_do():
    with pytest.raises(SettingError, match="steps is 1000000000"):
        Fleet(users=10, steps=1_000_000_000, seed=1, step_seconds=604_800)


@pytest.mark.parametrize(
    ("outbreak", "complaint"),
    [
        (Outbreak("crash", 101, 0, 1), "only 100 users"),
        (Outbreak("crash", 1, 10, 1), "before step 10"),
        (Outbreak("url:/products/1", 1, 0, 1), "the item is already in use"),
        (Outbreak("url:/home/u-1/page-0", 1, 0, 1), "the item is already in use"),
    ],
)
def test_an_outbreak_that_the_fleet_cannot_have_is_refused(outbreak, complaint):
    with pytest.raises(SettingError, match="outbreak is") as caught:
        Fleet(users=100, steps=10, seed=1, outbreaks=(outbreak,))
    assert complaint in str(caught.value)


def test_outbreaks_may_share_users_one_after_the_other_but_not_at_once():
    first, second = Outbreak("a", 60, 0, 5), Outbreak("b", 60, 5, 5)
    Fleet(users=100, steps=10, seed=1, outbreaks=(first, second))
    with pytest.raises(SettingError, match="120 users in one step"):
        Fleet(users=100, steps=10, seed=1, outbreaks=(first, Outbreak("b", 60, 4, 5)))


@pytest.mark.parametrize(
    ("lasting", "complaint"),
    [
        ((Lasting("a", 101),), "lasting is 101 users: there are only 100 users"),
        ((Lasting("a", 60), Lasting("b", 41)), "lasting is 101 users"),
        ((Lasting("crash", 1),), "lasting is crash: the item is already in use"),
        ((Lasting("url:/products/1", 1),), "the item is already in use"),
        ((Lasting("url:/home/u-1/page-0", 1),), "the item is already in use"),
    ],
)
def test_lasting_items_that_the_fleet_cannot_have_are_refused(lasting, complaint):
    outbreaks = (Outbreak("crash", 1, 0, 1),)
    with pytest.raises(SettingError) as caught:
        Fleet(users=100, steps=10, seed=1, outbreaks=outbreaks, lasting=lasting)
    assert complaint in str(caught.value)


def test_lasting_items_and_outbreaks_may_share_users():
    everybody = Lasting("a", 100), Outbreak("b", 100, 0, 1)
    Fleet(users=100, steps=10, seed=1, lasting=everybody[:1], outbreaks=everybody[1:])


def test_the_first_step_is_the_one_that_contains_the_start():
    fleet = Fleet(10, 10, 1, start=datetime(1970, 1, 1, 0, 1, 59, tzinfo=UTC))
    assert fleet.first_step == 1
    assert fleet.step_start(fleet.first_step) == 60_000


def test_planned_outbreaks_are_added_to_the_given_ones():
    fleet = Fleet(1000, 10, 1, outbreaks=(Outbreak("a", 60, 0, 5),)).with_planned_outbreaks(2)
    assert len(fleet.outbreaks) == 3
    assert fleet.outbreaks[0].item == "a"


def test_different_items_have_different_texts():
    named = {"outbreaks": (Outbreak("a", 1, 0, 1),), "lasting": (Lasting("b", 1),)}
    catalogue = Fleet(50, 1, 1, items=500, **named).catalogue()
    texts = [catalogue.text(item) for item in range(catalogue.shared + 50 * 4)]
    assert len(set(texts)) == len(texts) == 702
    assert [catalogue.text(catalogue.number(text)) for text in "ab"] == ["a", "b"]
