"""The command line. A user error is reported in one sentence, with exit code 2."""

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
from streamer.commands.check_events import check_events_command
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
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("demo")(demo_command)
app.command("watch")(watch_command)
app.command("check-events")(check_events_command)
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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find heavy hitters in a live event stream with user-level differential privacy."""


def main() -> None:
    """The `streamer` program."""
    _open_closed_streams()
    logging.basicConfig(format="streamer: %(message)s", level=logging.INFO)
    for library in ("aiokafka", "matplotlib"):  # we log what matters ourselves
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except StreamerError as error:
        _fail(str(error), error.exit_code)
    except typer.TyperException as mistake:
        sentence = " ".join(mistake.format_message().split())
        _fail(sentence.replace(": Value error, ", ": "), mistake.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        # At exit the interpreter would try to flush the rest, and report the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"stdout cannot be written: {error.strerror}", OutputError.exit_code)


_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def _open_closed_streams() -> None:
    """Reopen closed standard streams, so that no other file gets their descriptors.

    Reading from a reopened stream returns nothing and writing to it fails. A terminal that
    cannot show a character, such as ε, shows a replacement.
    """
    for name, handle in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            os.open(
                os.devnull, os.O_RDONLY if handle < 2 else os.O_WRONLY
            )  # takes the lowest free descriptor
            setattr(sys, name, open(handle, "w" if handle else "r", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(sentences: str, code: int) -> None:
    """Report one sentence per line, as JSON if the logs are JSON."""
    for sentence in sentences.splitlines():
        if any(isinstance(handler.formatter, JsonLines) for handler in logging.root.handlers):
            logging.getLogger("streamer").error("%s", sentence, extra={"exit_code": code})
        else:
            typer.echo(f"streamer: {sentence}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
