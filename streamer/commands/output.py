"""How commands speak: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

console = Console(highlight=False)
notes = Console(stderr=True, highlight=False)
"""For progress and remarks, so that standard output stays clean for pipes."""


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def warn_seeded(seed: int | None) -> None:
    """A repeatable run is for looking at, not for releasing: say so loudly."""
    if seed is not None:
        notes.print(
            f"[bold red]seed {seed}: the noise of this run can be repeated by anyone. "
            "It protects nobody.[/]"
        )
