"""Growth: what two intervals of an item prove, an hour apart."""

import pytest

from streamer.operations.growth import Growth
from streamer.stream.records import ResultRecord

MINUTE = 60_000
HALF_WIDTH = 100


def value(step, estimate, since=0, item="a"):
    """A result; without an estimate, the item is still there."""
    has_value = estimate is not None
    return ResultRecord(
        step=step,
        start="",
        end="",
        item=item,
        since=since,
        estimate=estimate,
        low=estimate - HALF_WIDTH if has_value else None,
        high=estimate + HALF_WIDTH if has_value else None,
        margin=HALF_WIDTH,
        threshold=1,
        epsilon=1.0,
        delta=1e-6,
        contributions=10,
        period=0,
    )


def growth_after(*values, step_ms=MINUTE):
    """Of an item with these values, by step."""
    growth = Growth(step_ms)
    for step, estimate in values:
        growth.take([value(step, estimate)])
    return growth.of("a")


@pytest.mark.parametrize(
    ("values", "grown"),
    [
        ([], 0),
        ([(0, 1_000)], 0),
        ([(0, 1_000), (1, 1_000)], 0),
        ([(0, 1_000), (1, 1_200)], 0),  # the intervals meet
        ([(0, 1_000), (1, 1_201)], 1),
        ([(0, 1_000), (1, 1_500)], 300),
        ([(0, 1_500), (1, 1_000)], 0),
        ([(0, 1_000), (1, None), (2, 1_500), (3, None)], 300),  # it lasts until the next value
        ([(0, 1_000), (1, 1_500), (3, 1_000)], 0),
    ],
)
def test_it_is_what_lies_between_the_intervals(values, grown):
    assert growth_after(*values) == grown


class TestTheEarlierValue:
    def test_it_is_the_first_while_the_item_is_younger_than_an_hour(self):
        ramp = [(0, 1_000), (1, 1_100), (3, 1_200), (7, 1_300)]
        assert growth_after(*ramp) == 100
        assert growth_after(*ramp, (59, 1_400)) == 200

    def test_it_is_the_last_that_is_an_hour_before(self):
        values = [(0, 1_000), (3, 2_000), (30, 2_000), (62, 2_500)]
        assert growth_after(*values) == 2_500 - 1_000 - 2 * HALF_WIDTH
        assert growth_after(*values[:3], (63, 2_500)) == 2_500 - 2_000 - 2 * HALF_WIDTH

    def test_it_is_the_one_before_if_values_are_further_apart(self):
        assert growth_after((0, 1_000), (600, 3_000), (1_200, 3_100)) == 0
        assert growth_after((0, 1_000), (600, 1_000), (1_200, 1_500)) == 300

    def test_an_hour_is_one_of_the_clock(self):
        values = [(0, 1_000), (1, 2_000), (7, 2_000)]
        assert growth_after(*values, step_ms=MINUTE) == 800
        assert growth_after(*values, step_ms=10 * MINUTE) == 0

    def test_of_very_many_only_some_are_kept(self):
        values = [(step, 1_000 + 10 * step) for step in range(1_000)]
        assert growth_after(*values, step_ms=1) == 63 * 10 - 2 * HALF_WIDTH


class TestStretches:
    def test_an_item_that_is_back_is_compared_with_itself_only_since_then(self):
        growth = Growth(MINUTE)
        growth.take([value(0, 1_000)])
        growth.take([value(5, 2_000, since=5)])
        assert growth.of("a") == 0
        growth.take([value(6, 3_000, since=5)])
        assert growth.of("a") == 800

    def test_items_do_not_mix(self):
        growth = Growth(MINUTE)
        growth.take([value(0, 1_000), value(0, 5_000, item="b")])
        growth.take([value(1, 5_000), value(1, 5_000, item="b")])
        assert (growth.of("a"), growth.of("b")) == (3_800, 0)

    def test_only_public_ones_are_kept(self):
        growth = Growth(MINUTE)
        growth.take([value(0, 1_000), value(0, 1_000, item="b")])
        growth.keep({"b"})
        growth.take([value(1, 5_000), value(1, 5_000, item="b")])
        assert (growth.of("a"), growth.of("b")) == (0, 3_800)
