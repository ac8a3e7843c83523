"""`streamer config`: the effective settings, and where each can be set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamer.commands import options


def config_command(
    config: Annotated[Path | None, typer.Option(help="A YAML file with settings.")] = None,
    json: options.Json = False,
) -> None:
    """Print the effective settings, secrets masked; the YAML can be used with --config."""
    import yaml

    from streamer.commands.output import print_json
    from streamer.config import load
    from streamer.service.startup import terms_of, timing_of

    effective = load({}, config)
    # Refuse what `run` would refuse.
    timing_of(effective.stream)
    terms_of(effective.privacy)
    settings = effective.model_dump(mode="json")
    if json:
        print_json(settings)
    else:
        typer.echo("# In the environment: STREAMER_SECTION__NAME, e.g. STREAMER_PRIVACY__EPSILON=1")
        typer.echo(yaml.safe_dump(settings, sort_keys=False), nl=False)
