"""A run over lines of events, assembled from settings.

Mistakes are found before anything on disk is changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from streamer.errors import InputError, OutputError, UnusableJournalError
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_database import check_header
from streamer.ledger.file_ledger import FileLedger
from streamer.ledger.output_files import OutputFiles, check_writable
from streamer.lines.source import LineInput, check_packed, open_lines
from streamer.monitors.deciding import NoisyThreshold
from streamer.service.line_run import LineRun
from streamer.service.pipeline import Checkpoint
from streamer.service.resume import Course, Opened, resume
from streamer.service.startup import (
    hold_directory,
    intake_of,
    key_of,
    life_of,
    rule_of,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.settings import Settings
from streamer.stream.engine import AskedBy
from streamer.stream.publication import Audience
from streamer.stream.watching import Watcher, Watchers


@dataclass(frozen=True, slots=True)
class LineJob:
    """What is read, how, and where the results and the state go."""

    source: str
    ordered: bool = False
    live: bool = False
    sink: Path | None = None
    steps: Path | None = None
    journal: Path | None = None
    start_anew: bool = False

    def check(self) -> None:
        """Refuse what cannot work, before anything is changed."""
        if self.live and self.source != "-":
            raise InputError(
                f"source is {self.source}: --live reads standard input; use - as the source"
            )
        if self.live and self.ordered:
            raise InputError(
                "--live and --sorted cannot be combined: live events arrive in any order"
            )
        check_packed(self.source)
        named = [path for path in (self.sink, self.steps) if path]
        for path in named:
            check_writable(path)
        used = [*named, *([] if self.source == "-" else [Path(self.source)])]
        if len({path.resolve() for path in used}) < len(used):
            raise OutputError("source, sink and steps must be different files")
        if self.journal is None or not (self.journal / DATABASE).exists():
            if not self.start_anew:
                self.outputs().check_empty()
        else:
            check_header(self.journal / DATABASE)
            if not os.access(self.journal / DATABASE, os.W_OK):
                raise UnusableJournalError(
                    f"the journal {self.journal} is not writable: change its permissions, or run "
                    "as its owner"
                )

    def outputs(self) -> OutputFiles:
        return OutputFiles(self.sink, self.steps)


async def run_lines(
    job: LineJob,
    settings: Settings,
    opened: Callable[[LineInput], None] = lambda _: None,
    watcher: Watcher | None = None,
    asked_by: AskedBy = NoisyThreshold,
    checkpoint: Checkpoint = lambda _: None,
) -> Summary:
    """Run a job to its end. `opened` receives the input, for a progress bar."""
    summary = Summary()
    timing, terms = timing_of(settings.stream), terms_of(settings.privacy)
    # Only to find mistakes before anything is changed.
    rule_of(settings.stream, timing)
    key_of(settings.privacy)
    job.check()
    # An event of a file arrives at its own time, so it cannot be late.
    used = timing if job.live else replace(timing, lateness_ms=0)
    course = Course(
        timing,
        terms,
        lambda pseudonyms: intake_of(settings.stream, used, pseudonyms),
        asked_by,
        Watchers((summary, watcher or Watcher())),
        Audience(),
        checkpoint,
    )

    async def open_ledger(at_end: AsyncExitStack) -> Opened:
        held = hold_directory(job.journal, settings.privacy, at_end)
        ledger = FileLedger(
            *(held.database, life_of(timing), held.pseudonyms.fingerprint),
            *(job.outputs(), job.start_anew, checkpoint),
        )
        at_end.push_async_callback(ledger.close)
        return Opened(ledger, held.pseudonyms)

    async with AsyncExitStack() as at_end:
        source = open_lines(job.source)
        at_end.callback(source.close)
        opened(source)
        pipeline = await resume(course, open_ledger, at_end)
        run = LineRun(pipeline, used, settings.stream.max_record_bytes)
        if job.live:
            await run.read_live(source.stream)
        elif job.ordered:
            await run.read_sorted(source.stream)
        else:
            await run.read_unordered(source.stream)
    return summary
