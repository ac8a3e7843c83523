"""The run behind `streamer demo`: a simulated fleet through the real decoder, engine and
ledger, in real time, shown on a board.

Only the senders are simulated. Their records are bytes, as from Kafka, and arrive on the
clock; everything after that is the same as in `streamer run`.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from streamer.fleet.endless import Sent, check_users
from streamer.fleet.live import LiveFleet, live_fleet
from streamer.ledger.file_ledger import FileLedger
from streamer.monitors.deciding import NoisyThreshold
from streamer.operations.health import Status
from streamer.service.clock import Clock, wall_clock
from streamer.service.loop import Loop
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.service.resume import Course, Opened, resume
from streamer.service.startup import (
    hold_directory,
    intake_of,
    life_of,
    schedule_of,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.settings import PrivacySettings, StreamSettings
from streamer.stream.engine import AskedBy
from streamer.stream.events import EventDecoder
from streamer.stream.publication import PublicSettings
from streamer.web.board import Board
from streamer.web.ground_truth import Truth

STREAM = StreamSettings(step_seconds=1.0, lateness_seconds=0.5)
PRIVACY = PrivacySettings()
"""The product's defaults. Only the number of users is that of the demo."""

_REMEMBERED = 10
"""Steps whose outbreaks are remembered: the open ones, and the last closed one."""


@dataclass(slots=True)
class Demo:
    """Runs until it is stopped."""

    users: int
    seed: int
    journal: Path | None = None
    """None: a temporary directory."""
    clock: Clock = wall_clock
    asked_by: AskedBy = NoisyThreshold
    truth: Truth = field(default_factory=Truth)
    summary: Summary = field(default_factory=Summary)
    board: Board = field(default_factory=lambda: Board(timing_of(STREAM)))
    _fleet: LiveFleet | None = None
    _outbreaks: dict[int, frozenset[str]] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        check_users(self.users)

    @property
    def outbreaks(self) -> frozenset[str]:
        """The items of the outbreaks that were active in the last closed step."""
        return self._outbreaks.get(self.board.through or 0, frozenset())

    @property
    def left_out(self) -> int:
        """Steps in which the fleet was not simulated, because the demo was behind."""
        return self._fleet.left_out if self._fleet else 0

    def stop(self) -> None:
        """Finish the step that is being closed, then stop."""
        self._stopping.set()

    async def run(self) -> None:
        timing = timing_of(STREAM)
        async with AsyncExitStack() as at_end:
            pipeline = await self._resume(at_end)
            fleet = await at_end.enter_async_context(
                live_fleet(self.users, self.seed, timing, self.clock, self._note)
            )
            self._fleet = fleet
            if pipeline.engine.closed is None:
                pipeline.start_at(fleet.first_step)
            progress = Progress(fleet, schedule_of(STREAM), self.clock)
            await Loop(fleet, progress, pipeline, Status(), self.summary, self._stopping).run()

    async def _resume(self, at_end: AsyncExitStack) -> Pipeline:
        """Continue where the ledger ends."""
        timing = timing_of(STREAM)
        course = Course(
            timing,
            PublicSettings(terms_of(PRIVACY.model_copy(update={"users": self.users}), STREAM)),
            lambda pseudonyms: intake_of(STREAM, timing, pseudonyms, EventDecoder(timing)),
            *(self.asked_by, self.summary, self.board, lambda _: None),
        )

        async def hold(at_end: AsyncExitStack) -> Opened:
            path = self.journal
            if path is None:
                path = Path(at_end.enter_context(tempfile.TemporaryDirectory(prefix="streamer-")))
            held = hold_directory(path, PRIVACY, at_end)
            ledger = FileLedger(held.database, life_of(timing), held.pseudonyms.fingerprint)
            at_end.push_async_callback(ledger.close)
            return Opened(ledger, held.pseudonyms)

        return await resume(course, hold, at_end)

    def _note(self, sent: Sent) -> None:
        """Remember the ground truth of a step that is not closed yet."""
        self.truth.tell(sent.truth)
        known = {**self._outbreaks, sent.step: sent.outbreaks}
        self._outbreaks = {step: known[step] for step in sorted(known)[-_REMEMBERED:]}
