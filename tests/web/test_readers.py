"""Many readers, some of whom never read: the stream goes on, and memory stays bounded."""

import asyncio
import json
import socket
import tracemalloc
from contextlib import AsyncExitStack

import pytest

from streamer.web.feed import Feed
from tests.web.making import DEADLINE, Reader, new_stream, serving

pytestmark = pytest.mark.slow

READING, STALLED = 120, 80
LARGE = {f"{number:04d}{'x' * 960}": 100 for number in range(60)}
LARGE_STEPS, SMALL_STEPS = 150, 30


def stalled_reader(port):
    """Asks for everything and reads nothing of it."""
    asking = socket.socket()
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    asking.settimeout(DEADLINE)
    asking.connect(("127.0.0.1", port))
    asking.sendall(b"GET /api/events?since=0 HTTP/1.1\r\nHost: test\r\n\r\n")
    return asking


def read_at_last(asking, last):
    """What a stalled reader was sent, if it reads in the end: its messages' steps."""
    lines, messages = asking.makefile("rb"), []
    while not messages or last not in messages[-1]:
        line = lines.readline()
        if line.startswith(b'data: {"steps":'):
            steps = json.loads(line.removeprefix(b"data: "))["steps"]
            messages.append([step["step"] for step in steps])
    lines.close()
    return messages


async def read_through(reader, last):
    """All steps that a reader is told of, up to this one."""
    seen = []
    while not seen or seen[-1] < last:
        seen += [step["step"] for step in (await reader.published())["data"]["steps"]]
    return seen


async def until_readers_are(feed, number):
    async with asyncio.timeout(DEADLINE):
        while feed.readers != number:
            await asyncio.sleep(0.01)


async def publish(stream, hitters, steps):
    for _ in range(steps):
        stream.report(hitters)
        await asyncio.sleep(0.001)  # so that each can be sent before the next


async def test_200_readers_of_whom_80_never_read_slow_nobody_and_cost_little():
    stream = new_stream()
    feed = Feed(stream.board)
    last = LARGE_STEPS + SMALL_STEPS
    async with serving(stream.board, feed=feed) as server:
        async with AsyncExitStack() as at_end:
            stalled = [
                at_end.enter_context(await asyncio.to_thread(stalled_reader, server.port))
                for _ in range(STALLED)
            ]
            await until_readers_are(feed, STALLED)
            tracemalloc.start()
            at_end.callback(tracemalloc.stop)
            await publish(stream, LARGE, LARGE_STEPS)
            # A queue of what each of them did not read would be 1.4 GB by now, and the
            # system's own buffers hold some of that. They share the 9 MB of the past, and
            # have one message each.
            _, most = tracemalloc.get_traced_memory()
            assert most < 100_000_000, f"{most:,} bytes"
            reading = []
            for _ in range(READING):
                reader = await at_end.enter_async_context(Reader.on(server.port, LARGE_STEPS))
                reading.append(asyncio.create_task(read_through(reader, last)))
            await until_readers_are(feed, STALLED + READING)
            await publish(stream, {"a": 100}, SMALL_STEPS)
            async with asyncio.timeout(DEADLINE):
                every = await asyncio.gather(*reading)
            assert all(seen == list(range(LARGE_STEPS + 1, last + 1)) for seen in every)
            messages = await asyncio.to_thread(read_at_last, stalled[0], last)
            assert [step for steps in messages for step in steps] == list(range(1, last + 1))
            assert len(messages) < last / 2, "it was stalled, so it got many steps in one message"
        await until_readers_are(feed, 0)


async def test_a_reader_that_fell_behind_the_past_goes_on_with_the_oldest_step():
    stream = new_stream(most_steps=20)
    stream.report(LARGE)
    async with serving(stream.board) as server, Reader.on(server.port, since=0) as reader:
        await reader.published()
        for _ in range(100):
            stream.report(LARGE)
        assert await read_through(reader, 101) == list(range(82, 102))
