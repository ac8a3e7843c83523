"""The live page in a real browser: what it shows, and when."""

import time

import pytest
from playwright.async_api import expect

from streamer.stream.publication import PublicSettings, published_before
from streamer.web.board import Board
from streamer.web.ground_truth import LABEL, TrueStep, Truth
from tests.stream.making import terms
from tests.web.browser.conftest import DESKTOP, PHONE
from tests.web.making import SECONDS, new_stream, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

# From the tallest items to nothing: what the page must stand on any screen.
LONG = {f"crash:{'VeryLongClassName.' * 40}{number}": 900 - number for number in range(5)}


def row(page, item):
    return page.locator("#now-list .hitter").filter(has=page.get_by_title(item, exact=True))


async def live(page):
    await expect(page.locator("#state")).to_have_attribute("data-state", "live")


async def sideways(page):
    return await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


async def colour(page, x_share, row_number=0):
    """The colour of the map in a row, at a share of its width."""
    return await page.evaluate(
        """([share, row]) => {
          const canvas = document.getElementById("canvas");
          const style = getComputedStyle(document.getElementById("chart"));
          const size = (name) => parseFloat(style.getPropertyValue(name));
          const y = size("--strip") + (row + 1) * size("--pitch") - size("--cell") / 2;
          const ratio = canvas.width / canvas.clientWidth;
          const x = Math.min(canvas.width - 2, share * canvas.width);
          const copy = new OffscreenCanvas(1, 1).getContext("2d");
          copy.drawImage(canvas, -Math.round(x), -Math.round(y * ratio));
          return [...copy.getImageData(0, 0, 1, 1).data].join();
        }""",
        [x_share, row_number],
    )


