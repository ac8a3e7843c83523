"""Logs, as JSON lines or plain text. They never contain a user or an unreported item."""

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
"""Minimum levels of other loggers, whatever our own level is: we log what matters
ourselves. While a broker is away, aiokafka logs sixty errors a second."""


def configure(settings: LogSettings, auto: Literal["json", "text"] | None = None) -> None:
    """Send all logs to stderr. `auto`: overrides what the format "auto" stands for."""
    usual: Literal["json", "text"] = "text" if sys.stderr.isatty() else "json"
    form = (auto or usual) if settings.format == "auto" else settings.format
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for name, level in _OTHERS.items():
        logging.getLogger(name).setLevel(level)


class StepLog(Audience):
    """One line for each record of the steps topic, so only what has passed the monitor."""

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
