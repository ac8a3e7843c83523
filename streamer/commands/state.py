"""`streamer state`: the contents of a journal. Never prints a user id."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.commands import options
from streamer.errors import InputError

if TYPE_CHECKING:
    from streamer.ledger.inspection import JournalFacts


def state_command(
    journal: Annotated[
        Path | None, typer.Option(help="Directory of a journal.", show_default="the state topic")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file with settings; only for the state topic.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the last step, the period, and the numbers of charged and exhausted users."""
    import asyncio

    from streamer.commands.output import console, print_json

    if journal and config:
        raise InputError("--config is only for the state topic: omit it, or omit --journal")
    facts = _from_directory(journal) if journal else asyncio.run(_from_topic(config))
    if json:
        print_json(asdict(facts) if facts else None)
    elif facts is None:
        console.print("The journal has no decisions.")
    else:
        for name, value in asdict(facts).items():
            console.print(f"{name.replace('_', ' '):>16}  {_shown(name, value)}")


def _shown(name: str, value: object) -> object:
    if isinstance(value, bool):
        return "yes: it cannot be continued" if value else "no"
    return f"{value:,}" if isinstance(value, int) and "step" not in name else value


def _from_directory(directory: Path) -> JournalFacts | None:
    from streamer.ledger.directory import DATABASE
    from streamer.ledger.file_ledger import peek
    from streamer.ledger.inspection import facts_of
    from streamer.stream.timing import StepTiming

    path = directory / DATABASE
    if not path.is_file():
        raise InputError(f"journal is {directory}: there is no journal in this directory")
    found = peek(path)
    if found.restored is None:
        return None
    timing = StepTiming(found.life.length_ms, found.life.epoch_ms)
    return facts_of(found.restored, timing, path.stat().st_size, found.ended)


async def _from_topic(config: Path | None) -> JournalFacts | None:
    from streamer.config import load
    from streamer.kafka.startup import connection_of
    from streamer.ledger.inspection import facts_of
    from streamer.service.kafka_service import peek_journal
    from streamer.service.startup import timing_of

    settings = load({}, config)
    connection = connection_of(settings.kafka)
    if not await connection.check():
        raise InputError(f"no broker answers at {settings.kafka.bootstrap_servers}")
    restored, size = await peek_journal(connection, settings)
    return facts_of(restored, timing_of(settings.stream), size) if restored else None
