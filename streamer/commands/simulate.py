"""`streamer simulate`: a realistic event stream of a fleet, and its ground truth."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.errors import OutputError, SettingError

if TYPE_CHECKING:
    from streamer.fleet.event_lines import EventLines
    from streamer.fleet.fleet import Fleet
    from streamer.fleet.simulation import Events, FleetStep
    from streamer.lines.output import LineOutput

KAFKA = "kafka"
USUAL_START = datetime(2026, 1, 1, tzinfo=UTC)
USUAL_USERS, USUAL_STEPS, USUAL_OUTBREAKS = 10_000, 60, 3
# Rows rendered at a time, so that the lines of a large step never fill the memory.
_ROWS = 65_536

_TIME, _FLEET, _OUTBREAKS, _LINE = "Time", "Users and items", "Outbreaks", "Transmission"


class Preset(StrEnum):
    """Fleets whose users, lasting items and outbreaks are given."""

    DAY = "day"


def simulate_command(
    preset: Annotated[
        Preset | None,
        typer.Option(
            help="day: a day of a real service. 20000 users and 1440 steps of a minute; three "
            "items that 5000 users each have all day; every hour an outbreak of 1000 users for "
            "ten minutes. --users, --steps (fewer), --lasting, --outbreak and --outbreaks replace "
            "what the preset has; all other options apply as they do without it."
        ),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            help="Number of simulated users.", show_default=f"{USUAL_USERS}, or as in --preset"
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Number of steps to simulate.", show_default=f"{USUAL_STEPS}, or as in --preset"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeat the same stream.", show_default="random, and printed"),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            help="Where to write events: a .jsonl or .jsonl.gz file, - for stdout, or kafka for "
            "the configured events topic."
        ),
    ] = "-",
    config: Annotated[
        Path | None, typer.Option(help="YAML file with settings; only for kafka.")
    ] = None,
    paced: Annotated[
        bool,
        typer.Option(
            "--paced", help="Start now and send each record in real time.", rich_help_panel=_TIME
        ),
    ] = False,
    truth: Annotated[
        str | None, typer.Option(help="A .jsonl or .jsonl.gz file for the actual counts.")
    ] = None,
    floor: Annotated[
        int, typer.Option(help="Omit items with fewer users than this from the truth file.")
    ] = 10,
    start: Annotated[
        str | None,
        typer.Option(
            help="Time in the first step, RFC 3339.",
            show_default="2026-01-01T00:00:00Z, or now with --paced",
            rich_help_panel=_TIME,
        ),
    ] = None,
    step_seconds: Annotated[
        float, typer.Option(help="Length of a step in seconds.", rich_help_panel=_TIME)
    ] = 60.0,
    active: Annotated[
        float, typer.Option(help="Share of users active in a step.", rich_help_panel=_FLEET)
    ] = 0.3,
    session: Annotated[
        float, typer.Option(help="Mean steps a user stays active.", rich_help_panel=_FLEET)
    ] = 10.0,
    items: Annotated[
        int, typer.Option(help="Background items, drawn by Zipf's law.", rich_help_panel=_FLEET)
    ] = 10_000,
    exponent: Annotated[
        float, typer.Option(help="Zipf exponent; 0: all equally often.", rich_help_panel=_FLEET)
    ] = 0.8,
    personal: Annotated[
        float,
        typer.Option(help="Share of events with an item of one user only.", rich_help_panel=_FLEET),
    ] = 0.3,
    earlier: Annotated[
        float,
        typer.Option(
            help="Share of active users with another item earlier in the step.",
            rich_help_panel=_FLEET,
        ),
    ] = 0.2,
    lasting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ITEM,SIZE",
            help="The same SIZE users have ITEM in every step, also while an outbreak affects "
            "them. Repeatable; each has other users.",
            rich_help_panel=_FLEET,
        ),
    ] = None,
    outbreak: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ITEM,SIZE,START,LENGTH[,SHAPE]",
            help="SIZE users have ITEM from step START (counted from 0) for LENGTH steps. "
            "SHAPE: flat, ramp (grows to SIZE) or spike (fades from SIZE). Repeatable.",
            rich_help_panel=_OUTBREAKS,
        ),
    ] = None,
    outbreaks: Annotated[
        int | None,
        typer.Option(
            help="Number of random outbreaks.",
            show_default=f"{USUAL_OUTBREAKS}, or 0 with --outbreak or --preset",
            rich_help_panel=_OUTBREAKS,
        ),
    ] = None,
    duplicates: Annotated[
        float, typer.Option(help="Share of events sent twice.", rich_help_panel=_LINE)
    ] = 0.01,
    delayed: Annotated[
        float, typer.Option(help="Share of events sent late.", rich_help_panel=_LINE)
    ] = 0.02,
    delay_seconds: Annotated[
        float,
        typer.Option(help="Maximum delay of late events and duplicates.", rich_help_panel=_LINE),
    ] = 30.0,
    skewed: Annotated[
        float, typer.Option(help="Share of users whose clock is wrong.", rich_help_panel=_LINE)
    ] = 0.01,
    skew_seconds: Annotated[
        float, typer.Option(help="Maximum clock error.", rich_help_panel=_LINE)
    ] = 5.0,
    bad: Annotated[
        float, typer.Option(help="Bad records, as a share of the events.", rich_help_panel=_LINE)
    ] = 0.001,
) -> None:
    """Write the events of a simulated fleet, in order of arrival, and the actual counts.

    The truth file has one line per step and item: the number of users who hold it,
    without noise.
    """
    from streamer.fleet import day
    from streamer.fleet.fleet import Fleet
    from streamer.fleet.lasting import parse_lasting
    from streamer.fleet.outbreaks import parse_outbreak
    from streamer.privacy.guarantee import check_whole

    check_whole("floor", floor, 1, 1_000_000_000)
    if users is None:
        users = USUAL_USERS if preset is None else day.USERS
    if steps is None:
        steps = USUAL_STEPS if preset is None else day.STEPS
    lasts = tuple(parse_lasting(text) for text in lasting or ())
    named = tuple(parse_outbreak(text) for text in outbreak or ())
    if preset is not None:
        day.check_steps(steps)
        lasts = lasts or day.LASTING
        if not named and outbreaks is None:
            named = day.outbreaks_before(steps)
    if outbreaks is None:
        outbreaks = 0 if named or preset is not None else USUAL_OUTBREAKS
    fleet = Fleet(
        users=users,
        steps=steps,
        seed=secrets.randbits(32) if seed is None else seed,
        start=_first_moment(start, paced),
        step_seconds=step_seconds,
        active=active,
        session=session,
        items=items,
        exponent=exponent,
        personal=personal,
        earlier=earlier,
        lasting=lasts,
        outbreaks=named,
        duplicates=duplicates,
        delayed=delayed,
        delay_seconds=delay_seconds,
        skewed=skewed,
        skew_seconds=skew_seconds,
        bad=bad,
    ).with_planned_outbreaks(outbreaks)
    _check_targets(output, truth, config)
    if seed is None:
        typer.echo(f"repeat this stream with --seed {fleet.seed}", err=True)
    try:
        typer.echo(asyncio.run(_write(fleet, output, truth, floor, paced, config)), err=True)
    except BrokenPipeError:
        # The reader closed the pipe. Python would flush again at exit and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _first_moment(start: str | None, paced: bool) -> datetime:
    if start is None:
        return datetime.now(UTC) if paced else USUAL_START
    try:
        return datetime.fromisoformat(start)
    except ValueError:
        allowed = "write it like 2026-01-01T00:00:00Z"
        raise SettingError("start", start, allowed) from None


def _check_targets(output: str, truth: str | None, config: Path | None) -> None:
    from streamer.lines.output import STANDARD_OUTPUT, check_file

    if config is not None and output != KAFKA:
        raise OutputError("--config is only for kafka: omit it, or use --output kafka")
    if output not in {STANDARD_OUTPUT, KAFKA}:
        check_file("output", output)
    if truth is not None:
        check_file("truth", truth)
        if Path(output).resolve() == Path(truth).resolve():
            raise OutputError(f"truth is {truth}: it is also the output; use another file")


async def _write(
    fleet: Fleet, output: str, truth: str | None, floor: int, paced: bool, config: Path | None
) -> str:
    """Write everything; return a summary sentence."""
    from rich.progress import Progress

    from streamer.commands.output import notes
    from streamer.fleet.event_lines import EventLines
    from streamer.fleet.simulation import in_arrival_order, simulate
    from streamer.lines.output import STANDARD_OUTPUT, LineOutput

    began, good, bad = perf_counter(), 0, 0
    lines = EventLines(fleet.catalogue())
    # No progress bar between event lines on the same screen.
    hidden = not notes.is_terminal or (output == STANDARD_OUTPUT and sys.stdout.isatty())
    async with AsyncExitStack() as opened:
        target = await _open(output, lines, config, opened)
        happened: Iterable[FleetStep] = simulate(fleet)
        if truth is not None:
            truth_target = opened.enter_context(closing(LineOutput("truth", truth)))
            happened = _noting_truth(happened, fleet, floor, truth_target)
        bar = opened.enter_context(
            Progress(console=notes, transient=True, disable=hidden, redirect_stdout=False)
        )
        shown = bar.track(happened, total=fleet.steps, description="simulating")
        async for events in _in_time(in_arrival_order(fleet, shown), paced):
            for first in range(0, len(events), _ROWS):
                await target(events.take(slice(first, first + _ROWS)))
            bad += events.bad
            good += len(events) - events.bad
    seconds = perf_counter() - began
    return (
        f"{good:,} events and {bad:,} bad records in {fleet.steps:,} steps; "
        f"{seconds:.1f} s, {good / seconds:,.0f} events/s"
    )


async def _open(
    output: str, lines: EventLines, config: Path | None, opened: AsyncExitStack
) -> Callable[[Events], Awaitable[None]]:
    """A function that writes records to the output; `opened` closes it."""
    if output == KAFKA:
        from streamer.config import load
        from streamer.fleet.catalogue import user_name
        from streamer.kafka.bulk_output import BulkOutput
        from streamer.kafka.startup import connection_of
        from streamer.kafka.topics import check_exists

        settings = load({}, config).kafka
        connection = connection_of(settings)
        if not await connection.check():
            raise OutputError(f"output is kafka: no broker answers at {settings.bootstrap_servers}")
        await check_exists(connection, "kafka.events_topic", settings.events_topic)
        producer = BulkOutput(connection, settings.events_topic)
        opened.push_async_callback(producer.close)
        await producer.start()

        async def produce(events: Events) -> None:
            keys = [user_name(user).encode() for user in events.users.tolist()]
            values, arrivals = lines.render(events), events.arrivals.tolist()
            await producer.write(keys, values, arrivals, events.users)

        return produce
    from streamer.lines.output import LineOutput

    file = opened.enter_context(closing(LineOutput("output", output)))

    async def write(events: Events) -> None:
        file.write(lines.render(events))

    return write


async def _in_time(batches: Iterable[Events], wanted: bool) -> AsyncIterator[Events]:
    from streamer.fleet.pacing import paced
    from streamer.service.clock import wall_clock

    if wanted:
        async for events in paced(batches, wall_clock, asyncio.sleep):
            yield events
    else:
        for events in batches:
            await asyncio.sleep(0)  # so that Ctrl-C is handled between two batches
            yield events


def _noting_truth(
    happened: Iterable[FleetStep], fleet: Fleet, floor: int, target: LineOutput
) -> Iterator[FleetStep]:
    """Pass the steps on, and write the actual counts of each."""
    from streamer.fleet.truth import true_counts, truth_lines

    catalogue = fleet.catalogue()
    for step in happened:
        target.write(truth_lines(true_counts(step, catalogue, floor)))
        yield step
