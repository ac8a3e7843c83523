"""A run over lines of events, put together from settings.

Everything that can be wrong is found before anything is changed on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from streamer.config import Settings
from streamer.errors import InputError, OutputError, UnusableJournalError
from streamer.ledger.directory import DATABASE, JournalDirectory
from streamer.ledger.output_files import FileSink, check_writable
from streamer.ledger.sqlite import SqliteJournal, check_header
from streamer.lines.source import LineInput, check_packed, open_lines
from streamer.privacy.threshold import Plan
from streamer.service.line_run import LineRun
from streamer.service.pipeline import Checkpoint, Pipeline
from streamer.service.startup import (
    check_key,
    intake_of,
    key_of,
    life_of,
    pseudonyms_of,
    rule_of,
    tell_of_pending_terms,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.stream.engine import Engine, FreshNoise, StepDecider
from streamer.stream.watching import NOBODY, Watcher, Watchers


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
                f"source is {self.source}: --live reads standard input, name it with -"
            )
        if self.live and self.ordered:
            raise InputError(
                "--live and --sorted exclude each other: live events come in any order"
            )
        check_packed(self.source)
        named = [path for path in (self.sink, self.steps) if path]
        for path in named:
            check_writable(path)
        used = [*named, *([] if self.source == "-" else [Path(self.source)])]
        if len({path.resolve() for path in used}) < len(used):
            raise OutputError("source, sink and steps must be different files: name others")
        if self.journal is None or not (self.journal / DATABASE).exists():
            self.check_outputs_empty()
        else:
            check_header(self.journal / DATABASE)
            if not os.access(self.journal / DATABASE, os.W_OK):
                raise UnusableJournalError(
                    f"the journal {self.journal} cannot be written: allow it, or run as its owner"
                )

    def check_outputs_empty(self) -> None:
        """Results without the budgets that they were paid from: a journal was lost."""
        if self.start_anew:
            return
        for path in (self.sink, self.steps):
            if path and path.is_file() and path.stat().st_size:
                raise UnusableJournalError(
                    f"{path} holds results, but there is no journal of them: name their journal "
                    "or new files, or say --start-anew, which spends the users' budgets again"
                )


async def run_lines(
    job: LineJob,
    settings: Settings,
    opened: Callable[[LineInput], None] = lambda _: None,
    watcher: Watcher = NOBODY,
    decider: Callable[[Plan], StepDecider] = FreshNoise,
    checkpoint: Checkpoint = lambda _: None,
) -> Summary:
    """Run a job to its end. `opened` is told what is read, for a progress bar."""
    summary = Summary()
    watcher = Watchers((summary, watcher))
    timing, terms = timing_of(settings.stream), terms_of(settings.privacy)
    # Made here only so that what is wrong is found before anything is changed.
    rule_of(settings.stream, timing)
    key_of(settings.privacy)
    job.check()
    async with AsyncExitStack() as at_end:
        source = open_lines(job.source)
        at_end.callback(source.close)
        opened(source)
        directory = None
        if job.journal is not None:
            directory = JournalDirectory(job.journal)
            at_end.callback(directory.close)
        pseudonyms = pseudonyms_of(settings.privacy, directory)
        database = directory.database if directory else None
        journal = SqliteJournal(database, life_of(timing), pseudonyms.fingerprint)
        at_end.push_async_callback(journal.close)
        restored = await journal.restore()
        if restored is None:
            job.check_outputs_empty()
        else:
            check_key(restored, pseudonyms)
        # An event of a file arrives at its own time: there is nothing to be late for.
        used = timing if job.live else replace(timing, lateness_ms=0)
        intake = intake_of(settings.stream, used, pseudonyms)
        engine = Engine(intake, terms, restored.state if restored else None, decider)
        sink = FileSink(job.sink, job.steps)
        at_end.callback(sink.close)
        pipeline = Pipeline(engine, journal, sink, timing, watcher, checkpoint)
        if restored is not None:
            await pipeline.recover(restored)
        tell_of_pending_terms(engine, timing)
        watcher.started(engine)
        run = LineRun(pipeline, used, settings.stream.max_record_bytes)
        if job.live:
            await run.read_live(source.stream)
        elif job.ordered:
            await run.read_sorted(source.stream)
        else:
            await run.read_unordered(source.stream)
    return summary
