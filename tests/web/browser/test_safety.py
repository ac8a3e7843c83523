"""Items are hostile strings, and the page is for everybody."""

import asyncio

import pytest
from playwright.async_api import expect

from streamer.web.ground_truth import TrueStep, Truth
from tests.web.browser.test_page import colour, live
from tests.web.making import DEADLINE, new_stream, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = {
    "script": ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    "image": ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
    "attribute": ('"><svg onload=alert(1)>', '"><svg onload=alert(1)>'),
    "entity": ("&lt;b&gt;&amp;", "&lt;b&gt;&amp;"),
    "template": ("${alert(1)}{{alert(1)}}", "${alert(1)}{{alert(1)}}"),
    "control": ("a\x00b\x07c\x1b[31md\x7f\x85", "a␀b␇c␛[31md␡⟨U+0085⟩"),
    "lines": ("one\ntwo\r\nthree\u2028", "one␊two␍␊three⟨U+2028⟩"),
    "backwards": ("photo\u202egnp.exe", "photo⟨U+202E⟩gnp.exe"),
    "isolate": ("\u2067abc", "⟨U+2067⟩abc"),
    "nothing": ("\u200b\ufeff", "⟨U+200B⟩⟨U+FEFF⟩"),
    "prototype": ("__proto__", "__proto__"),
    "constructor": ("constructor", "constructor"),
    "event": ("\n\nevent: reset\ndata: {}\n\n", "␊␊event: reset␊data: {}␊␊"),
    "hebrew": ("שגיאה 404", "שגיאה 404"),
    "family": ("👨‍👩‍👧", "👨‍👩‍👧"),
    "stacked": ("Z" + "\u0335\u0321\u0347" * 60, "Z" + "\u0335\u0321\u0347" * 60),
    "spaces": ("  a  b  ", "  a  b  "),
}


