"""A real service's day against the monitor; and small days that can be followed by hand."""

import pytest

from streamer.experiments.real_day import DayResult, play_day
from streamer.fleet.day import day_fleet
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak, Shape
from streamer.monitors.attention import Pace, pace_of
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.terms import Method
from streamer.privacy.threshold import Plan, Workload, plan


def clear(contributions: int = 3) -> Plan:
    """A threshold of 600 users; 60 more or fewer decide whether something is reported."""
    calibration = calibrate(Guarantee(10.0, 1e-6, contributions))
    made = Plan(Workload(8, 10, 0.05), calibration, threshold=600)
    assert 600 < made.guaranteed_weight < 660
    return made


# Everybody has a lasting item, then that of an outbreak as well; and later another one.
SMALL = Fleet(
    *(1000, 8, 1),
    lasting=(Lasting("a", 1000),),
    outbreaks=(Outbreak("b", 1000, 1, 3), Outbreak("c", 1000, 5, 2)),
)


def test_reports_in_every_step_use_up_the_budgets_before_noon():
    # Reported: a in step 0, b in steps 1 and 2.
    result = play_day(SMALL, clear(), Pace())
    assert result == DayResult(
        pairs=13, public_pairs=3, outbreaks=2, found=1, users=1000, exhausted=1000
    )
    assert (result.public_share, result.exhausted_share) == (3 / 13, 1.0)


def test_what_rests_after_a_report_is_public_meanwhile():
    # Reported: a in step 0, b in step 1, a again in step 4. At noon one charge is left.
    assert play_day(SMALL, clear(), Pace(refresh_steps=4)) == DayResult(
        pairs=13, public_pairs=11, outbreaks=2, found=1, users=1000, exhausted=0
    )


def test_an_item_that_its_users_have_is_missed_if_it_is_not_counted():
    result = play_day(SMALL, clear(contributions=8), Pace())
    # While an outbreak lasts, its item is the latest of every user, and only that counts.
    assert (result.pairs, result.public_pairs, result.found) == (13, 8, 2)


def test_an_outbreak_that_is_first_reported_in_its_third_step_is_not_found():
    def found(length: int) -> int:
        outbreak = Outbreak("a", 800, 0, length, Shape.RAMP)
        return play_day(Fleet(1000, 8, 1, outbreaks=(outbreak,)), clear(), Pace()).found

    assert found(2) == 1  # 400 users, then 800
    assert found(3) == 0  # 267, 534, 800


def test_nothing_is_missed_where_nothing_has_the_guaranteed_weight():
    quiet = play_day(Fleet(1000, 8, 1, lasting=(Lasting("a", 500),)), clear(), Pace())
    assert (quiet.pairs, quiet.public_share) == (0, 1.0)


def test_the_noise_of_a_seed_is_always_the_same():
    outbreaks = tuple(Outbreak(f"{step}", 600, step, 1) for step in range(8))

    def found() -> list[int]:
        """How many of the outbreaks, each of which is reported half of the time."""
        fleet, plan = Fleet(1000, 8, 1, outbreaks=outbreaks), clear(contributions=8)
        return [play_day(fleet, plan, Pace(), SeededBytes(seed)).found for seed in range(12)]

    assert found() == found()
    assert len(set(found())) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refresh_steps", "public_steps", "found"), [(1, 10, {0}), (60, 600, {8, 9})]
)
def test_at_full_prices_what_lasts_uses_up_the_budgets_and_outbreaks_go_unseen(
    refresh_steps, public_steps, found
):
    """With the calibration of 0.1.0, each lasting item is reported ten times; its users, three
    quarters of all, then have no budget, and 250 of an outbreak's 1,000 users are too few.

    At 60 steps this is so after nine hours. In the ninth outbreak about 750 users have budget
    left: a third of those with a lasting item paid for an earlier outbreak as well.
    """
    workload = Workload(1440, 100_000, 0.05, users=1_000_000)
    planned = plan(Guarantee(1.0, 1e-6, 10), workload, Method.EXACT)
    result = play_day(day_fleet(1), planned, Pace(refresh_steps=refresh_steps), SeededBytes(1))
    assert (result.pairs, result.outbreaks, result.users) == (3 * 1440, 24, 20_000)
    assert result.public_pairs == 3 * public_steps
    assert result.found in found
    assert result.exhausted == 15_000


@pytest.mark.slow
def test_who_pays_for_changes_sees_the_whole_day():
    """At the defaults: everything that lasts, every outbreak at once, and nobody without budget."""
    workload = Workload(1440, 100_000, 0.05, users=1_000_000, items_per_step=3)
    planned = plan(Guarantee(1.0, 1e-6, 10), workload)
    result = play_day(day_fleet(1), planned, pace_of(planned), SeededBytes(1))
    assert (result.outbreaks, result.users) == (24, 20_000)
    assert result.pairs >= 3 * 1440
    assert result.public_share >= 0.98
    assert result.found >= 23
    assert result.exhausted_share < 0.05
