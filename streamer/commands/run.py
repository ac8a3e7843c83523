"""`streamer run`: the service."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.commands.setting_flags import GivenSettings, with_setting_flags
from streamer.errors import InputError

if TYPE_CHECKING:
    from streamer.lines.source import LineInput
    from streamer.service.line_job import LineJob
    from streamer.service.summary import Summary
    from streamer.settings import Settings

_INPUT, _OUTPUT = "Input", "Output and state"


@with_setting_flags
def run_command(
    source: Annotated[
        str,
        typer.Option(
            help="Where to read events: kafka, a .jsonl or .jsonl.gz file, or - for stdin.",
            rich_help_panel=_INPUT,
        ),
    ] = "kafka",
    ordered: Annotated[
        bool,
        typer.Option(
            "--sorted",
            help="The source is sorted by time: close steps while reading instead of at the end. "
            "An event of a step that is closed by then is late.",
            rich_help_panel=_INPUT,
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="<time>",
            help="Close the steps of a file exactly up to this time; later events are left for the "
            "next run. Without it, a run closes what the file holds, and its journal is ended.",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="An event of stdin arrives when it is read: close steps by the clock.",
            rich_help_panel=_INPUT,
        ),
    ] = False,
    sink: Annotated[
        Path | None,
        typer.Option(help="File for hitters; stdout if not given.", rich_help_panel=_OUTPUT),
    ] = None,
    steps: Annotated[
        Path | None,
        typer.Option(help="File for one record per closed step.", rich_help_panel=_OUTPUT),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Directory for decisions and budgets. Without it nothing is kept, and the next "
            "run over the same users spends their budgets again.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    start_anew: Annotated[
        bool,
        typer.Option(
            "--start-anew",
            help="Start with an empty journal even if the outputs contain results: users' "
            "budgets are spent again.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    config: Annotated[Path | None, typer.Option(help="A YAML file with settings.")] = None,
    *,
    given: GivenSettings,
) -> None:
    """Run the service: read events, report heavy hitters, keep users' budgets."""
    from streamer.config import load
    from streamer.service.line_job import LineJob

    settings = load(given, config)
    if source == "kafka":
        _refuse_for_kafka(
            {"--sorted": ordered, "--until": until, "--live": live, "--sink": sink}
            | {"--steps": steps, "--journal": journal, "--start-anew": start_anew}
        )
        _run_kafka(settings)
    else:
        _refuse_for_lines(given["kafka"])
        job = LineJob(source, ordered, live, until, sink, steps, journal, start_anew)
        _run_lines(job, settings)


def _refuse_for_kafka(given: Mapping[str, object]) -> None:
    """An option that would have no effect is an error."""
    for flag, value in given.items():
        if value:
            raise InputError(
                f"{flag} is only for files and stdin: omit it, or name one with --source"
            )


def _refuse_for_lines(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} is only for kafka: omit it, or omit --source")


def _run_kafka(settings: Settings) -> None:
    import asyncio

    from streamer.operations.logs import configure
    from streamer.service.hosting import serve

    configure(settings.log)
    asyncio.run(serve(settings))


def _run_lines(job: LineJob, settings: Settings) -> None:
    import asyncio

    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from streamer.commands.output import notes
    from streamer.operations.logs import configure
    from streamer.service.line_job import run_lines
    from streamer.stream.watching import Watcher

    columns = ("reading", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    started = time.monotonic()
    configure(settings.log, auto="text")
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        source: list[LineInput] = []

        def opened(lines: LineInput) -> None:
            source.append(lines)
            bar.update(task, total=lines.size)

        class Bar(Watcher):
            def received(self, *_: object) -> None:
                if source[0].size is not None:
                    bar.update(task, completed=source[0].position)

        summary = asyncio.run(run_lines(job, settings, opened, Bar()))
    _print_summary(summary, time.monotonic() - started, in_pieces=job.until is not None)


def _print_summary(summary: Summary, seconds: float, in_pieces: bool) -> None:
    from streamer.commands.output import notes

    rejected = sum(summary.rejected.values())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.rejected.most_common())
    rows = (
        ("records", f"{summary.records:,} in {seconds:.2f} s ({summary.records / seconds:,.0f}/s)"),
        (
            "accepted",
            f"{summary.accepted:,} ({summary.duplicates:,} repeat an item of their user and step, "
            "or are of more items than count)",
        ),
        ("rejected", f"{rejected:,}" + (f" ({reasons})" if reasons else "")),
        ("late", f"{summary.late:,}"),
        *([("ignored", f"{summary.ignored:,}")] if summary.ignored else []),
        ("of closed steps", f"{summary.already_closed:,}"),
        ("missed", f"{summary.missed:,}"),
        *([("of later steps", f"{summary.left:,} left for the next run")] if in_pieces else []),
        ("steps", f"{summary.steps:,}"),
        ("hitters", f"{summary.hitters:,}"),
        ("users charged", f"{summary.charged:,} ({summary.exhausted:,} exhausted)"),
    )
    for name, text in rows:
        notes.print(f"{name:>15}  {text}", soft_wrap=True)
