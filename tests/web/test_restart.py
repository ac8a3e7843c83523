"""A real engine and a real ledger behind the board, across a restart."""

import json
from contextlib import AsyncExitStack

from streamer.ledger.contract import Life
from streamer.ledger.file_ledger import FileLedger
from streamer.service.resume import Course, Opened, resume
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import PublicSettings
from streamer.stream.watching import Watcher
from streamer.web.board import Board
from tests.stream.making import KEY, TIMING, RepeatingDecider, feed, new_intake, terms

LIFE = Life(TIMING.length_ms, TIMING.epoch_ms)


async def begin(path, board, at_end):
    """A run with this ledger, from its start on or from where it was left."""

    async def opening(at_end):
        pseudonyms = Pseudonyms(KEY)
        ledger = FileLedger(path, LIFE, pseudonyms.fingerprint)
        at_end.push_async_callback(ledger.close)
        return Opened(ledger, pseudonyms)

    course = Course(
        TIMING,
        PublicSettings(terms(contributions=50)),
        lambda pseudonyms: new_intake(),
        RepeatingDecider(threshold=2),
        Watcher(),
        board,
        lambda _: None,
    )
    pipeline = await resume(course, opening, at_end)
    if pipeline.engine.closed is None:
        pipeline.start_at(0)
    return pipeline


async def close(pipeline, step, *items):
    """Close a step in which two users hold each of these."""
    feed(pipeline.engine, *((f"{item}-{user}", item, step) for item in items for user in range(2)))
    await pipeline.close_through(step)
    await pipeline.record_quiet_steps()


def shown(board):
    return [json.loads(kept.json) for kept in board.newest(1_000)]


async def test_the_recent_past_is_there_again_after_a_restart(tmp_path):
    before, after = Board(TIMING), Board(TIMING)
    async with AsyncExitStack() as at_end:
        pipeline = await begin(tmp_path / "journal", before, at_end)
        for step, items in enumerate([("a",), ("a", "b"), (), (), ("b",), ()]):
            await close(pipeline, step, *items)
    async with AsyncExitStack() as at_end:
        pipeline = await begin(tmp_path / "journal", after, at_end)
        assert shown(after) == shown(before)
        assert (after.current, after.promise) == (before.current, before.promise)
        await close(pipeline, 6, "c")
    assert [record["step"] for record in shown(after)] == list(range(7))
    assert [hitter.item for hitter in after.current.hitters] == ["c"]
