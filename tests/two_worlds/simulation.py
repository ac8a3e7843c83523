"""A whole service on a scripted broker and clock, and everything that leaves it, with its time.

Real: loop, progress, intake, engine, counting, deciding, resume, pipeline, ledger, files, board
and server-sent events. Scripted: the broker, the clock, outages, crashes, and which items are
reported: a fixed list in each step, whatever anybody holds. So nothing that leaves may depend
on any user's data.
"""

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from streamer.errors import UnreachableError
from streamer.ledger.contract import Life
from streamer.ledger.file_ledger import FileLedger
from streamer.ledger.output_files import OutputFiles
from streamer.monitors.seam import Decision
from streamer.operations.health import Status
from streamer.privacy.terms import Attention, Method
from streamer.service.loop import Loop
from streamer.service.progress import Progress
from streamer.service.resume import Course, Opened, resume
from streamer.stream.decoding import Decoder
from streamer.stream.events import EventDecoder
from streamer.stream.fate import FateRule
from streamer.stream.intake import Batch, Intake
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import PublicSettings
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher
from streamer.web.board import Board
from streamer.web.feed import Feed
from tests.stream.making import KEY, record, terms

LENGTH, LATENESS, SKEW, AHEAD = 1_000, 200, 50, 5_000
TIMING = StepTiming(LENGTH, lateness_ms=LATENESS)
FIRST = 1_000
"""The step in which every script begins."""
BEGIN = TIMING.start(FIRST)
MEMORY = Path("/dev/shm")
"""Where files cost no disk, if there is such a place."""


@dataclass(frozen=True)
class Sent:
    """A record that reaches the broker at this moment of our clock, after BEGIN."""

    at: int
    value: bytes
    partition: str = "0"
    stamp: int | None = None
    """The timestamp that its producer sets, after BEGIN, where producers are trusted."""


def event(at, user="u", item="x", time=None, partition="0"):
    """An event of a user; `time` after BEGIN, if it is not that of its arrival."""
    more = {} if time is None else {"time": BEGIN + time}
    return Sent(at, record(user, item, **more), partition)


@dataclass(frozen=True)
class Crash:
    """The process dies at this point of the protocol, once this step (from FIRST) is closed, or,
    without a point, at this moment; it is started again after `down` milliseconds."""

    point: str | None
    at: int
    down: int = 500


@dataclass(frozen=True)
class Script:
    """What happens to a service: the same in both worlds."""

    steps: int = 5
    """How long it is watched."""
    hitters: tuple[int, ...] = ()
    """The steps, from FIRST, in which the fixed list is reported."""
    partitions: tuple[tuple[str, int], ...] = (("0", 0),)
    """Each with the moment from which it is there."""
    outages: tuple[tuple[int, int], ...] = ()
    """From when to when the broker does not answer."""
    crashes: tuple[Crash, ...] = ()
    broker_behind: int = 0
    """How far the broker's clock is behind ours."""
    trusts_producers: bool = False
    """Whether records have the timestamps of their producers, not of their arrival."""
    starts_at: int = 300
    start_step: int | None = None
    """Where the stream begins, from FIRST; None: by the clock."""
    most_records: int = 3
    """That the broker returns at a time."""
    release: int = 25
    """How long after a step is due its results leave; it may be longer than a step."""
    refresh: int = 1
    """How many steps a reported item rests; 0: it stays public, and is asked about in every step
    until it is gone."""
    gone: tuple[int, ...] = ()
    """The steps, from FIRST, in which what is asked about is no longer there."""
    period: int = 100
    """Steps of a budget period."""
    items_per_step: int = 1
    decoder: Decoder = field(default_factory=lambda: EventDecoder(TIMING))

    @property
    def ends(self):
        return BEGIN + self.steps * LENGTH


class Died(BaseException):
    """As when the process is killed: nothing is caught, nothing is cleaned up on purpose."""


