"""The command line. Every mistake of a user ends in one sentence and exit code 2."""

from __future__ import annotations

import errno
import io
import logging
import os
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
from streamer.errors import OutputError, StreamerError
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
    _open_closed_streams()
    logging.basicConfig(format="streamer: %(message)s", level=logging.INFO)
    for library in ("aiokafka", "matplotlib"):  # what matters of them we say ourselves
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except StreamerError as error:
        _complain(str(error), error.exit_code)
    except typer.TyperException as mistake:
        sentence = " ".join(mistake.format_message().split())
        _complain(sentence.replace(": Value error, ", ": "), mistake.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", 130)
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        # The interpreter would try to write the rest at its end, and complain once again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _complain(f"stdout cannot be written: {error.strerror}", OutputError.exit_code)


_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def _open_closed_streams() -> None:
    """A standard stream that was closed must not become the first file that is opened.

    What is read from it then is empty, and what is written fails. A terminal that does
    not know a character, an ε for one, shows another instead.
    """
    for name, handle in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDONLY if handle < 2 else os.O_WRONLY)  # the lowest free
            setattr(sys, name, open(handle, "w" if handle else "r", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


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
