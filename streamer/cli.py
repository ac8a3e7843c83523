"""The command line. Every mistake of a user ends in one sentence and exit code 2."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import streamer
from streamer.commands.audit import audit_command
from streamer.commands.compare import compare_command
from streamer.commands.plan import plan_command
from streamer.errors import OutputError, SettingError, StreamerError

USAGE = 2
FAILED = 1

app = typer.Typer(
    name="streamer",
    help=streamer.__doc__,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan")(plan_command)
app.command("compare")(compare_command)
app.command("audit")(audit_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamer {streamer.__version__}")
        raise typer.Exit


@app.callback()
def _streamer(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """What many users hold right now, and provably nothing about any single one of them."""


def main() -> None:
    """The `streamer` program."""
    try:
        sys.exit(app(standalone_mode=False))
    except (SettingError, OutputError) as mistake:
        _complain(str(mistake), USAGE)
    except StreamerError as failure:
        _complain(str(failure), FAILED)
    except typer.TyperException as mistake:
        _complain(mistake.format_message(), mistake.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", 130)


def _complain(sentence: str, code: int) -> None:
    typer.echo(f"streamer: {' '.join(sentence.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