class Clock:
    def __init__(self, now, die_before):
        """`die_before`: raises, with this clock at its moment, if the process dies until then."""
        self.now = now
        self._die_before = die_before

    def __call__(self):
        return self.now

    async def to(self, moment):
        """Time passes at once; whoever reads along has a turn before and after it."""
        for _ in range(3):
            await asyncio.sleep(0)
        self._die_before(moment)
        self.now = max(self.now, moment)

    async def rest(self, seconds):
        await self.to(self.now + round(1000 * seconds))


class Broker:
    """Implements `Source`, on a script."""

    def __init__(self, script, sent, clock):
        self._script, self._clock = script, clock
        self._log = {name: [] for name, _ in script.partitions}
        for each in sorted(sent, key=lambda each: each.at):
            if each.partition in self._log:
                self._log[each.partition].append((BEGIN + each.at, each.value, self._stamp(each)))
        self._positions = {}
        self._known = []

    @property
    def ended(self):
        return self._clock() >= self._script.ends

    async def start(self, offsets):
        self._positions = dict(offsets)
        await self.partitions()

    async def partitions(self):
        self._answer()
        now = self._clock()
        self._known = [name for name, since in self._script.partitions if BEGIN + since <= now]
        for name in self._known:
            self._positions.setdefault(name, 0)
        return list(self._known)

    async def poll(self, timeout_ms, skip=()):
        self._answer()
        if not any(self._readable(name) for name in self._known):
            await self._clock.to(min([self._clock() + timeout_ms, *self._next()]))
            self._answer()
        found = []
        for name in self._known:
            rows = [] if name in skip else self._readable(name)[: self._script.most_records]
            if rows:
                first = self._positions[name]
                self._positions[name] = first + len(rows)
                stamps = np.array([stamp for *_, stamp in rows])
                offsets = np.arange(first, first + len(rows))
                found.append(Batch(name, offsets, [value for _, value, _ in rows], stamps))
        return found

    async def drained(self):
        self._answer()
        return {name for name in self._known if not self._readable(name)}

    def _stamp(self, sent):
        if self._script.trusts_producers and sent.stamp is not None:
            return BEGIN + sent.stamp
        return BEGIN + sent.at - self._script.broker_behind

    def _readable(self, name):
        """What has reached the broker and was not read."""
        log = self._log[name][self._positions[name] :]
        return [row for row in log if row[0] <= self._clock()]

    def _next(self):
        """When something happens by itself."""
        now = self._clock()
        moments = [BEGIN + moment for outage in self._script.outages for moment in outage]
        for name in self._known:
            moments += [at for at, *_ in self._log[name][self._positions[name] :]][:1]
        return [moment for moment in [*moments, self._script.ends] if moment > now]

    def _answer(self):
        for since, until in self._script.outages:
            if BEGIN + since <= self._clock() < BEGIN + until:
                raise UnreachableError("waiting for the broker")


class FixedList:
    """Gives the same answers in the same steps, whatever anybody holds."""

    asks_unheld = True

    def __init__(self, script):
        self._script = script

    def __call__(self, plan, declared):
        del plan, declared
        return self

    def ask(self, tally, agenda):
        step = tally.step - FIRST
        named = {"crash:A": 700, "crash:B": 900} if step in self._script.hitters else {}
        numbers = {
            tally.numbers[item]: estimate
            for item, estimate in named.items()
            if item not in agenda.checks
        }
        items = sorted(numbers)
        decision = Decision.flat(
            tally.step,
            np.array(items, dtype=np.int64),
            np.array([numbers[item] for item in items], dtype=np.int64),
        )
        gone = [tally.numbers[item] for item in agenda.checks if step in self._script.gone]
        return replace(decision, gone=np.array(sorted(gone), dtype=np.int64))


