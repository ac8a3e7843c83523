"""Server-sent events, over a real connection."""

import asyncio
import contextlib
import json

import httpx
import pytest

from streamer.web.board import Board
from streamer.web.feed import Feed
from tests.web.making import DEADLINE, SECONDS, Reader, new_stream, serving, steps_of


@contextlib.asynccontextmanager
async def reading(stream, since=None, headers=(), **feed):
    async with (
        serving(stream.board, feed=Feed(stream.board, **feed)) as server,
        Reader.on(server.port, since, headers) as reader,
    ):
        yield reader


async def test_a_reader_is_told_the_guarantee_and_the_last_step_and_then_each_publication():
    stream = new_stream()
    stream.step(a=100)
    stream.step(b=90)
    async with reading(stream) as reader:
        first = await reader.message()
        assert (first["event"], first["data"]["contributions"]) == ("guarantee", 2)
        now = await reader.message()
        assert (now["event"], now["id"], steps_of(now)) == ("published", "2", [2])
        assert [hitter["item"] for hitter in now["data"]["hitters"]["hitters"]] == ["b"]
        for step in (3, 4):
            stream.step(a=100 + step)
            news = await reader.message()
            assert (news["event"], news["id"], steps_of(news)) == ("published", str(step), [step])
            assert news["data"]["steps"][0]["results"][0]["estimate"] == 100 + step


async def test_a_reader_that_has_seen_everything_is_told_what_is_held_now():
    stream = new_stream()
    stream.step(a=100)
    async with reading(stream, since=1) as reader:
        now = await reader.published()
        assert (steps_of(now), now["data"]["hitters"]["step"]) == ([], 1)


async def test_a_reader_that_comes_back_gets_what_it_missed():
    stream = new_stream()
    for _ in range(6):
        stream.step(a=100)
    async with reading(stream, headers=["Last-Event-ID: 3"]) as reader:
        assert steps_of(await reader.published()) == [4, 5, 6]


async def test_what_the_browser_saw_last_counts_more_than_where_the_page_began():
    stream = new_stream()
    for _ in range(6):
        stream.step(a=100)
    async with reading(stream, since=1, headers=["Last-Event-ID: 4"]) as reader:
        assert steps_of(await reader.published()) == [5, 6]


async def test_a_long_absence_is_made_up_for_in_parts_and_the_last_tells_what_is_held():
    stream = new_stream()
    for number in range(40):
        stream.report({"x" * 20_000: 100 + number})
    async with reading(stream, since=0) as reader:
        parts = [await reader.published()]
        while parts[-1]["data"]["hitters"] is None:
            assert len(json.dumps(parts[-1]["data"])) < 2 * (1 << 18)
            parts.append(await reader.published())
        assert len(parts) > 2
        assert [step for part in parts for step in steps_of(part)] == list(range(1, 41))


async def test_a_reader_of_a_board_that_is_empty_waits_for_the_first_step():
    stream = new_stream()
    async with reading(stream) as reader:
        nothing = await reader.published()
        assert (steps_of(nothing), nothing["data"]["hitters"]["step"]) == ([], None)
        assert "id" not in nothing
        stream.step(a=100)
        assert steps_of(await reader.published()) == [1]


async def test_a_reader_of_another_stream_is_told_to_forget_it():
    stream = new_stream()
    stream.step(a=100)
    async with reading(stream, since=500) as reader:
        events = [(await reader.message())["event"] for _ in range(3)]
        assert events == ["guarantee", "reset", "published"]


async def test_a_new_guarantee_is_told():
    stream = new_stream(period_steps=10)
    stream.step(a=100)
    async with reading(stream) as reader:
        await reader.published()
        stream.report({"a": 100}, skipping=15)
        told = await reader.message()
        while told["event"] != "guarantee":
            told = await reader.message()
        assert told["data"]["period"] == 1


async def test_silence_is_broken_by_a_heartbeat():
    stream = new_stream()
    async with reading(stream, heartbeat_seconds=0.05) as reader:
        await reader.published()
        assert [(await reader.message())["event"] for _ in range(3)] == ["alive"] * 3


async def test_nothing_is_sent_between_publications_but_heartbeats():
    """A message's time must not tell of anything but a publication."""
    stream = new_stream()
    stream.step(a=100)
    async with reading(stream, heartbeat_seconds=3600) as reader:
        await reader.published()
        following = asyncio.create_task(reader.message())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not following.done()
        stream.step(a=100)
        assert steps_of(await following) == [2]


async def test_readers_are_counted_and_let_go():
    stream = new_stream()
    feed = Feed(stream.board)
    async with serving(stream.board, feed=feed) as server:
        async with contextlib.AsyncExitStack() as readers:
            for _ in range(5):
                reader = await readers.enter_async_context(Reader.on(server.port))
                await reader.published()
            assert feed.readers == 5
        async with asyncio.timeout(DEADLINE):
            while feed.readers:
                await asyncio.sleep(0.01)


async def test_too_many_readers_are_asked_to_poll():
    stream = new_stream()
    feed = Feed(stream.board, most_readers=1)
    async with (
        serving(stream.board, feed=feed) as server,
        Reader.on(server.port) as reader,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        await reader.published()
        answer = await client.get("/api/events")
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert "poll /api/steps" in answer.json()["error"]
        assert (await client.get("/api/hitters")).status_code == 200


async def test_at_the_end_readers_are_sent_home_at_once():
    stream = new_stream()
    async with reading(stream) as reader:
        await reader.published()
        stream.board.end()
        assert await reader.message() is None


@pytest.mark.parametrize("since", ["x", "1.5", "", "9" * 30, "１"])
async def test_a_place_that_is_no_step_is_refused(since):
    board = Board(SECONDS)
    async with serving(board) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.get("/api/events", params={"since": since})
        assert answer.status_code == 400
        assert answer.json() == {"error": "since is not an integer: use a number such as 12."}


async def test_asking_only_for_the_headers_of_a_stream_starts_none():
    stream = new_stream()
    feed = Feed(stream.board)
    async with (
        serving(stream.board, feed=feed) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        answer = await client.head("/api/events", timeout=DEADLINE)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert feed.readers == 0
