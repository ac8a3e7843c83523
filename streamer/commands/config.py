"""`streamer config`: the effective settings, and where each can be set."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer

from streamer.commands import options
from streamer.settings import SECTIONS


def config_command(
    config: Annotated[Path | None, typer.Option(help="A YAML file with settings.")] = None,
    json: options.Json = False,
) -> None:
    """Print the effective settings as YAML for --config, with secrets masked."""
    import yaml

    from streamer.commands.output import print_json
    from streamer.config import load
    from streamer.service.event_format import decoder_of
    from streamer.service.startup import start_of, terms_of, timing_of

    effective = load({}, config)
    # Reject what `run` would reject.
    timing = timing_of(effective.stream)
    start_of(effective.stream, timing)
    decoder_of(effective, timing, from_kafka=True)
    terms_of(effective.privacy, effective.stream)
    settings = effective.model_dump(mode="json")
    if json:
        print_json(settings)
        return
    typer.echo("# In the environment: STREAMER_SECTION__NAME, e.g. STREAMER_PRIVACY__EPSILON=1")
    for section, values in settings.items():
        typer.echo(f"{section}:")
        for name, value in values.items():
            typer.echo(f"  # {SECTIONS[section].model_fields[name].description}")
            typer.echo(indent(yaml.safe_dump({name: value}), "  "), nl=False)
