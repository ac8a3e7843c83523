"""`streamer check-events`: what the settings of events make of real records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.commands import options
from streamer.errors import InputError

if TYPE_CHECKING:
    from streamer.service.event_check import EventReport
    from streamer.settings import Settings
    from streamer.stream.intake import Batch

KAFKA = "kafka"


def check_events_command(
    source: Annotated[
        str,
        typer.Option(help="Where to read: kafka, a .jsonl or .jsonl.gz file, or - for stdin."),
    ] = KAFKA,
    records: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Read up to this many records.")
    ] = 1_000,
    show: Annotated[int, typer.Option(min=0, help="Show up to this many of them.")] = 20,
    config: Annotated[Path | None, typer.Option(help="A YAML file with settings.")] = None,
    json: options.Json = False,
) -> None:
    """Read a sample, and show what each record becomes or why it is rejected.

    It writes nothing and commits nothing.
    """
    from streamer.commands.output import console, print_json
    from streamer.config import load
    from streamer.service.clock import wall_clock
    from streamer.service.event_check import EventCheck
    from streamer.terminal.scene import visible

    settings = load({}, config)
    check = EventCheck(settings, from_kafka=source == KAFKA)
    shown = 0
    for batch in _sample(source, records, settings):
        for outcome in check.add(batch, wall_clock()):
            if not json and shown < show:
                console.print(
                    f"{outcome.record}  {visible(outcome.text)}", markup=False, soft_wrap=True
                )
            shown += 1
    report = check.report()
    if json:
        print_json(asdict(report))
    else:
        _print_report(report)


def _sample(source: str, most: int, settings: Settings) -> Iterable[Batch]:
    import asyncio

    if source == KAFKA:
        return asyncio.run(_latest(settings, most))
    return _lines(source, most, settings.stream.max_record_bytes)


async def _latest(settings: Settings, most: int) -> list[Batch]:
    from streamer.kafka.sample import latest_records
    from streamer.kafka.startup import connection_of

    connection = connection_of(settings.kafka)
    if not await connection.check():
        raise InputError(f"no broker answers at {settings.kafka.bootstrap_servers}")
    return await latest_records(connection, settings.kafka.events_topic, most)


def _lines(source: str, most: int, longest: int) -> Iterable[Batch]:
    """The first lines of a file."""
    from streamer.lines.source import check_packed, open_lines, read_batches

    check_packed(source)
    lines = open_lines(source)
    try:
        for batch in read_batches(lines.stream, longest):
            yield replace(batch, offsets=batch.offsets[:most], records=batch.records[:most])
            most -= len(batch.records)
            if most <= 0:
                return
    finally:
        lines.close()


def _print_report(report: EventReport) -> None:
    from streamer.commands.output import console
    from streamer.terminal.scene import visible

    rejected = ", ".join(f"{reason} {number:,}" for reason, number in report.rejected.items())
    late = "unknown: only records of Kafka have arrival times"
    if report.late is not None:
        late = f"{report.late:,} ({report.late / max(1, report.events):.1%} of the events)"
    rows = (
        ("records", f"{report.records:,}"),
        ("events", f"{report.events:,}"),
        ("ignored", f"{report.ignored:,}"),
        ("rejected", rejected or "0"),
        ("users", f"{report.users:,}"),
        ("items", f"{report.items:,}"),
        ("steps", f"{report.steps:,}"),
        ("late", late),
        *(("warning", visible(warning)) for warning in report.warnings),
    )
    for name, text in rows:
        console.print(f"{name:>10}  {text}", markup=False, soft_wrap=True)
