"""Logs: JSON lines for machines, plain lines for people. Never a user, never a raw item."""

from __future__ import annotations

import logging
import sys
from typing import Literal

from streamer.operations.json_lines import JsonLines
from streamer.settings import LogSettings
from streamer.stream.publication import Audience, Publication

_TEXT = "streamer: %(message)s"
_log = logging.getLogger(__name__)
_OTHERS = {"aiokafka": logging.CRITICAL, "asyncio": logging.ERROR, "uvicorn": logging.ERROR}
"""From where on others are heard, at any level of ours: what matters of them we say
ourselves. While a broker is away aiokafka complains sixty times a second."""


def configure(settings: LogSettings, auto: Literal["json", "text"] | None = None) -> None:
    """Send all logs to stderr. `auto`: what that format means, if not what is usual."""
    usual: Literal["json", "text"] = "text" if sys.stderr.isatty() else "json"
    form = (auto or usual) if settings.format == "auto" else settings.format
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for name, level in _OTHERS.items():
        logging.getLogger(name).setLevel(level)


class StepLog(Audience):
    """One line for each record of the steps topic: what is logged has passed the monitor."""

    def published(self, publication: Publication) -> None:
        for step in publication.steps:
            first = step.step if step.first is None else step.first
            name = f"step {step.step}" if first == step.step else f"steps {first} to {step.step}"
            _log.info(
                "%s closed, hitters: %d",
                name,
                step.hitters,
                extra={
                    "step": step.step,
                    "first": first,
                    "end": step.end,
                    "hitters": step.hitters,
                    "period": step.period,
                },
            )
