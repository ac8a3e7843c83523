"""Trends: what is more than noise, and for how long an item is reported."""

import random

import pytest
from msgspec import UNSET, structs

from streamer.stream.current import CurrentHitters, Trend
from streamer.stream.publication import Publication
from streamer.stream.records import StepRecord
from tests.web.making import new_stream


def trend_of(*estimates):
    stream = new_stream(epsilon=1.0)
    for estimate in estimates:
        stream.step(**({"a": estimate} if estimate else {}))
    [hitter] = stream.board.current.hitters
    return hitter.trend


MARGIN = new_stream(epsilon=1.0).period.margin


@pytest.mark.parametrize(
    ("estimates", "trend"),
    [
        ([1_000], Trend.NEW),
        ([1_000, 1_000 + 2 * MARGIN], Trend.STEADY),
        ([1_000, 1_001 + 2 * MARGIN], Trend.GROWING),
        ([1_001 + 2 * MARGIN, 1_000], Trend.SHRINKING),
        ([1_000 + MARGIN * step for step in range(8)], Trend.GROWING),
        ([1_000 - MARGIN * step for step in range(8)], Trend.SHRINKING),
        # Grown once, long ago.
        ([1_000] + [5_000] * 8, Trend.STEADY),
    ],
)
def test_a_trend_is_what_differs_by_more_than_noise(estimates, trend):
    assert trend_of(*estimates) is trend


def published(step, result):
    return Publication(step, (result,), (StepRecord(step, "start", "end", 1, 0),))


def trend_after(*reports):
    """Of reports with their intervals: (estimate, low, high)."""
    stream, current = new_stream(epsilon=1.0), CurrentHitters()
    for step, (estimate, low, high) in enumerate(reports, start=1):
        [result] = stream.recorder.with_results(stream.decided(step, {"a": estimate})).results
        current.take(published(step, structs.replace(result, low=low, high=high)))
    [item] = current.now()
    return item.trend


@pytest.mark.parametrize(
    ("reports", "trend"),
    [
        ([(500, 400, 600), (700, 600, 800)], Trend.STEADY),
        ([(500, 400, 600), (701, 601, 801)], Trend.GROWING),
        ([(701, 601, 801), (500, 400, 600)], Trend.SHRINKING),
        # Few users may have been reported twice, with much noise the second time.
        ([(500, 0, 520), (701, 0, 801)], Trend.STEADY),
        # The first report, near the threshold, was too high if anything.
        ([(500, 0, 300), (650, 550, 750)], Trend.GROWING),
        ([(650, 550, 750), (500, 0, 300)], Trend.SHRINKING),
        # The noise of each report counts, also if other terms apply since the last one.
        ([(500, 100, 900), (800, 800, 800)], Trend.STEADY),
        # Reports of 0.1.0 have only the margin of the noise.
        ([(500, UNSET, UNSET), (501 + 2 * MARGIN, UNSET, UNSET)], Trend.GROWING),
        ([(500, UNSET, UNSET), (500 + 2 * MARGIN, UNSET, UNSET)], Trend.STEADY),
    ],
)
def test_a_trend_is_what_the_intervals_do_not_explain(reports, trend):
    assert trend_after(*reports) is trend


def test_a_slow_rise_is_seen_over_several_steps():
    slow = [1_000 + MARGIN // 3 * step for step in range(8)]
    assert trend_of(*slow[:2]) is Trend.STEADY
    assert trend_of(*slow) is Trend.GROWING


def test_noise_alone_rarely_has_a_trend():
    """Gaussian noise of half a margin: three standard deviations are passed once in 370."""
    rng = random.Random(1)
    trends = [
        trend_of(*(round(10_000 + rng.gauss(0, MARGIN / 2)) for _ in range(8))) for _ in range(300)
    ]
    assert trends.count(Trend.STEADY) > 290


def test_a_run_survives_one_missed_report_and_no_more():
    stream = new_stream()
    for hitters in ({"a": 120}, {}, {"a": 120}):
        stream.report(hitters)
    [hitter] = stream.board.current.hitters
    assert (hitter.trend, hitter.since) == (Trend.STEADY, 1)
    for hitters in ({}, {}, {"a": 120}):
        stream.report(hitters)
    [hitter] = stream.board.current.hitters
    assert (hitter.trend, hitter.since) == (Trend.NEW, 6)


def test_an_item_that_rests_between_reports_has_one_run():
    stream = new_stream(refresh_steps=5)
    for _ in range(3):
        stream.report({"a": 120}, skipping=4)
    [hitter] = stream.board.current.hitters
    assert (hitter.step, hitter.since, hitter.trend) == (15, 5, Trend.STEADY)


def test_items_that_are_gone_are_forgotten():
    stream, current = new_stream(), CurrentHitters()
    for step in range(1, 200):
        current.take(stream.recorder.with_results(stream.decided(step, {f"item-{step}": 120})))
        stream.recorder.recorded = step
    assert [each.latest.item for each in current.now()] == ["item-199"]
    # Those that may still go on are the last three.
    assert len(current) == 3
