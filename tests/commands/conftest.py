"""Commands are run as a user runs them, in this process."""

import sys
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
