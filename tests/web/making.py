"""What the tests of the page need: a stream that publishes what a test says, and readers."""

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from streamer.monitors.attention import Rule, rule_of
from streamer.monitors.seam import Hitter
from streamer.privacy.terms import Attention, Method
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.publication import PublicSettings, Recorder
from streamer.stream.timing import StepTiming
from streamer.web.board import Board
from streamer.web.public import public_app
from streamer.web.server import HttpServer
from tests.stream.making import terms

SECONDS = StepTiming(1_000, epoch_ms=1_767_225_600_000)  # from 2026-01-01T00:00:00Z on
DEADLINE = 30


@dataclass
class Stream:
    """Publishes steps to a board, in the records that the product publishes.

    Without a rule, its hitters have no states, as in a ledger of 0.1.0.
    """

    board: Board
    first: int = 1
    terms: Terms = field(default_factory=terms)
    timing: StepTiming = SECONDS
    rule: Rule[str] | None = None

    def __post_init__(self):
        self.period = Period.containing(self.first, self.terms)
        self.recorder = Recorder(self.timing, self.first - 1)
        self.board.started(PublicSettings(self.terms))

    def decided(self, step, hitters, gone=()):
        self.period = self.period.at(step, self.terms)
        if self.rule is not None:
            named = self.rule.note(step, hitters, gone)
        else:
            named = tuple(Hitter(item, hitters[item]) for item in sorted(hitters))
        return Decided(step, step, self.period, named)

    def step(self, **hitters):
        self.report(hitters)

    def report(self, hitters, skipping=0, gone=()):
        """The next step, or one after so many quiet ones that are due together with it."""
        decided = self.decided(self.recorder.recorded + 1 + skipping, hitters, gone)
        if decided.hitters:
            publication = self.recorder.with_results(decided)
        else:
            publication = self.recorder.without_results(decided.step, decided.period)
        self.recorder.recorded = decided.step
        self.board.published(publication)
        return decided


def new_stream(**changes):
    limits = {name: changes.pop(name) for name in ("most_steps", "most_bytes") if name in changes}
    first, timing = changes.pop("first", 1), changes.pop("timing", SECONDS)
    return Stream(Board(timing, **limits), first, terms(**changes), timing)


def new_stream_with_states(attention=Attention.CHANGES, **changes):
    """What its steps say of items is what the product would say of the same answers: with
    changes, an item that was reported stays public until it is gone."""
    if attention is Attention.CHANGES:
        changes = {"calibration": Method.HORIZON, "epsilon": 1.0, "delta": 1e-6} | changes
    stream = new_stream(attention=attention, **changes)
    stream.rule = rule_of(stream.period.pace)
    return stream


@asynccontextmanager
async def serving(board, truth=None, port=0, feed=None):
    server = HttpServer(public_app(board, truth, feed), "http", "127.0.0.1", port)
    await server.start()
    try:
        yield server
    finally:
        board.end()
        await server.stop()


class Reader:
    """Reads /api/events from a real socket, as a client that knows the protocol would."""

    def __init__(self, lines):
        self._lines = lines

    @classmethod
    @asynccontextmanager
    async def on(cls, port, since=None, headers=()):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        query = "" if since is None else f"?since={since}"
        lines = [f"GET /api/events{query} HTTP/1.1", "Host: test", *headers, "", ""]
        try:
            writer.write("\r\n".join(lines).encode())
            status = await asyncio.wait_for(reader.readline(), DEADLINE)
            assert b" 200 " in status, status
            while (await reader.readline()).strip():
                pass
            yield cls(cls._lines_of(reader))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    @staticmethod
    async def _lines_of(reader):
        """The lines of a chunked body."""
        body = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            body += await reader.readexactly(size)
            await reader.readline()
            *lines, body = body.split(b"\n")
            for line in lines:
                yield line.decode()

    async def message(self):
        """The next one with data, as a dict of its fields; None when the stream has ended."""
        return await asyncio.wait_for(self._message(), DEADLINE)

    async def _message(self):
        fields = {}
        async for line in self._lines:
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return {**fields, "data": json.loads(fields["data"])}
        return None

    async def published(self):
        """The next `published` event."""
        while (message := await self.message()) is not None:
            if message["event"] == "published":
                return message
        raise AssertionError("the stream has ended")


def steps_of(message):
    return [step["step"] for step in message["data"]["steps"]]