@dataclass
class World:
    """One play of a script, with what was sent to the broker in it."""

    script: Script
    sent: tuple[Sent, ...]
    story: list = field(default_factory=list)
    """Whatever became visible: its moment, where, and the bytes."""

    def __post_init__(self):
        self.clock = Clock(BEGIN + self.script.starts_at, self._die_before)
        self.left = list(self.script.crashes)
        self._seen = {}

    async def play(self):
        where = MEMORY if MEMORY.is_dir() else None
        self.directory = Path(tempfile.mkdtemp(dir=where))
        try:
            while self.clock() < self.script.ends:
                with suppress(Died):
                    await self._serve()
        finally:
            shutil.rmtree(self.directory)
        # Which of two tasks is first in the same millisecond is computing time: within one
        # moment only the order in each place counts.
        return sorted(self.story, key=lambda seen: seen[:2])

    async def _serve(self):
        """One life of the process."""
        self._die_before(self.clock())  # nobody dies halfway through the work of one moment
        board = Board(TIMING)
        reading = asyncio.create_task(self._read_along(Feed(board, heartbeat_seconds=10**6)))
        broker = Broker(self.script, self.sent, self.clock)
        try:
            async with AsyncExitStack() as at_end:
                pipeline = await resume(self._course(board), self._open, at_end, broker.start)
                if pipeline.engine.closed is None:
                    start = self.script.start_step
                    pipeline.start_at(
                        TIMING.step_at(self.clock()) if start is None else FIRST + start
                    )
                self._engine = pipeline.engine
                self._look(board)
                schedule = Schedule(TIMING, SKEW, self.script.release)
                progress = Progress(broker, schedule, self.clock, AHEAD)
                await Loop(
                    *(broker, progress, pipeline, Status(), Watcher(), asyncio.Event()),
                    rest=self.clock.rest,
                ).run()
        except UnreachableError:
            await self.clock.rest(0.2)  # away while it started; it is started again
        finally:
            board.end()
            await reading
            self._look(board)

    def _course(self, board):
        def intake(pseudonyms):
            return Intake(self.script.decoder, FateRule(TIMING, AHEAD), pseudonyms)

        asked_by = FixedList(self.script)

        def passed(point):
            self._look(board)
            self._die_at(point)

        rule = {"refresh_steps": self.script.refresh}
        if not self.script.refresh:
            rule = {"attention": Attention.CHANGES, "calibration": Method.HORIZON}
        wanted = terms(
            **rule,
            period_steps=self.script.period,
            items_per_step=self.script.items_per_step,
        )
        public = PublicSettings(wanted)
        return Course(TIMING, public, intake, asked_by, Watcher(), board, passed)

    async def _open(self, at_end):
        pseudonyms = Pseudonyms(KEY)
        ledger = FileLedger(
            *(self.directory / "journal.sqlite", Life(LENGTH, 0), pseudonyms.fingerprint),
            OutputFiles(self.directory / "hitters", self.directory / "steps"),
            checkpoint=self._written,
        )
        at_end.push_async_callback(ledger.close)
        return Opened(ledger, pseudonyms)

    def _written(self, point):
        self._look(None)
        self._die_at(point)

    async def _read_along(self, feed):
        """Everything on the page comes from the board, and reaches its readers this way."""
        async for message in feed.read(None):
            self.story.append((self.clock() - BEGIN, "events", message))

    def _look(self, board):
        """Note what changed since the last look."""
        shown = {
            name: (self.directory / name).read_bytes()
            for name in ("hitters", "steps")
            if (self.directory / name).exists()
        }
        if board is not None:
            shown["current"] = board.current_json
        for name, content in shown.items():
            if self._seen.get(name) != content:
                self._seen[name] = content
                self.story.append((self.clock() - BEGIN, name, content))

    def _die_at(self, point):
        for crash in self.left:
            if crash.point == point and (self._engine.closed or 0) >= FIRST + crash.at:
                self._die(crash)

    def _die_before(self, moment):
        """At its moment, not when the process next does something: that depends on data."""
        for crash in sorted((each for each in self.left if not each.point), key=lambda it: it.at):
            if BEGIN + crash.at <= moment:
                self.clock.now = max(self.clock(), BEGIN + crash.at)
                self._die(crash)

    def _die(self, crash):
        self.left.remove(crash)
        self.clock.now += crash.down
        raise Died


def play(script, *sent):
    """What leaves a service in a world in which this is sent."""
    return asyncio.run(World(script, tuple(sent)).play())
