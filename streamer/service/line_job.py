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
from streamer.ledger.file_ledger import FileLedger, Progress
from streamer.ledger.output_files import OutputFiles, check_writable
from streamer.lines.source import LineInput, check_packed, open_lines
from streamer.monitors.deciding import NoisyThreshold
from streamer.service.event_format import decoder_of
from streamer.service.line_run import LineRun
from streamer.service.pipeline import Checkpoint
from streamer.service.resume import Course, Opened, resume
from streamer.service.startup import (
    hold_directory,
    intake_of,
    key_of,
    life_of,
    rule_of,
    schedule_of,
    start_of,
    step_from,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.settings import Settings
from streamer.stream.engine import AskedBy
from streamer.stream.file_range import FileRange
from streamer.stream.publication import Audience, PublicSettings
from streamer.stream.timing import StepTiming, format_rfc3339
from streamer.stream.watching import Watcher, Watchers


@dataclass(frozen=True, slots=True)
class LineJob:
    """What is read, how, and where the results and the state go."""

    source: str
    ordered: bool = False
    live: bool = False
    until: str | None = None
    """Steps close exactly up to this time, which is the start of one. None: all that the file
    has events of, and then the journal is ended."""
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
        if self.live and self.until is not None:
            raise InputError(
                "--live and --until exclude each other: the steps of a live pipe close on the clock"
            )
        check_packed(self.source)
        named = [path for path in (self.sink, self.steps) if path]
        for path in named:
            check_writable(path)
        used = [*named, *([] if self.source == "-" else [Path(self.source)])]
        if len({path.resolve() for path in used}) < len(used):
            raise OutputError("source, sink and steps must be different files")
        if self.database is None:
            if not self.start_anew:
                self.outputs().check_empty()
        else:
            check_header(self.database)
            if not os.access(self.database, os.W_OK):
                raise UnusableJournalError(
                    f"the journal {self.journal} is not writable: change its permissions, or run "
                    "as its owner"
                )

    @property
    def database(self) -> Path | None:
        """The database of a journal that is there; None for a new one."""
        path = self.journal and self.journal / DATABASE
        return path if path and path.exists() else None

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
    timing, terms = timing_of(settings.stream), terms_of(settings.privacy, settings.stream)
    # Only to find mistakes before anything is changed.
    rule_of(settings.stream, timing)
    schedule_of(settings.stream)
    key_of(settings.privacy)
    start = start_of(settings.stream, timing)
    until = None if job.until is None else step_from("--until", job.until, timing)
    job.check()
    if until is not None and job.database is None:
        _check_until(until, start, None, timing)
    file_range = FileRange(until, job.ordered)
    # An event of a file arrives at its own time, so it cannot be late.
    used = timing if job.live else replace(timing, lateness_ms=0)
    decoder = decoder_of(settings, used, from_kafka=False)
    course = Course(
        timing,
        PublicSettings(terms),
        lambda pseudonyms: intake_of(
            settings.stream, used, pseudonyms, decoder, None if job.live else file_range
        ),
        asked_by,
        Watchers((summary, watcher or Watcher())),
        Audience(),
        checkpoint,
    )
    async with AsyncExitStack() as at_end:
        source = open_lines(job.source)
        at_end.callback(source.close)
        opened(source)
        held = hold_directory(job.journal, settings.privacy, at_end)
        ledger = FileLedger(
            *(held.database, life_of(timing), held.pseudonyms.fingerprint),
            *(job.outputs(), job.start_anew, checkpoint),
        )
        at_end.push_async_callback(ledger.close)
        if until is not None:
            _check_until(until, start, ledger.progress(), timing)

        async def reach(_: AsyncExitStack) -> Opened:
            return Opened(ledger, held.pseudonyms)

        pipeline = await resume(course, reach, at_end)
        run = LineRun(pipeline, used, settings.stream.max_record_bytes, start)
        if job.live:
            await run.read_live(source.stream, schedule_of(settings.stream))
        else:
            await run.read_file(source.stream, file_range)
            if until is None:
                await ledger.end()
    return summary


def _check_until(until: int, start: int | None, past: Progress | None, timing: StepTiming) -> None:
    """Refuse an end of a run that is not after its beginning."""
    text = format_rfc3339(timing.start(until))
    if past is None:
        if start is None:
            raise InputError(
                "--until with a new journal needs stream.start: name the time at which it begins "
                "with --start"
            )
        if until <= start:
            raise InputError(
                f"--until is {text}: it must be later than stream.start, which is "
                f"{format_rfc3339(timing.start(start))}"
            )
        return
    # A run that died when all was closed and not all was published is completed.
    due = past.published < past.closed
    if until < past.closed + 1 or (until == past.closed + 1 and not due):
        raise InputError(
            f"--until is {text}: the journal is closed up to "
            f"{format_rfc3339(timing.end(past.closed))}; name a later time"
        )
