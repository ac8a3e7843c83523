"""What a board shows of a stream, and what it must not."""

import json

import pytest

from streamer.stream.decided import Decided
from streamer.stream.publication import PublicSettings, published_before
from streamer.web.board import Board
from tests.stream.making import terms
from tests.web.making import SECONDS, new_stream


def shown(board):
    return [json.loads(kept.json) for kept in board.newest(10**6)]


def steps(board):
    return [(record.get("first"), record["step"], record["hitters"]) for record in shown(board)]


def hitters(board):
    return {hitter.item: hitter.estimate for hitter in board.current.hitters}


def restore(board, history, published, **limit):
    """As at a start of the service."""
    board.restored(published_before(history, published, SECONDS, **limit))


def history_of(stream, *decisions):
    """Decisions as a journal gives them back."""
    return [stream.decided(step, hitters) for step, hitters in decisions]


def test_a_step_is_shown_with_its_results():
    stream = new_stream()
    stream.step(a=120, b=95)
    [record] = shown(stream.board)
    assert (record["step"], record["hitters"], record["start"]) == (1, 2, "2026-01-01T00:00:01Z")
    period = stream.period
    assert record["results"] == [
        {
            "item": item,
            "estimate": estimate,
            "low": period.interval(item, estimate)[0],
            "high": period.interval(item, estimate)[1],
            "margin": period.margin,
            "threshold": period.plan.threshold,
        }
        for item, estimate in (("a", 120), ("b", 95))
    ]
    assert hitters(stream.board) == {"a": 120, "b": 95}


def test_what_was_reported_before_the_last_step_is_over():
    stream = new_stream()
    stream.step(a=120)
    stream.step()
    assert hitters(stream.board) == {}
    assert (stream.board.current.step, stream.board.current.end) == (2, "2026-01-01T00:00:03Z")


def test_an_item_that_rests_is_still_held():
    stream = new_stream(refresh_steps=3)
    stream.step(a=120)
    stream.step(b=80)
    stream.step()
    assert hitters(stream.board) == {"a": 120, "b": 80}
    stream.step()
    assert hitters(stream.board) == {"b": 80}


def test_the_largest_estimate_comes_first_and_equal_ones_by_item():
    stream = new_stream()
    stream.step(b=90, c=120, a=90)
    assert [hitter.item for hitter in stream.board.current.hitters] == ["c", "a", "b"]


def test_a_long_quiet_run_is_one_record():
    stream = new_stream()
    stream.report({"a": 120})
    stream.report({"b": 80}, skipping=5_000)
    assert steps(stream.board) == [(None, 1, 1), (2, 5_001, 0), (None, 5_002, 1)]


def test_the_past_is_bounded_in_steps():
    stream = new_stream(most_steps=10)
    for _ in range(25):
        stream.step(a=120)
    assert (stream.board.oldest, stream.board.through) == (16, 25)


def test_the_past_is_bounded_in_bytes_and_keeps_the_last_step_whatever_its_size():
    stream = new_stream(most_bytes=1_000)
    for _ in range(25):
        stream.step(a=120)
    assert 1 < len(shown(stream.board)) < 10
    assert sum(len(kept.json) for kept in stream.board.newest(100)) <= 1_000
    stream.report({"x" * 5_000: 90})
    assert steps(stream.board) == [(None, 26, 1)]


def test_steps_can_be_asked_for_from_any_step_on():
    stream = new_stream()
    for _ in range(3):
        stream.step(a=120)
    stream.report({"a": 120}, skipping=200)
    board = stream.board
    assert [kept.step for kept in board.after(0, 10)] == [1, 2, 3, 203, 204]
    assert [kept.step for kept in board.after(2, 2)] == [3, 203]
    assert [kept.step for kept in board.after(100, 10)] == [203, 204]  # from inside of the run
    assert board.after(204, 10) == []
    assert [kept.step for kept in board.newest(2)] == [203, 204]


def test_a_restored_board_shows_what_was_published():
    live = new_stream()
    decisions = [live.report({"a": 120} if number % 2 else {}) for number in range(1, 8)]
    board = Board(SECONDS)
    restore(board, decisions, published=7)
    assert shown(board) == shown(live.board)
    assert board.current == live.board.current
    assert board.promise == live.board.promise


