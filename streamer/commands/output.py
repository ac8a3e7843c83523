"""How commands print: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

console = Console(highlight=False)
notes = Console(stderr=True, highlight=False)
"""For progress and notes, so that standard output stays clean for pipes."""


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def warn_seeded(seed: int | None) -> None:
    """Warn that the results of a reproducible run must not be released."""
    if seed is not None:
        notes.print(
            f"[bold red]seed {seed}: anyone can reproduce the noise of this run. "
            "It protects nobody.[/]"
        )
