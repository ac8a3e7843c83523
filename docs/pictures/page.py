"""Pictures of the live page: a simulated afternoon through the real engine, in a real browser.

    python docs/pictures/page.py

writes page-light.png and page-dark.png beside this file. It needs Debian's Chromium, or
another one that CHROMIUM names, and the packages of the dev extra.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from playwright.async_api import async_playwright

from streamer.fleet.event_lines import EventLines
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak, Shape
from streamer.fleet.simulation import simulate
from streamer.ledger.file_ledger import FileLedger
from streamer.monitors.deciding import NoisyThreshold
from streamer.service.pipeline import Pipeline
from streamer.service.resume import Course, Opened, resume
from streamer.service.startup import intake_of, life_of, terms_of, timing_of
from streamer.settings import Settings
from streamer.stream.intake import Batch
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import PublicSettings
from streamer.stream.watching import Watcher
from streamer.web.board import Board
from streamer.web.public import public_app
from streamer.web.server import HttpServer

HERE = Path(__file__).parent
SIZE = {"width": 1280, "height": 1000}
FLAGS = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
STEPS = 300
FLEET = Fleet(
    users=150_000,
    steps=STEPS,
    seed=7,
    start=datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
    active=0.4,
    exponent=1.0,
    outbreaks=(
        Outbreak("crash:OutOfMemoryError:Feed.kt:118", 12_000, 70, 36, Shape.SPIKE),
        Outbreak("error:HTTP-502:/api/checkout", 18_000, 142, 38, Shape.RAMP),
        Outbreak("error:TLS-handshake:edge-fra-4", 2_900, 205, 30),
        Outbreak("url:/status", 3_400, 251, 46),
        Outbreak("crash:IllegalStateException:CheckoutFragment.kt:341", 9_000, 279, 30, Shape.RAMP),
        Outbreak("version:8.2.0-rollback", 6_500, 297, 40, Shape.SPIKE),
    ),
)
SETTINGS = Settings()


async def run_fleet(board: Board) -> None:
    async with AsyncExitStack() as at_end:
        pipeline = await start(board, at_end)
        lines = EventLines(FLEET.catalogue())
        for happened in simulate(FLEET):
            records = lines.render(happened.events)
            batch = Batch("fleet", np.arange(len(records)), records, happened.events.arrivals)
            pipeline.receive(batch, None)
            await pipeline.close_through(happened.step)
            await pipeline.record_quiet_steps()


async def start(board: Board, at_end: AsyncExitStack) -> Pipeline:
    """A run that keeps nothing: what it publishes is on the page."""
    timing = timing_of(SETTINGS.stream)

    async def in_memory(at_end: AsyncExitStack) -> Opened:
        pseudonyms = Pseudonyms(secrets.token_bytes(32))
        ledger = FileLedger(None, life_of(timing), pseudonyms.fingerprint)
        at_end.push_async_callback(ledger.close)
        return Opened(ledger, pseudonyms)

    course = Course(
        timing,
        PublicSettings(terms_of(SETTINGS.privacy, SETTINGS.stream)),
        lambda pseudonyms: intake_of(SETTINGS.stream, timing, pseudonyms),
        *(NoisyThreshold, Watcher(), board, lambda _: None),
    )
    pipeline = await resume(course, in_memory, at_end)
    pipeline.start_at(FLEET.first_step)
    return pipeline


async def take_pictures(url: str) -> None:
    browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if browser_path is None:
        raise SystemExit("there is no chromium: install Debian's, or name one with CHROMIUM")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=browser_path, args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        for scheme in ("light", "dark"):
            context = await browser.new_context(
                viewport=SIZE, color_scheme=scheme, timezone_id="UTC", device_scale_factor=1
            )
            page = await context.new_page()
            await page.goto(url)
            await page.wait_for_selector(f'#chart[data-steps="{STEPS}"]')
            await page.wait_for_selector('#state[data-state="live"]')
            await page.wait_for_timeout(500)  # the bars reach their lengths
            await page.screenshot(path=HERE / f"page-{scheme}.png", full_page=True)
            await context.close()
        await browser.close()


async def main() -> None:
    board = Board(timing_of(SETTINGS.stream))
    await run_fleet(board)
    server = HttpServer(public_app(board), "http", "127.0.0.1", 0)
    await server.start()
    try:
        await take_pictures(server.url)
    finally:
        board.end()
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
