"""Whether a service is alive, and whether it is ready, with the reason if not.

Alive: its loop makes progress, or waits for something that it can name. A service that is
not alive must be restarted. Ready: the journal is restored, the broker answers, and steps
are closed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from streamer.stream.watching import Phase, Watcher

_log = logging.getLogger(__name__)
_STARTING = "starting"
LONGEST_SILENCE = 300.0
"""Seconds without progress: longer than any request, close or restore may take."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and why."""

    good: bool
    reason: str = ""


@dataclass(slots=True)
class Status(Watcher):
    """What the service is waiting for, in words; "" in normal operation."""

    clock: Callable[[], float] = time.monotonic
    waiting_for: str = _STARTING
    running: bool = False
    ending: bool = False
    _last_progress: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_progress = self.clock()

    def tell(self, waiting_for: str) -> None:
        """Report what is being waited for; "" when the wait is over."""
        if waiting_for and waiting_for != self.waiting_for:
            _log.warning("%s", waiting_for)
        elif self.waiting_for not in {waiting_for, _STARTING}:
            _log.info("no longer %s", self.waiting_for)
        self.waiting_for = waiting_for
        self.beat()

    def beat(self) -> None:
        """The loop made progress."""
        self._last_progress = self.clock()

    def timed(self, phase: Phase, seconds: float) -> None:
        """Progress too: after an outage one turn of the loop may close steps for a long time."""
        del phase, seconds
        self.beat()

    def alive(self) -> Verdict:
        silence = self.clock() - self._last_progress
        if silence <= LONGEST_SILENCE:
            return Verdict(True, self.waiting_for)
        return Verdict(False, f"no progress for {silence:.0f} s")

    def ready(self) -> Verdict:
        if self.ending:
            return Verdict(False, "shutting down")
        if not self.running:
            return Verdict(False, self.waiting_for or "restoring the journal")
        return Verdict(not self.waiting_for, self.waiting_for)
