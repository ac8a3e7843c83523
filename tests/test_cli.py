"""The program as it is installed."""

import os
import shlex
import subprocess
import sys

import pytest

import streamer

pytestmark = pytest.mark.slow

QUICK = "plan --contributions 1 --period 1"
"""A plan that is soon made."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamer.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_prints_its_version():
    assert run("--version").stdout == f"streamer {streamer.__version__}\n"


def test_without_arguments_it_explains_itself():
    result = run()
    assert "plan" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_command_is_one_sentence():
    result = run("plam")
    assert result.returncode == 2
    assert result.stderr.startswith("streamer: ")
    assert "plam" in result.stderr
    assert "Traceback" not in result.stderr


def test_help_does_not_wait_for_what_single_commands_need():
    command = [sys.executable, "-X", "importtime", "-m", "streamer.cli", "watch", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"httpx", "aiokafka", "starlette", "uvicorn"}


def test_help_names_every_command():
    text = run("--help").stdout
    assert all(command in text for command in ("plan", "compare", "audit"))


def test_an_unknown_choice_is_reported_in_plain_words():
    result = run("plan", "--neighbours", "twins")
    assert result.returncode == 2
    assert result.stderr.endswith(": 'twins' is not one of 'replace', 'add-remove'.\n")


class TestStandardStreams:
    """What a shell can do to them."""

    @staticmethod
    def shell(line, **environment):
        command = line.replace("streamer", f"{shlex.quote(sys.executable)} -m streamer.cli", 1)
        return subprocess.run(
            ["/bin/sh", "-c", command],
            capture_output=True,
            timeout=60,
            check=False,
            env=os.environ | environment,
        )

    @pytest.mark.parametrize("command", [QUICK, f"{QUICK} --json", "config", "schema", "--help"])
    @pytest.mark.parametrize(
        ("output", "reason"),
        [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")],
        ids=["full", "closed"],
    )
    def test_output_that_nobody_takes_is_one_sentence(self, command, output, reason):
        result = self.shell(f"streamer {command} >{output}")
        assert result.stderr.decode() == f"streamer: stdout cannot be written: {reason}\n"
        assert result.returncode == 2

    def test_results_for_a_closed_output_are_not_lost_silently(self, tmp_path):
        events = tmp_path / "events.jsonl"
        events.write_text("".join(f'{{"user":"{n}","item":"i","time":0}}\n' for n in range(2000)))
        result = self.shell(f"streamer run --source {shlex.quote(str(events))} >&-")
        assert result.stderr == b"streamer: stdout could not be written: Bad file descriptor\n"
        assert result.returncode == 1

    def test_a_closed_input_is_an_empty_one(self):
        result = self.shell("streamer run --source - <&-")
        assert result.returncode == 0
        assert b"records  0 in " in result.stderr

    def test_a_closed_stderr_is_tolerated(self):
        assert self.shell("streamer plan --epsilon 0 2>&-").returncode == 2

    @pytest.mark.parametrize(
        "command", [QUICK, "plan --help", f"{QUICK.replace('plan', 'audit')} --trials 1000"]
    )
    def test_a_terminal_without_greek_letters_shows_others(self, command):
        result = self.shell(f"streamer {command}", PYTHONIOENCODING="ascii")
        assert (result.returncode, result.stderr) == (0, b"")
        assert b"?" in result.stdout

    def test_the_first_plot_prints_nothing(self, tmp_path):
        picture, fonts = shlex.quote(str(tmp_path / "plan.png")), str(tmp_path / "fonts")
        result = self.shell(f"streamer {QUICK} --plot {picture}", MPLCONFIGDIR=fonts)
        assert (result.returncode, result.stderr) == (0, b"")
