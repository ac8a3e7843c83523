"""What the public may see of a stream: recent steps, their hitters, and the guarantee.

A board is fed with publications, by any run or from a journal, and uses nothing else of
the stream but the terms of its period, which are public. It holds a bounded past, each
step as the JSON that is sent of it, so that many readers cost little.
"""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import structs

from streamer.stream.engine import Engine
from streamer.stream.periods import Period
from streamer.stream.publication import Publication, Recorder
from streamer.stream.records import Decided, ResultRecord, StepRecord
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher
from streamer.web.answers import ClosedStep, Current, Promise, Result
from streamer.web.current import CurrentHitters
from streamer.web.promise import promise_of_period, promise_to_come

KEPT_STEPS = 10_000
KEPT_BYTES = 64 << 20
"""Steps with very many or very long items: the past is shorter then."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Kept:
    """A step, or a run of steps without hitters from `first` on, as it is sent."""

    first: int
    step: int
    json: bytes


class Board(Watcher):
    """The recent past of one stream. Used from one event loop only."""

    def __init__(
        self, timing: StepTiming, most_steps: int = KEPT_STEPS, most_bytes: int = KEPT_BYTES
    ) -> None:
        self._timing = timing
        self._most_steps, self._most_bytes = most_steps, most_bytes
        self._kept: list[Kept] = []
        self._bytes = 0
        self._last: StepRecord | None = None
        self._hitters = CurrentHitters()
        self._period: Period | None = None
        self._refresh = 1
        self.current = Current(None, None, None, ())
        self.current_json = _encode(self.current)
        self.promise: Promise | None = None
        self.ended = False
        """No more will come, and readers are to go home."""
        self.revision = 0
        """Rises with every change."""
        self.identity = secrets.token_hex(4)
        """Tells the revisions of this board from those of others."""
        self._news = asyncio.Event()

    @property
    def oldest(self) -> int | None:
        """The first step that is kept."""
        return self._kept[0].first if self._kept else None

    @property
    def through(self) -> int | None:
        """The last step that is closed and published."""
        return self._kept[-1].step if self._kept else None

    def after(self, step: int, limit: int) -> list[Kept]:
        """The first records of later steps than this one, at most so many."""
        place = bisect_right(self._kept, step, key=lambda kept: kept.step)
        return self._kept[place : place + limit]

    def newest(self, limit: int) -> list[Kept]:
        """The last records, the oldest first."""
        return self._kept[-limit:]

    async def news(self) -> None:
        """Returns at the next change, or at the end."""
        await self._news.wait()

    def restored(self, history: Sequence[Decided], published: int) -> None:
        """Take up what a journal remembers, up to the last step that was published.

        How a journal cuts runs of empty steps depends on raw data. So only its hitters
        count here, and the steps between them are recorded as they are after an outage.
        """
        if not history:
            return
        first = max(history[0].first, published - self._most_steps + 1)
        recorder = Recorder(self._timing, first - 1)
        for decided in history:
            if decided.hitters and first <= decided.step <= published:
                self._refresh = decided.period.terms.refresh_steps
                self._take(recorder.with_results(decided))
                recorder.recorded = decided.step
        quiet = recorder.without_results(published, history[-1].period)
        if quiet is not None:
            self._take(quiet)
        self._period = next((d.period for d in reversed(history) if d.step <= published), None)
        self._enter_if_published()
        self._changed()

    def started(self, engine: Engine) -> None:
        if engine.period is not None:
            self._period = engine.period
            self._enter_if_published()
        if self.promise is None:
            self.promise = promise_to_come(engine.terms, self._timing)
            self._refresh = engine.terms.refresh_steps
            self._changed()

    def closed(self, decided: Decided, engine: Engine) -> None:
        del decided  # how steps are put together in it is not public
        self._period = engine.period
        self._enter_if_published()

    def published(self, publication: Publication) -> None:
        self._take(publication)
        self._enter_if_published()
        self._changed()

    def end(self) -> None:
        """Readers go home: called before the server stops, so that nobody is cut off."""
        self.ended = True
        self._news.set()

    def _take(self, publication: Publication) -> None:
        by_step: defaultdict[int, list[ResultRecord]] = defaultdict(list)
        for result in publication.results:
            by_step[result.step].append(result)
        for record in publication.steps:
            if self._last is not None and record.step <= self._last.step:
                continue  # told before: what was perhaps not published is published again
            results = by_step[record.step]
            self._keep(record, results)
            self._hitters.note(results, self._refresh)
            self._last = record
        self._forget()

    def _keep(self, record: StepRecord, results: Sequence[ResultRecord]) -> None:
        shown = tuple(Result(r.item, r.estimate, r.margin, r.threshold) for r in results)
        json = _encode(ClosedStep(**structs.asdict(record), results=shown))
        first = record.step if record.first is None else record.first
        self._kept.append(Kept(first, record.step, json))
        self._bytes += len(json)

    def _forget(self) -> None:
        """Let go of what is too old, or too much; the last step stays."""
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

    def _enter_if_published(self) -> None:
        """A new period is shown with its first published step, however that was closed."""
        period = self._period
        if period is None or self._last is None or period.first > self._last.step:
            return
        promise = promise_of_period(period, self._timing)
        if promise != self.promise:
            self.promise, self._refresh = promise, period.terms.refresh_steps
            self._changed()

    def _changed(self) -> None:
        if self._last is not None:
            last, step = self._last, self._last.step
            hitters = self._hitters.at(step, self._refresh)
            self.current = Current(step, last.start, last.end, hitters)
            self.current_json = _encode(self.current)
        self.revision += 1
        told, self._news = self._news, asyncio.Event()
        told.set()


def join(kept: Sequence[Kept]) -> bytes:
    """Steps as a JSON array."""
    return b"[" + b",".join(each.json for each in kept) + b"]"
