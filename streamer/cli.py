"""The command line. Every mistake of a user ends in one sentence and exit code 2."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

import streamer
from streamer.commands.audit import audit_command
from streamer.commands.compare import compare_command
from streamer.commands.config import config_command
from streamer.commands.demo import demo_command
from streamer.commands.plan import plan_command
from streamer.commands.run import run_command
from streamer.commands.schema import schema_command
from streamer.commands.simulate import simulate_command
from streamer.commands.state import state_command
from streamer.commands.watch import watch_command
from streamer.errors import StreamerError
from streamer.operations.json_lines import JsonLines

app = typer.Typer(
    name="streamer",
    help=streamer.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("demo")(demo_command)
app.command("watch")(watch_command)
app.command("plan")(plan_command)
app.command("compare")(compare_command)
app.command("audit")(audit_command)
app.command("simulate")(simulate_command)
app.command("state")(state_command)
app.command("config")(config_command)
app.command("schema")(schema_command)


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
    logging.basicConfig(format="streamer: %(message)s", level=logging.INFO)
    logging.getLogger("aiokafka").setLevel(logging.ERROR)  # what matters of it we say ourselves
    try:
        sys.exit(app(standalone_mode=False))
    except StreamerError as error:
        _complain(str(error), error.exit_code)
    except typer.TyperException as mistake:
        _complain(" ".join(mistake.format_message().split()), mistake.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", 130)


def _complain(sentences: str, code: int) -> None:
    """One line each, in the form of the logs if they are for machines."""
    for sentence in sentences.splitlines():
        if any(isinstance(handler.formatter, JsonLines) for handler in logging.root.handlers):
            logging.getLogger("streamer").error("%s", sentence, extra={"exit_code": code})
        else:
            typer.echo(f"streamer: {sentence}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
