"""A real browser: Debian's Chromium, or the one that CHROMIUM names, driven by Playwright.

Where there is none the tests are skipped with one line that says why; with CI=true they
fail instead. Whatever a test does, the page must not complain and must ask no other host.
"""

import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "there is no chromium: install Debian's package, or name one with CHROMIUM"
PHONE, DESKTOP = {"width": 375, "height": 740}, {"width": 1440, "height": 900}


def chromium():
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def pytest_collection_modifyitems(items):
    skipped = pytest.mark.skip(f"NO BROWSER, ITS TESTS ARE SKIPPED: {MISSING}")
    missing = chromium() is None and os.environ.get("CI") != "true"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if missing:
                item.add_marker(skipped)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    path = chromium()
    if path is None:
        pytest.fail(f"no browser for the tests: {MISSING}")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=path, args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        yield launched
        await launched.close()


@dataclass
class Watched:
    """What a page did that it should not."""

    complaints: list = field(default_factory=list)
    hosts: set = field(default_factory=set)
    dialogs: list = field(default_factory=list)

    def watch(self, page):
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("dialog", self._dialog)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        await dialog.dismiss()


@pytest.fixture
def visit(browser):
    """Open a page; when the test is done with it, it must have behaved."""

    @asynccontextmanager
    async def visited(url, viewport=DESKTOP, scheme="light", complaints_about=(), **options):
        context = await browser.new_context(
            viewport=viewport, color_scheme=scheme, timezone_id="UTC", **options
        )
        page, watched = await context.new_page(), Watched()
        watched.watch(page)
        try:
            await page.goto(url)
            yield page
        finally:
            await context.close()
        left = [
            complaint
            for complaint in watched.complaints
            if not any(allowed in complaint for allowed in complaints_about)
        ]
        assert (left, watched.dialogs) == ([], [])
        assert watched.hosts == {urlsplit(url).netloc}

    return visited
