"""The wheel works where nothing else of ours is: in an empty environment, for another user.

It is built and installed once, with the constraints, by the pip that set up these tests.
Where that runs as root, the program runs as nobody.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import streamer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
NOBODY = 65534
HOLDERS = 2_000
"""Many times what is needed: the noise is about 30."""

IMPORT_ALL = """
import importlib, pkgutil, streamer

for module in pkgutil.walk_packages(streamer.__path__, "streamer."):
    if module.name != "streamer.plots":  # which needs an extra
        importlib.import_module(module.name)
        print(module.name)
"""


@dataclass(frozen=True)
class Installed:
    """The programs of an environment, and a directory that their user cannot write to."""

    programs: Path
    readonly: Path
    writable: Path

    def run(self, *arguments: str, program: str = "streamer") -> str:
        """What it prints, run as another user in the read-only directory."""
        done = as_another_user([str(self.programs / program), *arguments], self.readonly)
        assert done.returncode == 0, done.stderr
        return done.stdout


def as_another_user(command: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run(
        command,
        cwd=where,
        env={"PATH": os.defpath, "HOME": str(where)},
        capture_output=True,
        text=True,
        check=False,
        **other,
    )


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(ROOT))
    (found,) = built.iterdir()
    return found


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that everybody may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="module")
def installed(wheel, place) -> Installed:
    environment, readonly, writable = place / "environment", place / "readonly", place / "writable"
    python = python_for_all(place)
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    its_python = str(environment / "bin" / "python")
    constraints = str(ROOT / "constraints.txt")
    options = ("--quiet", "--no-compile", "--constraint", constraints)
    pip("--python", its_python, "install", *options, str(wheel))
    readonly.mkdir()
    (readonly / "events.jsonl").write_text(events())
    readonly.chmod(0o555)
    writable.mkdir()
    writable.chmod(0o777)
    return Installed(environment / "bin", readonly, writable)


def python_for_all(where: Path) -> str:
    """The Python of these tests, or another one if that is out of the other user's reach."""
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    for path in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
        try:
            if as_another_user([path, "-c", new_enough], where).returncode == 0:
                return path
        except OSError:  # it is not there, or may not be looked at
            continue
    why = f"user {NOBODY} can run no Python 3.11 or later on this machine"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(f"THE WHEEL IS NOT TESTED: {why}")


def events() -> str:
    """One minute in which many users hold one item, and each of them another one before."""
    lines = [
        json.dumps({"user": f"u-{user}", "item": item, "time": f"2026-01-01T00:00:{second}Z"})
        for user in range(HOLDERS)
        for item, second in ((f"page:{user}", 10), ("crash:NPE", 30))
    ]
    return "\n".join(lines) + "\n"


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    package = ROOT / "streamer"
    files = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as content:
        packed = {name for name in content.namelist() if ".dist-info/" not in name}
    assert packed == files


def test_it_tells_its_version(installed):
    assert installed.run("--version") == f"streamer {streamer.__version__}\n"


def test_every_module_finds_what_it_imports(installed):
    imported = installed.run("-c", IMPORT_ALL, program="python").split()
    assert {"streamer.cli", "streamer.service.hosting"} <= set(imported)


def test_it_runs_on_a_file_as_another_user_in_a_directory_that_is_read_only(installed):
    out = installed.writable
    outputs = ("--sink", str(out / "hitters.jsonl"), "--steps", str(out / "steps.jsonl"))
    installed.run(*("run", "--source", "events.jsonl", "--journal", str(out / "journal"), *outputs))
    (hitter,) = map(json.loads, (out / "hitters.jsonl").read_text().splitlines())
    assert hitter["item"] == "crash:NPE"
    assert abs(hitter["estimate"] - HOLDERS) < 6 * hitter["margin"]
    assert os.listdir(installed.readonly) == ["events.jsonl"]
