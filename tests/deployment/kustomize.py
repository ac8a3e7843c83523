"""The real kustomize: the one that is installed, or one that Go fetches and builds once.

It is kept outside the work tree, like Kafka's jars.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

MODULE, VERSION = "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1"
CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    / "streamer"
    / f"kustomize-{VERSION}"
)


class KustomizeUnavailableError(Exception):
    """No kustomize can be had on this machine; says what is missing."""


def render(directory: Path) -> str:
    """What `kubectl apply -k` would send for a directory, as YAML."""
    done = subprocess.run(
        [*_command(), str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, f"kustomize warns: {done.stderr}"
    return done.stdout


def _command() -> list[str]:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    return [str(_built()), "build"]


def _built() -> Path:
    program = CACHE / "kustomize"
    if program.exists():
        return program
    if not shutil.which("go"):
        raise KustomizeUnavailableError("none of kustomize, kubectl and go is installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            done = subprocess.run(
                ["go", "install", f"{MODULE}@{VERSION}"],
                env=os.environ | {"GOBIN": str(CACHE), "CGO_ENABLED": "0"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise KustomizeUnavailableError(f"go install failed: {done.stderr[-500:]}")
    return program
