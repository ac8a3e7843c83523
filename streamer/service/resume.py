"""How every run resumes, always in this order. Mistakes here are the most dangerous ones.

1. Reach the ledger.
2. Fence: from now on no other process can write it.
3. Restore its contents. This changes nothing.
4. Check the key: under another key every user would look new, and be charged again.
5. Claim the ledger.
6. Publish the last decision if it may not have been published, unchanged.
7. Continue reading at the offsets of the last decision.

The caller provides 1 and 2 (`Opening`) and 7 (`ReadOn`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from streamer.errors import UnusableJournalError
from streamer.ledger.contract import Ledger, Restored
from streamer.service.pipeline import Checkpoint, Pipeline
from streamer.stream.engine import AskedBy, Engine
from streamer.stream.intake import Intake
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Audience, PublicSettings, Recorder, published_before
from streamer.stream.timing import StepTiming, format_rfc3339
from streamer.stream.watching import Watcher

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A ledger that no other process can write, and the pseudonyms of its users."""

    ledger: Ledger
    pseudonyms: Pseudonyms


Opening = Callable[[AsyncExitStack], Awaitable[Opened]]
"""Reaches and fences a ledger; what it opens closes with the stack."""
ReadOn = Callable[[Mapping[str, int]], Awaitable[None]]
"""Starts reading at these offsets; partitions without one from their beginning."""


@dataclass(frozen=True, slots=True)
class Course:
    """The parameters of a run: everything but its ledger and its source."""

    timing: StepTiming
    public: PublicSettings
    make_intake: Callable[[Pseudonyms], Intake]
    asked_by: AskedBy
    watcher: Watcher
    audience: Audience
    checkpoint: Checkpoint


async def resume(
    course: Course, opening: Opening, at_end: AsyncExitStack, read_on: ReadOn | None = None
) -> Pipeline:
    """Restore the past and continue from there; what is opened closes with `at_end`.

    Without `read_on` the source has no offsets: a file is read again from its beginning,
    and events of closed steps do not count.
    """
    opened = await opening(at_end)
    ledger = opened.ledger
    began = time.monotonic()
    restored = await ledger.restore()
    course.watcher.restored(time.monotonic() - began)
    if restored is not None:
        check_key(restored, opened.pseudonyms)
    await ledger.claim()
    intake = course.make_intake(opened.pseudonyms)
    state = restored.state if restored else None
    engine = Engine(intake, course.public.terms, state, course.asked_by)
    pipeline = Pipeline(
        *(engine, ledger, course.timing, restored.published if restored else None),
        *(course.watcher, course.audience, course.checkpoint),
    )
    course.audience.started(course.public)
    if restored is not None:
        await _publish_what_is_due(restored, pipeline, course)
    course.watcher.started(engine)
    _warn_of_pending_terms(engine, course.timing)
    offsets = restored.last.offsets if restored else {}
    intake.resume(offsets, restored.last.read if restored else {})
    if read_on is not None:
        await read_on(offsets)
    return pipeline


def check_key(restored: Restored, pseudonyms: Pseudonyms) -> None:
    """Under another key every user would look new, and could be charged k times again."""
    state, period = restored.state, restored.state.period
    is_over = state.closed + 1 >= period.end
    if restored.key != pseudonyms.fingerprint and len(state.charges) and not is_over:
        raise UnusableJournalError(
            f"the journal's users of period {period.number} were pseudonymized with another key: "
            "use that key until the period is over"
        )


async def _publish_what_is_due(restored: Restored, pipeline: Pipeline, course: Course) -> None:
    published, timing = restored.published, course.timing
    course.audience.restored(published_before(restored.history, published, timing))
    last = restored.last.decided
    if last.hitters and published < last.step:
        await pipeline.publish(Recorder(timing, published).with_results(last))


def _warn_of_pending_terms(engine: Engine, timing: StepTiming) -> None:
    if engine.terms_pending and engine.period is not None:
        _log.warning(
            "the privacy settings differ from those of the current period, %d: they take effect "
            "with the next period, at %s",
            engine.period.number,
            format_rfc3339(timing.start(engine.period.end)),
        )