def test_how_a_journal_cuts_empty_runs_is_not_shown():
    """One user's event in a quiet hour cuts a run in the journal: nobody may see that."""
    stream = new_stream()
    period = stream.period
    whole = [
        *history_of(stream, (1, {"a": 120})),
        Decided(900, 2, period),
        *history_of(stream, (901, {"a": 90})),
        Decided(950, 902, period),
    ]
    cut = [
        whole[0],
        Decided(400, 2, period),
        Decided(401, 401, period),  # somebody sent something
        Decided(900, 402, period),
        whole[2],
        Decided(902, 902, period),
        Decided(950, 903, period),
    ]
    boards = [Board(SECONDS), Board(SECONDS)]
    for board, history in zip(boards, (whole, cut), strict=True):
        restore(board, history, published=950)
    assert shown(boards[0]) == shown(boards[1])
    assert [step for _, step, _ in steps(boards[0])[:3]] == [1, 900, 901]


def test_only_the_last_steps_of_a_journal_are_taken_up_however_many_entries_it_has():
    stream = new_stream()
    period = stream.period
    busy = [Decided(step, step, period) for step in range(1, 200)]
    board = Board(SECONDS)
    restore(board, [*busy, *history_of(stream, (200, {"a": 120}))], 200, most_steps=50)
    assert (board.oldest, board.through) == (151, 200)


def test_what_is_decided_but_not_published_is_not_shown_before_it_is():
    stream = new_stream()
    history = history_of(stream, (1, {"a": 120}), (2, {}), (3, {"b": 80}))
    board = Board(SECONDS)
    restore(board, history, published=2)
    assert (board.through, hitters(board)) == (2, {})
    stream.recorder.recorded = 2
    board.published(stream.recorder.with_results(history[2]))
    assert (board.through, hitters(board)) == (3, {"b": 80})


def test_what_is_told_twice_is_shown_once():
    stream = new_stream()
    decisions = [stream.report({"a": 120}), stream.report({"b": 80})]
    before = shown(stream.board)
    restore(stream.board, decisions, published=2)
    assert shown(stream.board) == before


def test_a_new_journal_restores_nothing():
    board = Board(SECONDS)
    restore(board, [], published=5)
    assert (board.oldest, board.through, board.current.step) == (None, None, None)


def test_the_promise_is_there_before_the_first_step():
    board = Board(SECONDS)
    board.started(PublicSettings(terms(contributions=7)))
    assert (board.promise.contributions, board.promise.period) == (7, None)
    assert board.promise.threshold == terms(contributions=7).plan().threshold


def test_producers_who_are_trusted_are_spoken_of_in_every_period():
    board = Board(SECONDS)
    board.started(PublicSettings(terms(period_steps=10), trusts_producers=True))
    assert board.promise.trusts_producers
    stream = new_stream(period_steps=10)
    restore(board, history_of(stream, (1, {"a": 100})), published=1)
    assert (board.promise.period, board.promise.trusts_producers) == (0, True)
    following = stream.period.at(12, stream.terms)
    board.published(stream.recorder.without_results(12, following))
    assert (board.promise.period, board.promise.trusts_producers) == (1, True)
    assert not stream.board.promise.trusts_producers


def test_a_new_period_is_shown_with_its_first_published_step():
    stream = new_stream(period_steps=10)
    stream.report({"a": 120}, skipping=5)
    assert stream.board.promise.period == 0
    following = stream.period.at(12, stream.terms)
    stream.board.published(stream.recorder.without_results(12, following))
    assert (stream.board.promise.period, stream.board.promise.first) == (1, 10)


def test_every_change_has_a_revision_of_its_own():
    stream = new_stream()
    seen = {stream.board.revision}
    for _ in range(5):
        stream.step(a=120)
        assert stream.board.revision not in seen
        seen.add(stream.board.revision)


@pytest.mark.parametrize("item", ["<script>", 'quote"', "\x00\x1b[31m", "\u202egnp.exe", "\u2028"])
def test_items_are_kept_as_they_are(item):
    stream = new_stream()
    stream.report({item: 120})
    assert shown(stream.board)[0]["results"][0]["item"] == item
    assert hitters(stream.board) == {item: 120}
