"""Commands are run as a user runs them, in this process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from streamer.cli import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch):
    """Run `streamer` with these arguments."""

    def run_streamer(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["streamer", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            main()
        captured = capsys.readouterr()
        return Result(ending.value.code or 0, captured.out, captured.err)

    return run_streamer


@pytest.fixture(scope="module")
def run_once():
    """The same for a result that several tests of a module look at."""

    def run_streamer(*arguments: str) -> Result:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["streamer", *map(str, arguments)])
            with pytest.raises(SystemExit) as ending:
                main()
        return Result(ending.value.code or 0, out.getvalue(), err.getvalue())

    return run_streamer
