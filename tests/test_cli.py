"""The program as it is installed."""

import subprocess
import sys

import streamer


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamer.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_tells_its_version():
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


def test_help_names_every_command():
    text = run("--help").stdout
    assert all(command in text for command in ("plan", "compare", "audit"))
