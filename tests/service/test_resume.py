"""How a run takes up its past: the order, and what a failure leaves undone."""

from contextlib import AsyncExitStack
from dataclasses import replace

import numpy as np
import pytest

from streamer.errors import UnusableJournalError
from streamer.ledger.contract import Entry, Restored
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.service.resume import Course, Opened, resume
from streamer.stream.decided import Decided
from streamer.stream.engine import EngineState
from streamer.stream.intake import Intake
from streamer.stream.periods import Period
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import PublicSettings
from streamer.stream.watching import Watcher
from tests.service.noting import NotingAudience, NotingLedger
from tests.stream.making import (
    KEY,
    MINUTES,
    TIMING,
    RepeatingDecider,
    batch,
    new_intake,
    record,
    terms,
)

TERMS = terms()
PERIOD = Period.containing(0, TERMS)
OURS, ANOTHER = Pseudonyms(KEY), Pseudonyms(bytes(32))
OFFSETS = {"0": 12, "1": 40}
USER = Charges.full(np.array([7], dtype=np.uint64))


def past(published, hitters=("a",), key=OURS, closed=9, charges=USER):
    """A ledger in which two steps are decided, the last of them with these hitters."""
    before = Decided(closed - 1, closed - 1, PERIOD, (Hitter("before", 5),))
    last = Decided(closed, closed, PERIOD, tuple(Hitter(item, 7) for item in hitters))
    state = EngineState(closed, PERIOD, charges)
    return Restored(state, Entry(last, OFFSETS), published, key.fingerprint, (before, last))


class FailedError(Exception):
    """What a test lets fail."""


class Story(list):
    """What happened; what is to fail fails before it happens."""

    def __init__(self, fails=None):
        super().__init__()
        self._fails = fails

    def append(self, what):
        if (what if isinstance(what, str) else what[0]) == self._fails:
            raise FailedError(what)
        super().append(what)


class Start(Watcher):
    """One start, with everything in one story."""

    def __init__(self, restored=None, fails=None, wanted=TERMS, key=OURS, timing=TIMING):
        self.story = Story(fails)
        self.ledger = NotingLedger(self.story, restored)
        self.key = key
        self.course = Course(
            *(timing, PublicSettings(wanted), self._make_intake, RepeatingDecider(3)),
            *(self, NotingAudience(self.story), lambda _: None),
        )

    async def run(self, read_on=True):
        async with AsyncExitStack() as at_end:
            pipeline = await resume(
                *(self.course, self._open, at_end), *([self._read_on] if read_on else [])
            )
            self.story.append("resumed")
        return pipeline

    def restored(self, seconds):
        assert 0 <= seconds < 60
        self.story.append("watcher restored")

    def started(self, engine):
        self.story.append(("watcher started", engine.closed))

    async def _open(self, at_end):
        self.story.append("open")
        at_end.callback(list.append, self.story, "closed")
        return Opened(self.ledger, self.key)

    async def _read_on(self, offsets):
        self.story.append(("read on", dict(offsets)))

    def _make_intake(self, pseudonyms) -> Intake:
        assert pseudonyms is self.key
        self.story.append("intake")
        return new_intake()


ORDER = [
    "open",
    "restore",
    "watcher restored",
    "claim",
    "intake",
    ("audience started", TERMS),
    ("audience restored", [(8, [(8, "before", 5)], [(8, 8, 1)])]),
    ("publish", 9, [(9, "a", 7)], [(9, 9, 1)]),
    ("audience published", 9),
    ("watcher started", 9),
    ("read on", OFFSETS),
    "resumed",
    "closed",
]


async def test_the_order_of_a_start_with_a_decision_that_may_not_be_published():
    start = Start(past(published=8))
    await start.run()
    assert start.story == ORDER


@pytest.mark.parametrize("place", range(len(ORDER) - 2))
async def test_a_failure_leaves_everything_undone_that_comes_after_it(place):
    name = ORDER[place] if isinstance(ORDER[place], str) else ORDER[place][0]
    start = Start(past(published=8), fails=name)
    with pytest.raises(FailedError):
        await start.run()
    opened = [] if place == 0 else ["closed"]
    assert start.story == ORDER[:place] + opened


async def test_a_new_stream_publishes_nothing_and_is_read_from_its_beginning():
    start = Start()
    pipeline = await start.run()
    assert start.story == [
        *("open", "restore", "watcher restored", "claim", "intake"),
        ("audience started", TERMS),
        ("watcher started", None),
        ("read on", {}),
        *("resumed", "closed"),
    ]
    assert (pipeline.engine.closed, pipeline.engine.charged) == (None, 0)


async def test_a_run_without_a_place_to_read_on_does_the_same():
    start = Start(past(published=8))
    await start.run(read_on=False)
    assert start.story == [each for each in ORDER if each[0] != "read on"]


class TestTheKey:
    async def test_another_one_is_refused_before_anything_is_claimed(self):
        start = Start(past(published=8), key=ANOTHER)
        with pytest.raises(
            UnusableJournalError, match="period 0 were pseudonymized with another key"
        ):
            await start.run()
        assert start.story == ["open", "restore", "watcher restored", "closed"]

    @pytest.mark.parametrize(
        "restored",
        [
            past(published=99, closed=99),  # the last step of the period
            past(published=9, charges=Charges.none()),
        ],
        ids=["the period is over", "nobody is charged"],
    )
    async def test_another_one_is_let_in_if_nobody_would_be_charged_again(self, restored):
        start = Start(restored, key=ANOTHER)
        await start.run()
        assert "claim" in start.story


def published(start):
    return [each for each in start.story if each[0] == "publish"]


class TestWhatIsDue:
    async def test_a_decision_is_published_as_it_was_with_the_records_that_are_missing(self):
        start = Start(past(published=6))
        await start.run()
        assert published(start) == [
            ("publish", 9, [(9, "a", 7)], [(7, 7, 0), (8, 8, 0), (9, 9, 1)])
        ]

    async def test_what_is_published_is_not_published_again(self):
        start = Start(past(published=9))
        pipeline = await start.run()
        await pipeline.record_quiet_steps()
        assert published(start) == []

    async def test_quiet_steps_that_were_not_recorded_are_so_with_what_follows(self):
        start = Start(past(published=8, hitters=()))
        pipeline = await start.run()
        assert published(start) == []
        events = [record(f"u{user}", "b", step=10) for user in range(3)]
        pipeline.receive(batch(events), None)
        await pipeline.close_through(10)
        assert published(start) == [("publish", 10, [(10, "b", 3)], [(9, 9, 0), (10, 10, 1)])]


async def test_it_goes_on_with_the_counters_and_offsets_of_the_past():
    pipeline = await Start(past(published=9)).run()
    engine = pipeline.engine
    assert (engine.closed, engine.period, engine.charged) == (9, PERIOD, 1)
    assert engine.intake.offsets() == OFFSETS


@pytest.mark.parametrize("pending", [True, False])
async def test_terms_that_wait_for_the_next_period_are_logged(caplog, pending):
    wanted = replace(TERMS, epsilon=5.0) if pending else TERMS
    await Start(past(published=9), wanted=wanted, timing=MINUTES).run()
    assert caplog.messages == pending * [
        "the privacy settings differ from those of the current period, 0: they take effect with "
        "the next period, at 2026-01-01T01:40:00Z"
    ]
