"""The page when its server goes away, comes back, or is another one."""

import asyncio

import pytest
from playwright.async_api import expect

from streamer.stream.publication import PublicSettings, published_before
from streamer.web.board import Board
from tests.web.browser.test_page import live, row
from tests.web.making import SECONDS, Stream, new_stream, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

# What a browser itself writes to the console when a server is away.
AWAY = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION")


async def test_the_page_reconnects_after_a_restart_and_has_what_it_missed(visit):
    stream = new_stream()
    decisions = [stream.report({"before": 300}) for _ in range(5)]
    async with serving(stream.board) as server:
        visiting = visit(server.url, complaints_about=AWAY)
        page = await visiting.__aenter__()
        await expect(row(page, "before")).to_be_visible()
        port = server.port
    try:
        await expect(page.locator("#state")).to_have_attribute("data-state", "reconnecting")
        decisions += [stream.report({"meanwhile": 400}) for _ in range(3)]
        restarted = Board(SECONDS)
        restarted.started(PublicSettings(stream.terms))
        restarted.restored(published_before(decisions, 8, SECONDS))
        async with serving(restarted, port=port):
            await live(page)
            await expect(row(page, "meanwhile")).to_be_visible()
            await expect(page.locator("#chart")).to_have_attribute("data-steps", "8")
            await expect(page.locator("#chart")).to_have_attribute("data-items", "2")
            stream.board = restarted
            stream.step(after=500)
            await expect(row(page, "after")).to_be_visible(timeout=2_000)
    finally:
        await visiting.__aexit__(None, None, None)


async def test_a_page_that_was_opened_while_the_stream_was_away_shows_the_history(visit):
    old = new_stream()
    decisions = [old.report({"a": 300}) for _ in range(7)]
    board = Board(SECONDS)
    board.restored(published_before(decisions, 7, SECONDS))
    async with serving(board) as server, visit(server.url) as page:
        await expect(row(page, "a")).to_be_visible()
        await expect(page.locator("#chart")).to_have_attribute("data-steps", "7")


async def test_another_stream_at_the_same_place_replaces_the_one_before(visit):
    first = new_stream(first=1_000)
    first.step(old=300)
    async with serving(first.board) as server:
        visiting = visit(server.url, complaints_about=AWAY)
        page = await visiting.__aenter__()
        await expect(row(page, "old")).to_be_visible()
        port = server.port
    try:
        other = Stream(Board(SECONDS), first=1)
        other.step(new=400)
        async with serving(other.board, port=port):
            await expect(row(page, "new")).to_be_visible()
            await expect(page.locator("#chart")).to_have_attribute("data-steps", "1")
            await expect(page.locator("#labels li")).to_have_count(1)
    finally:
        await visiting.__aexit__(None, None, None)


async def test_many_steps_at_once_are_all_shown(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        for number in range(250):
            stream.report({"a": 300 + number})
            if number % 50 == 0:
                await asyncio.sleep(0)
        await expect(page.locator("#chart")).to_have_attribute("data-steps", "251")
        await expect(row(page, "a")).to_contain_text("549")
