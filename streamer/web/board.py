"""What the public may see of a stream: recent steps, their hitters, and the guarantee.

A board receives publications and public settings, and nothing else of the stream. It keeps
a bounded history, each step as the JSON that is sent, so that many readers cost little.
"""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from streamer.stream.current import CurrentHitters
from streamer.stream.publication import RECENT_STEPS, Audience, Publication, PublicSettings
from streamer.stream.records import StepRecord
from streamer.stream.timing import StepTiming
from streamer.web.answers import ClosedStep, Current, Promise, closed_steps, current_at
from streamer.web.promise import promise_of_period, promise_to_come

KEPT_BYTES = 64 << 20
"""With very many or very long items, the history is shorter."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Kept:
    """A step, or a run of steps without hitters that starts at `first`, as it is sent."""

    first: int
    step: int
    json: bytes


class Board(Audience):
    """The recent history of one stream. Used from one event loop only."""

    def __init__(
        self, timing: StepTiming, most_steps: int = RECENT_STEPS, most_bytes: int = KEPT_BYTES
    ) -> None:
        self._timing = timing
        self._most_steps, self._most_bytes = most_steps, most_bytes
        self._kept: list[Kept] = []
        self._bytes = 0
        self._last: StepRecord | None = None
        self._hitters = CurrentHitters()
        self.current = Current(None, None, None, ())
        self.current_json = _encode(self.current)
        self.promise: Promise | None = None
        self._trusts_producers = False
        self.ended = False
        """Nothing more will come: readers should disconnect."""
        self.revision = 0
        """Increases with every change."""
        self.identity = secrets.token_hex(4)
        """Distinguishes the revisions of this board from those of others."""
        self._news = asyncio.Event()

    @property
    def oldest(self) -> int | None:
        """The first step in the history."""
        return self._kept[0].first if self._kept else None

    @property
    def through(self) -> int | None:
        """The last published step."""
        return self._kept[-1].step if self._kept else None

    def after(self, step: int, limit: int) -> list[Kept]:
        """Up to `limit` records of the steps after this one, oldest first."""
        place = bisect_right(self._kept, step, key=lambda kept: kept.step)
        return self._kept[place : place + limit]

    def newest(self, limit: int) -> list[Kept]:
        """The last records, oldest first."""
        return self._kept[-limit:]

    async def news(self) -> None:
        """Returns at the next change, or at the end."""
        await self._news.wait()

    def restored(self, publications: Sequence[Publication]) -> None:
        for publication in publications:
            self._take(publication)
        self._changed()

    def started(self, settings: PublicSettings) -> None:
        self._trusts_producers = settings.trusts_producers
        if self.promise is None:
            self.promise = promise_to_come(settings, self._timing)
            self._changed()

    def published(self, publication: Publication) -> None:
        self._take(publication)
        self._changed()

    def end(self) -> None:
        """Let readers disconnect: called before the server stops, so that nobody is cut off."""
        self.ended = True
        self._news.set()

    def _take(self, publication: Publication) -> None:
        for closed in closed_steps(publication):
            if self._last is not None and closed.step <= self._last.step:
                continue  # a restart may publish the last step again
            self._keep(closed)
            self._last = closed
        self._hitters.take(publication)
        if publication.period is not None:
            self.promise = promise_of_period(
                publication.period, self._timing, self._trusts_producers
            )
        self._forget()

    def _keep(self, closed: ClosedStep) -> None:
        json = _encode(closed)
        first = closed.step if closed.first is None else closed.first
        self._kept.append(Kept(first, closed.step, json))
        self._bytes += len(json)

    def _forget(self) -> None:
        """Drop what is too old or too large; the last step stays."""
        if self._last is None:
            return
        keep_after = self._last.step - self._most_steps
        forgotten = 0
        for kept in self._kept[:-1]:
            if kept.step > keep_after and self._bytes <= self._most_bytes:
                break
            self._bytes -= len(kept.json)
            forgotten += 1
        del self._kept[:forgotten]

    def _changed(self) -> None:
        if self._last is not None:
            self.current = current_at(self._last, self._hitters)
            self.current_json = _encode(self.current)
        self.revision += 1
        awaited, self._news = self._news, asyncio.Event()
        awaited.set()


def join(kept: Sequence[Kept]) -> bytes:
    """Steps as a JSON array."""
    return b"[" + b",".join(each.json for each in kept) + b"]"