@pytest.mark.parametrize(("item", "shown"), HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_item_is_shown_as_text_everywhere(visit, item, shown):
    stream, truth = new_stream(), Truth()
    truth.tell(TrueStep(1, {item: 300}, fewer=0, singles=0))
    stream.report({item: 300})
    async with serving(stream.board, truth) as server, visit(server.url) as page:
        await live(page)
        await page.locator("summary").click()
        places = "#now-list .item", "#labels .item", "#table-body .item", "#truth-body .item"
        for place in places:
            found = page.locator(place)
            await expect(found).to_have_count(1)
            assert await found.evaluate("element => element.textContent") == shown
            assert await found.get_attribute("title") == shown
            assert await found.evaluate("element => element.childElementCount") == 0
        await page.locator("#chart").focus()
        await page.keyboard.press("ArrowLeft")
        assert shown in await page.locator("#readout").evaluate("element => element.textContent")
        # One row is as high as any other, whatever is stacked in it.
        height = (await page.locator("#now-list .hitter").bounding_box())["height"]
        assert height < 80


async def test_a_script_that_got_into_the_page_would_not_run(visit):
    stream = new_stream()
    stream.step(a=300)
    refused = ("Content Security Policy", "violates the following", "404")
    async with (
        serving(stream.board) as server,
        visit(server.url, complaints_about=refused) as page,
    ):
        await live(page)
        ran = await page.evaluate(
            """() => {
              const inline = document.createElement("script");
              inline.textContent = "window.ran = 1";
              const handler = document.createElement("div");
              handler.innerHTML = "<img src=x onerror='window.ran = 1'>";
              const foreign = document.createElement("script");
              foreign.src = "data:text/javascript,window.ran = 1";
              document.body.append(inline, handler, foreign);
              return new Promise((done) => setTimeout(() => done(window.ran ?? null), 300));
            }"""
        )
        assert ran is None
        sent = await page.evaluate(
            "fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => String(error))"
        )
        assert sent.startswith("TypeError")


def interval(stream, estimate):
    low, high = stream.period.interval("a", estimate)
    assert low < estimate < high
    return f"{low} to {high}"


async def test_the_map_can_be_read_with_the_keyboard(visit):
    stream = new_stream()
    for number in range(1, 4):
        stream.step(a=300 + number, b=200 + number)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await page.locator("#chart").focus()
        readout = page.locator("#readout")

        def said(second, item, users):
            ends = interval(stream, users)
            return f"00:00:{second} · {item} · about {users} users (95% interval: {ends})"

        await page.keyboard.press("ArrowLeft")
        await expect(readout).to_have_text(said("03", "a", 303))
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("ArrowDown")
        await expect(readout).to_have_text(said("02", "b", 202))
        await page.keyboard.press("Home")
        await expect(readout).to_have_text(said("01", "b", 201))
        await page.keyboard.press("Escape")
        await expect(readout).to_contain_text("Point at the chart")


async def test_everything_can_be_reached_with_the_tab_key_and_shows_that(visit):
    stream = new_stream()
    stream.report({f"item {number}": 300 for number in range(20)})
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        seen = []
        focused = """() => {
          const at = document.activeElement;
          const shown = at.matches("input") ? at.nextElementSibling : at;
          const name = at.id || at.value || at.textContent;
          return at === document.body ? null : [name, getComputedStyle(shown).outlineStyle];
        }"""
        await page.keyboard.press("Tab")
        while (at := await page.evaluate(focused)) is not None:
            seen.append(at)
            await page.keyboard.press("Tab")
        reached = [name for name, _ in seen]
        for name in ("Skip to the timeline", "now-more", "300", "chart", "rows-more"):
            assert name in reached
        assert "How this protects people" in reached
        assert "Latest steps as a table" in reached
        assert "/api/hitters" in reached
        assert [name for name, outline in seen if outline != "solid"] == []


async def test_a_screen_reader_finds_headings_a_list_a_state_and_a_table(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await expect(page.get_by_role("heading")).to_have_text(
            ["Trending now", "Timeline", "How this protects people"]
        )
        await expect(page.get_by_role("heading", level=1)).to_have_text("Trending now")
        await expect(page.get_by_role("status")).to_have_text("Live")
        await expect(page.locator("#now-list").get_by_role("listitem")).to_have_count(1)
        chart = page.get_by_role("application", name="Heat map of 1 item over 1 step")
        await expect(chart).to_be_visible()
        await page.locator("summary").click()
        cells = page.get_by_role("table").get_by_role("row").nth(1)
        await expect(cells.get_by_role("cell")).to_have_text(
            ["1 Jan, 00:00:02", "a", "", "", f"300 ({interval(stream, 300)})"]
        )
        await expect(page.get_by_role("columnheader")).to_have_text(
            ["Step", "Ended", "Item", "State", "Since", "Estimated users (95% interval)"]
        )
        # The whole of a row, in the order in which it is read.
        spoken = await page.locator("#now-list .value").text_content()
        assert spoken == f"300 users 95% interval: {interval(stream, 300)}"
        announced = await page.locator("#announcer").inner_text()
        assert announced == "", "what is there at the start is no news"


async def test_changes_are_announced_sparingly(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.clock.install()
        await page.reload()
        await live(page)
        announcer = page.locator("#announcer")
        stream.step(a=301, b=200)
        await expect(page.locator("#now-list .hitter")).to_have_count(2)
        await expect(announcer).to_have_text("")
        await page.clock.run_for(11_000)
        stream.step(a=302, b=201, c=100)
        await expect(announcer).to_have_text("2 new items; 3 items now.")


CONTRAST = """() => {
  const parts = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    if (!text.startsWith("color(")) return numbers;
    return numbers.map((part, place) => place < 3 ? part * 255 : part);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("noscript, .unseen")) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) low.push(`${contrast.toFixed(2)} ${walker.currentNode.textContent.trim()}`);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_text_can_be_read(visit, scheme):
    """At least 4.5 to 1, as WCAG 2 asks of text."""
    stream, truth = new_stream(epsilon=1.0), Truth()
    truth.tell(TrueStep(4, {"a": 280, "rare": 4}, fewer=70, singles=60))
    for number in range(4):
        stream.step(a=1_000 + 900 * number, b=5_000 - 900 * number, c=3_000)
    async with (
        serving(stream.board, truth) as server,
        visit(server.url, scheme=scheme) as page,
    ):
        await expect(page.locator("#truth-body tr")).to_have_count(4)
        await page.locator("summary").click()
        assert await page.evaluate(CONTRAST) == []


async def test_light_and_dark_follow_the_system_while_the_page_is_open(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        before = await colour(page, 0.9999)
        await page.emulate_media(color_scheme="dark")
        await page.wait_for_function(
            "getComputedStyle(document.body).backgroundColor === 'rgb(15, 20, 26)'"
        )
        async with asyncio.timeout(DEADLINE):
            while await colour(page, 0.9999) == before:
                await asyncio.sleep(0.05)


async def test_nothing_moves_for_those_who_asked_for_that(visit):
    stream = new_stream()
    stream.step(a=300)
    async with serving(stream.board) as server:
        for motion, seconds in (("no-preference", "0.3s"), ("reduce", "0s")):
            async with visit(server.url, reduced_motion=motion) as page:
                await live(page)
                fill = page.locator(".fill").first
                took = await fill.evaluate(
                    "element => getComputedStyle(element).transitionDuration"
                )
                assert took == seconds


async def test_long_items_are_cut_and_whole_in_their_title(visit):
    item = "url:/" + "x" * 1_000
    stream = new_stream()
    stream.report({item: 300})
    async with serving(stream.board) as server, visit(server.url) as page:
        shown = page.locator("#now-list .item")
        await expect(shown).to_have_attribute("title", item)
        assert await shown.evaluate("element => element.scrollWidth > element.clientWidth")
        style = await shown.evaluate("element => getComputedStyle(element).textOverflow")
        assert style == "ellipsis"