async def test_a_hitter_is_shown_within_two_seconds_of_its_step(visit):
    stream = new_stream()
    stream.step(before=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        for number in range(3):
            began = time.monotonic()
            stream.report({f"crash:{number}": 500})
            await expect(row(page, f"crash:{number}")).to_be_visible(timeout=2_000)
            assert time.monotonic() - began < 2
            await expect(page.locator("#now-list .hitter")).to_have_count(1)


async def test_a_row_tells_estimate_interval_threshold_and_trend(visit):
    stream = new_stream(epsilon=1.0)
    period = stream.period
    for estimate in (1_000, 2_000, 3_000, 4_500):
        stream.step(a=estimate)
    async with serving(stream.board) as server, visit(server.url) as page:
        text = await row(page, "a").inner_text()
        low, high = period.interval("a", 4_500)
        assert low < 4_500 < high
        assert f"4,500 users\n95% interval:\n{low:,} to {high:,}" in text
        assert "growing" in text
        assert "for 4 seconds" in text
        keys = await page.locator("#now-keys").inner_text()
        assert f"threshold: {period.plan.threshold} users; items below it are not shown" in keys
        assert "95% interval of the number of users, given that the item is shown" in keys
        assert await row(page, "a").locator(".spark .line").get_attribute("d")


@pytest.mark.parametrize("excess", [0, 40, 4_000])
async def test_the_line_on_a_bar_is_the_interval(visit, excess):
    """Near the threshold it reaches down to nobody, and is not centred on the estimate."""
    stream = new_stream(epsilon=1.0)
    estimate = stream.period.plan.threshold + excess
    low, high = stream.period.interval("a", estimate)
    stream.step(a=estimate)
    async with serving(stream.board) as server, visit(server.url) as page:
        line = row(page, "a").locator(".whisker")
        drawn = await line.evaluate("({ style }) => [style.left, style.width].map(parseFloat)")
        most = max(estimate, high)
        assert drawn == pytest.approx([100 * low / most, 100 * (high - low) / most], abs=0.01)


async def test_items_change_places_only_if_the_interval_says_so(visit):
    stream = new_stream(epsilon=1.0)
    first, second = 1_000, 1_000 + stream.period.margin
    while stream.period.interval("b", second)[0] > first:
        second -= 1
    async with serving(stream.board) as server, visit(server.url) as page:
        names = page.locator("#now-list .item")
        for b, order in ((900, ["a", "b"]), (second, ["a", "b"]), (second + 1, ["b", "a"])):
            stream.step(a=first, b=b)
            await expect(row(page, "b")).to_contain_text(f"{b:,} users")
            await expect(names).to_have_text(order)


async def test_the_timeline_grows_with_every_step(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.get_by_role("radio", name="1 minute").check()
        chart = page.locator("#chart")
        await expect(chart).to_have_attribute("data-steps", "1")
        empty = await colour(page, 57.5 / 60)
        for steps in (2, 3, 4):
            stream.step(a=300)
            await expect(chart).to_have_attribute("data-steps", str(steps))
        assert await colour(page, 57.5 / 60) != empty
        assert await colour(page, 57.5 / 60) == await colour(page, 59.5 / 60)
        await expect(page.locator("#labels li")).to_have_count(1)


async def test_an_outbreak_has_another_colour_than_what_is_always_there(visit):
    stream = new_stream()
    for number in range(30):
        stream.report({"always": 100, **({"outbreak": 5_000} if number > 25 else {})})
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.get_by_role("radio", name="1 minute").check()
        await expect(page.locator("#labels li").first).to_contain_text("outbreak")
        now, before = await colour(page, 59.5 / 60), await colour(page, 50.5 / 60)
        always = await colour(page, 59.5 / 60, row_number=1)
        assert len({now, before, always}) == 3


async def test_the_items_come_first_and_the_guarantee_is_one_line_after_them(visit):
    stream = new_stream(epsilon=1.0, delta=1e-6, contributions=10, period_steps=3600)
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        first = page.locator("main > section").first
        await expect(first.get_by_role("heading")).to_have_text(["Trending now"])
        await expect(page.locator("#promise-line")).to_have_text(
            "Differentially private: ε = 1, δ = 10⁻⁶ for everything one user does in 1 hour; "
            "each user has a budget of 10 reports."
        )
        items, line = first.locator("#now-list"), first.locator(".promise")
        item_box, line_box = await items.bounding_box(), await line.bounding_box()
        assert item_box["y"] + item_box["height"] <= line_box["y"]
        assert line_box["height"] < 30, "one line of text"


async def test_the_link_next_to_the_guarantee_leads_to_its_details(visit):
    stream = new_stream(epsilon=1.0, delta=1e-6, contributions=10, period_steps=3600)
    stream.report({f"item {number}": 300 for number in range(20)})
    async with serving(stream.board) as server, visit(server.url, PHONE) as page:
        await live(page)
        details = page.get_by_role("region", name="How this protects people")
        await expect(details).not_to_be_in_viewport()
        await page.get_by_role("link", name="How this protects people").press("Enter")
        await expect(details).to_be_in_viewport()
        await expect(details).to_be_focused()
        await expect(details.locator("#promise-sentence")).to_have_text(
            stream.board.promise.sentence
        )
        terms = await page.locator("#promise-terms").inner_text()
        for shown in ("ε\n1", "δ\n10⁻⁶", "k\n10", "1 hour, 3,600 steps", "1 second"):
            assert shown in terms
        await expect(details.locator("#promise-counted")).to_have_text(
            "Counted are users: of each user, the latest item in a step."
        )
        await expect(details.locator("#promise-charged")).to_have_text(
            "A user whose budget is spent stops counting until the next period. So an item that "
            "lasts can disappear from this page while users still have it."
        )


@pytest.mark.parametrize("trusted", [False, True])
async def test_the_page_says_whether_producers_are_trusted(visit, trusted):
    board = Board(SECONDS)
    board.started(PublicSettings(terms(), trusts_producers=trusted))
    async with serving(board) as server, visit(server.url) as page:
        await expect(page.locator("#promise-sentence")).to_have_text(board.promise.sentence)
        note = page.locator("#promise-trust")
        await expect(note).to_be_visible(visible=trusted)
        await expect(note).to_contain_text("Whoever sends the events also says when they arrived.")


async def test_the_page_says_what_cannot_be_known(visit):
    stream = new_stream()
    stream.step()
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await expect(page.locator("#now-empty")).to_have_text(
            "No item has enough users to be shown."
        )
        note = page.locator("#promise-unknown")
        await expect(note).to_have_text(
            "An item that is not shown may have no users, or up to about "
            f"{stream.board.promise.threshold}. How many it has cannot be known, from this page or "
            "from anything else that is published."
        )


async def test_before_the_first_step_the_page_waits_and_says_so(visit):
    stream = new_stream()
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#state-words")).to_have_text("Waiting for the first step")
        await expect(page.locator("#now-empty")).to_have_text(
            "Waiting for the first step to close."
        )
        stream.step(a=300)
        await expect(row(page, "a")).to_be_visible()
        await live(page)


async def test_an_item_that_is_gone_leaves_the_list_and_stays_in_the_timeline(visit):
    stream = new_stream()
    stream.step(a=300, b=200)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(row(page, "a")).to_be_visible()
        stream.step(b=200)
        await expect(row(page, "a")).to_have_count(0)
        await expect(page.locator("#labels .gone")).to_have_text("a")


async def test_many_hitters_are_shown_in_parts(visit):
    stream = new_stream()
    stream.report({f"item {number:02d}": 900 - number for number in range(40)})
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#now-list .hitter")).to_have_count(12)
        await page.get_by_role("button", name="Show 28 more", exact=True).click()
        await expect(page.locator("#now-list .hitter")).to_have_count(40)
        await page.get_by_role("button", name="Show 28 more items").click()
        await expect(page.locator("#labels li")).to_have_count(40)


async def test_a_long_past_is_drawn_and_stays_live(visit):
    """10,000 steps of 30 items: the whole can be looked at, and a step still comes in time."""
    stream = new_stream()
    history = [
        stream.decided(step, {f"item {item:02d}": 200 + (step * item) % 997 for item in range(30)})
        for step in range(1, 10_001)
    ]
    stream.board.restored(published_before(history, 10_000, stream.timing))
    stream.recorder.recorded = 10_000
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        chart = page.locator("#chart")
        await expect(chart).to_have_attribute("data-steps", "300")
        await page.get_by_role("radio", name="All").check()
        await expect(chart).to_have_attribute("data-steps", "10000", timeout=30_000)
        began = time.monotonic()
        stream.report({"fresh": 5_000})
        await expect(row(page, "fresh")).to_be_visible(timeout=2_000)
        assert time.monotonic() - began < 2
        await expect(page.locator("#labels")).to_contain_text("fresh")
        await page.get_by_role("radio", name="1 minute").check()
        await expect(chart).to_have_attribute("data-steps", "60")


async def test_a_quiet_past_is_shown_as_quiet(visit):
    stream = new_stream()
    stream.step(a=300)
    stream.report({"a": 300}, skipping=400)
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.get_by_role("radio", name="All").check()
        await expect(page.locator("#chart")).to_have_attribute("data-steps", "402")
        quiet, busy = await colour(page, 0.5), await colour(page, 0.9999)
        assert quiet != busy


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("steps", [1, 400])
async def test_the_page_fits_on_every_screen(visit, viewport, scheme, steps):
    stream, truth = new_stream(), Truth()
    for _ in range(steps):
        stream.report(LONG)
    truth.tell(TrueStep(steps, {**LONG, "x" * 1_000: 3}, fewer=9, singles=9))
    async with (
        serving(stream.board, truth) as server,
        visit(server.url, viewport, scheme) as page,
    ):
        await expect(page.locator("#now-list .hitter")).to_have_count(5)
        await expect(page.locator("#chart")).to_have_attribute("data-steps", str(min(steps, 300)))
        await expect(page.locator("#truth-body tr")).to_have_count(6)
        await page.locator("summary").click()
        await expect(page.locator("#table-body th")).to_have_count(min(steps, 50))
        assert await sideways(page) == 0
        for item in await page.locator("#now-list .item").all():
            box = await item.bounding_box()
            assert box["x"] + box["width"] <= viewport["width"]
            assert await item.get_attribute("title") in LONG


async def test_the_demo_shows_the_truth_set_apart(visit):
    stream, truth = new_stream(), Truth()
    truth.tell(TrueStep(1, {"a": 280, "rare": 4}, fewer=70, singles=60))
    stream.step(a=300)
    async with serving(stream.board, truth) as server, visit(server.url) as page:
        part = page.get_by_role("region", name=LABEL)
        await expect(part.locator("#truth-body tr")).to_have_count(2)
        rows = await part.locator("#truth-body tr").all_inner_texts()
        assert [line.split("\t") for line in rows] == [
            ["a", "280", "300", "+20", "shown"],
            ["rare", "4", "–", "", "correctly not shown"],
        ]
        await expect(part).to_contain_text(
            f"71 items below the threshold of {stream.board.promise.threshold} users are correctly "
            "not shown. "
            "60 of them belong to a single user."
        )
        border = await part.evaluate("element => getComputedStyle(element).borderStyle")
        assert border == "dashed"


async def test_a_real_source_has_no_truth_on_its_page(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(row(page, "a")).to_be_visible()
        assert "truth" not in (await page.content()).lower()


async def test_times_are_those_of_the_steps(visit):
    stream = new_stream(first=SECONDS.step_at(1_767_225_600_000 + 3_661_000))
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#now-step")).to_have_text(
            "1 item · last step 01:01:01 to 01:01:02"
        )


async def test_it_says_how_many_items_count_and_which_are_known(visit):
    stream = new_stream(items_per_step=3, declared_items=("crash:A", "crash:B"))
    stream.step(a=100)
    threshold = stream.board.promise.declared_threshold
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await expect(page.locator("#promise-counted")).to_have_text(
            "Counted are users: of each user, up to 3 different items, the latest ones, in a step. "
            f"2 items known in advance: these are shown from about {threshold} users on."
        )
