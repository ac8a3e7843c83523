"""The run behind `streamer demo`: a simulated fleet through the real decoder, engine and
journal, in real time, onto a board.

Only the senders are made up. Their records are bytes, as from Kafka, and arrive when the
clock says so; everything after that is what `streamer run` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamer.config import PrivacySettings, StreamSettings
from streamer.fleet.endless import Sent, check_users, sent_by
from streamer.ledger.directory import JournalDirectory
from streamer.ledger.sqlite import SqliteJournal
from streamer.ledger.sqlite_restore import HISTORY
from streamer.privacy.threshold import Plan
from streamer.service.clock import Clock, wall_clock
from streamer.service.pipeline import Pipeline
from streamer.service.startup import (
    check_key,
    intake_of,
    life_of,
    pseudonyms_of,
    tell_of_pending_terms,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.stream.engine import Engine, FreshNoise, StepDecider
from streamer.stream.intake import Batch
from streamer.stream.publication import Publication, Published
from streamer.stream.watching import Watcher, Watchers
from streamer.web.board import Board
from streamer.web.ground_truth import Truth

STREAM = StreamSettings(step_seconds=1.0, lateness_seconds=0.5)
# An outbreak of half a minute is reported about ten times, as an item rests for three
# seconds, and each of its users is charged as often. With k = 30 few users have nothing
# left when their budget starts again, ten minutes later: the demo can go on for ever, and
# the guarantee that it shows is the one that it keeps.
PRIVACY = PrivacySettings(contributions=30, period_steps=600, refresh_steps=3)

_PARTITION = "fleet"
_TICK_SECONDS = 0.1
_AHEAD = 2
"""Steps that are prepared before their time."""
_ROWS = 8_192
"""Records that are taken in at a time."""
_REMEMBERED = 10
"""Steps whose outbreaks are known: those that are open, and the last closed one."""
_LONGEST_LAG = 5
"""Steps. Who is further behind has slept, or is too slow, and goes on with the present."""


@dataclass(slots=True)
class Demo:
    """Runs until it is stopped."""

    users: int
    seed: int
    journal: Path | None = None
    """None: a directory that is gone afterwards."""
    clock: Clock = wall_clock
    decider: Callable[[Plan], StepDecider] = FreshNoise
    truth: Truth = field(default_factory=Truth)
    summary: Summary = field(default_factory=Summary)
    board: Board = field(default_factory=lambda: Board(timing_of(STREAM)))
    left_out: int = 0
    """Steps in which the fleet was not simulated, because we were behind."""
    _outbreaks: dict[int, frozenset[str]] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        check_users(self.users)

    @property
    def outbreaks(self) -> frozenset[str]:
        """The items of those that went on in the last closed step."""
        return self._outbreaks.get(self.board.through or 0, frozenset())

    def stop(self) -> None:
        """Finish the step that is being closed, and end."""
        self._stopping.set()

    async def run(self) -> None:
        async with AsyncExitStack() as at_end:
            pipeline = await self._restore(at_end)
            fleets = 0
            while not self._stopping.is_set():
                # Another seed for those after the first: they are not to repeat it.
                await self._play(self.seed + fleets, pipeline)
                fleets += 1

    async def _restore(self, at_end: AsyncExitStack) -> Pipeline:
        """The journal, and an engine that goes on where it ends."""
        path = self.journal
        if path is None:
            path = Path(at_end.enter_context(tempfile.TemporaryDirectory(prefix="streamer-")))
        directory = JournalDirectory(path)
        at_end.callback(directory.close)
        timing, terms = timing_of(STREAM), terms_of(PRIVACY)
        pseudonyms = pseudonyms_of(PRIVACY, directory)
        journal = SqliteJournal(directory.database, life_of(timing), pseudonyms.fingerprint)
        at_end.push_async_callback(journal.close)
        restored = await journal.restore()
        intake = intake_of(STREAM, timing, pseudonyms)
        engine = Engine(intake, terms, restored.state if restored else None, self.decider)
        watcher: Watcher = Watchers((self.summary, self.board))
        pipeline = Pipeline(engine, journal, _OntoTheBoard(), timing, watcher)
        if restored is not None:
            check_key(restored, pseudonyms)
            watcher.restored(await journal.history(HISTORY), restored.published.step)
            await pipeline.recover(restored)
        tell_of_pending_terms(engine, timing)
        watcher.started(engine)
        return pipeline

    async def _play(self, seed: int, pipeline: Pipeline) -> None:
        """A fleet from now on, until we are stopped or too far behind."""
        timing = timing_of(STREAM)
        first = timing.step_at(self.clock()) + 1
        if pipeline.engine.closed is None:
            await pipeline.start_at(first)
        line = _Line(pipeline, self._stopping)
        async with _prepared(sent_by(self.users, seed, first, timing)) as steps:
            known = first - 1
            while not self._stopping.is_set():
                now = self.clock()
                while known < timing.step_at(now) + 1 and not steps.empty():
                    sent = steps.get_nowait()
                    self._tell(sent)
                    line.add(sent)
                    known = sent.step
                over = timing.last_over(now)
                if over - known > _LONGEST_LAG:
                    self.left_out += over - known
                    return
                await line.deliver(now)
                if self._stopping.is_set():
                    return  # not all may be delivered: the step stays open
                await pipeline.close_through(min(over, known))
                await pipeline.record_quiet_steps()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _TICK_SECONDS)

    def _tell(self, sent: Sent) -> None:
        """What is true of a step that is not closed yet."""
        self.truth.tell(sent.truth)
        known = {**self._outbreaks, sent.step: sent.outbreaks}
        self._outbreaks = {step: known[step] for step in sorted(known)[-_REMEMBERED:]}


@asynccontextmanager
async def _prepared(steps: Iterator[Sent]) -> AsyncIterator[asyncio.Queue[Sent]]:
    """Simulates ahead, in a thread, so that the page is answered meanwhile."""
    ready: asyncio.Queue[Sent] = asyncio.Queue(_AHEAD)

    async def prepare() -> None:
        while True:
            await ready.put(await asyncio.to_thread(next, steps))

    preparing = asyncio.create_task(prepare())
    try:
        yield ready
    finally:
        preparing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await preparing


class _Line:
    """Hands records over when they arrive."""

    def __init__(self, pipeline: Pipeline, stopping: asyncio.Event) -> None:
        self._pipeline, self._stopping = pipeline, stopping
        self._waiting: list[tuple[Sent, int]] = []
        self._offset = 0

    def add(self, sent: Sent) -> None:
        self._waiting.append((sent, 0))

    async def deliver(self, now: int) -> None:
        """All that has arrived by now. Steps overlap: some records are early, some late."""
        waiting = []
        for sent, done in self._waiting:
            due = int(np.searchsorted(sent.arrivals, now, side="right"))
            for start in range(done, due, _ROWS):
                rows = slice(start, min(start + _ROWS, due))
                self._receive(sent.records[rows], sent.arrivals[rows], now)
                await asyncio.sleep(0)  # lets readers of the page, and signals, through
                if self._stopping.is_set():
                    return
            if due < len(sent.records):
                waiting.append((sent, due))
        self._waiting = waiting

    def _receive(self, records: list[bytes], arrivals: np.ndarray, now: int) -> None:
        offsets = np.arange(self._offset, self._offset + len(records))
        self._offset += len(records)
        self._pipeline.receive(Batch(_PARTITION, offsets, records, arrivals), now)


class _OntoTheBoard:
    """Implements `Sink`: the board, a watcher, is all there is to publish to."""

    def sizes(self) -> Mapping[str, int]:
        return {}

    def take_back(self, published: Published, torn: bool) -> None:
        """The board begins with what the journal says."""

    async def publish(self, publication: Publication) -> None:
        """The pipeline tells the board itself."""
