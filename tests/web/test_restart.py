"""A real engine and a real journal behind the board, across a restart."""

import json

from streamer.ledger.contract import Life
from streamer.ledger.file_ledger import FileLedger
from streamer.service.pipeline import Pipeline
from streamer.stream.engine import Engine
from streamer.web.board import Board
from tests.service.test_line_run import Kept
from tests.stream.making import TIMING, RepeatingDecider, feed, new_intake, terms

LIFE = Life(TIMING.length_ms, TIMING.epoch_ms)


class Sink(Kept):
    def take_back(self, published, torn):
        assert not torn


async def begin(path, board):
    """A run with this journal, from its start on or from where it was left."""
    journal = FileLedger(path, LIFE, "key")
    restored = await journal.restore()
    engine = Engine(
        new_intake(),
        terms(contributions=50),
        restored.state if restored else None,
        RepeatingDecider(threshold=2),
    )
    pipeline = Pipeline(engine, journal, Sink(), TIMING, board)
    if restored is None:
        await pipeline.start_at(0)
    else:
        board.restored(await journal.history(20_000), restored.published.step)
        await pipeline.recover(restored)
    board.started(engine)
    return journal, engine, pipeline


async def close(engine, pipeline, step, *items):
    """Close a step in which two users hold each of these."""
    feed(engine, *((f"{item}-{user}", item, step) for item in items for user in range(2)))
    await pipeline.close_through(step)
    await pipeline.record_quiet_steps()


def shown(board):
    return [json.loads(kept.json) for kept in board.newest(1_000)]


async def test_the_recent_past_is_there_again_after_a_restart(tmp_path):
    before = Board(TIMING)
    journal, engine, pipeline = await begin(tmp_path / "journal", before)
    for step, items in enumerate([("a",), ("a", "b"), (), (), ("b",), ()]):
        await close(engine, pipeline, step, *items)
    await journal.close()

    after = Board(TIMING)
    journal, engine, pipeline = await begin(tmp_path / "journal", after)
    assert shown(after) == shown(before)
    assert (after.current, after.promise) == (before.current, before.promise)
    await close(engine, pipeline, 6, "c")
    await journal.close()
    assert [record["step"] for record in shown(after)] == list(range(7))
    assert [hitter.item for hitter in after.current.hitters] == ["c"]
