"""What is new, what lasts, what is gone: on the page, from what each step says."""

import pytest
from playwright.async_api import expect

from streamer.privacy.terms import Attention
from streamer.stream.publication import published_before
from streamer.stream.timing import StepTiming
from tests.web.browser.test_page import live, row, sideways
from tests.web.browser.test_safety import CONTRAST
from tests.web.making import SECONDS, new_stream_with_states, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOURS = StepTiming(3_600_000, epoch_ms=SECONDS.epoch_ms)


def gone_row(page, item):
    return page.locator("#gone-list .hitter").filter(has=page.get_by_title(item, exact=True))


def pass_steps(stream, steps):
    """Steps without a value and without a change."""
    for _ in range(steps):
        stream.step()


def value_of(stream, estimate):
    low, high = stream.period.interval("a", estimate)
    return f"{estimate:,} users 95% interval: {low:,} to {high:,}"


async def pixel(page, step_share, height, row_number=0):
    """The colour of a row of the timeline, at shares of its width and of the height of a mark."""
    return await page.evaluate(
        """([share, height, row]) => {
          const canvas = document.getElementById("canvas");
          const style = getComputedStyle(document.getElementById("chart"));
          const size = (name) => parseFloat(style.getPropertyValue(name));
          const top = size("--strip") + (row + 1) * size("--pitch") - size("--cell") - 1;
          const ratio = canvas.width / canvas.clientWidth;
          const copy = new OffscreenCanvas(1, 1).getContext("2d");
          const y = Math.round((top + height * size("--cell")) * ratio);
          copy.drawImage(canvas, -Math.round(share * canvas.width), -y);
          return [...copy.getImageData(0, 0, 1, 1).data].join();
        }""",
        [step_share, height, row_number],
    )


async def test_what_is_new_leads_for_five_steps_and_then_stands_by_its_size(visit):
    stream = new_stream_with_states()
    stream.step(big=2_000)
    pass_steps(stream, 9)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await expect(row(page, "big").locator(".about")).to_have_text("ongoingfor 10 seconds")
        stream.step(small=500)
        names, status = page.locator("#now-list .item"), row(page, "small").locator(".status")
        await expect(names).to_have_text(["small", "big"])
        await expect(status).to_have_text("● new")
        await expect(row(page, "small").locator(".time")).to_have_text("for 1 second")
        pass_steps(stream, 4)
        await expect(row(page, "small").locator(".time")).to_have_text("for 5 seconds")
        await expect(status).to_have_text("● new")
        await expect(names).to_have_text(["small", "big"])
        stream.step(big=2_000)
        await expect(status).to_have_text("ongoing")
        await expect(names).to_have_text(["big", "small"])


async def test_a_step_without_a_value_changes_nothing_but_times(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.step(a=510)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        shown = row(page, "a")
        value, age = shown.locator(".value"), shown.locator(".age")
        await expect(value).to_have_text(value_of(stream, 510))
        await expect(age).to_have_text("")
        await shown.evaluate("element => { element.isSame = true; }")
        height = (await shown.bounding_box())["height"]
        width = await shown.locator(".fill").evaluate("({ style }) => style.width")
        stream.step()
        await expect(age).to_have_text("measured 1 second ago")
        pass_steps(stream, 119)
        await expect(age).to_have_text("measured 2 minutes ago")
        await expect(shown.locator(".time")).to_have_text("for 2 minutes")
        await expect(value).to_have_text(value_of(stream, 510))
        await expect(shown.locator(".trend")).to_have_text("→ steady")
        assert await shown.evaluate("element => element.isSame"), "the same row"
        assert (await shown.bounding_box())["height"] == height
        assert await shown.locator(".fill").evaluate("({ style }) => style.width") == width


async def test_the_trend_is_that_of_the_values_whatever_lies_between_them(visit):
    stream = new_stream_with_states()
    for estimate in (500, 1_500, 2_500, 3_500):
        stream.step(a=estimate)
        pass_steps(stream, 3)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(row(page, "a").locator(".trend")).to_have_text("↑ growing")
        drawn = await row(page, "a").locator(".spark .line").get_attribute("d")
        assert (drawn.count("M"), drawn.count("L")) == (1, 3)


async def test_a_gone_item_is_shown_as_such_and_fades(visit):
    stream = new_stream_with_states()
    stream.step(a=500, b=600)
    pass_steps(stream, 9)
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await expect(page.locator("#gone")).to_be_hidden()
        stream.report({}, gone=["a"])
        gone = gone_row(page, "a")
        await expect(gone.locator(".about")).to_have_text("✕ gonejust now, after 10 seconds")
        await expect(page.get_by_role("heading", name="Gone in the last 5 minutes")).to_be_visible()
        await expect(page.locator("#now-list .item")).to_have_text(["b"])
        await expect(gone.locator(".value")).to_have_text(value_of(stream, 500))
        left = "element => Number(element.style.getPropertyValue('--left'))"
        assert await gone.evaluate(left) == 1
        pass_steps(stream, 150)
        await expect(gone.locator(".time")).to_have_text("3 minutes ago, after 10 seconds")
        assert await gone.evaluate(left) == 0.5
        await expect(gone.locator(".bar")).to_have_css("opacity", "0.45")
        pass_steps(stream, 149)
        await expect(gone.locator(".time")).to_have_text("5 minutes ago, after 10 seconds")
        stream.step()
        await expect(page.locator("#gone")).to_be_hidden()
        await expect(page.locator("#now-list .item")).to_have_text(["b"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_states_can_be_read_in_any_colours(visit, scheme):
    """The drawings of a gone item fade, its text does not."""
    stream = new_stream_with_states()
    stream.step(gone=500, lasts=900)
    stream.report({}, gone=["gone"])
    stream.report({}, skipping=290)
    stream.step(back=700)
    stream.report({}, gone=["back"])
    stream.step(new=700, back=800)
    async with serving(stream.board) as server, visit(server.url, scheme=scheme) as page:
        await expect(row(page, "back").locator(".status")).to_have_text("↺ back")
        await expect(row(page, "new").locator(".status")).to_have_text("● new")
        await expect(gone_row(page, "gone").locator(".status")).to_have_text("✕ gone")
        await page.locator("summary").click()
        assert await page.evaluate(CONTRAST) == []
        assert await sideways(page) == 0


async def test_nothing_fades_slowly_for_those_who_asked_for_no_motion(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.report({}, gone=["a"])
    async with serving(stream.board) as server:
        for motion, seconds in (("no-preference", "1s"), ("reduce", "0s")):
            async with visit(server.url, reduced_motion=motion) as page:
                bar = gone_row(page, "a").locator(".bar")
                await expect(bar).to_have_css("transition-duration", seconds)


async def test_an_item_that_is_back_is_no_longer_gone(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.report({}, gone=["a"])
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(gone_row(page, "a")).to_be_visible()
        stream.step(a=600)
        await expect(row(page, "a").locator(".status")).to_have_text("↺ back")
        await expect(row(page, "a").locator(".time")).to_have_text("for 1 second")
        await expect(page.locator("#gone")).to_be_hidden()


async def test_of_many_gone_items_the_latest_are_shown(visit):
    stream = new_stream_with_states()
    items = [f"item {number}" for number in range(8)]
    stream.report(dict.fromkeys(items, 500))
    for item in items:
        stream.report({}, gone=[item])
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#gone-list .item")).to_have_text(items[:2:-1])
        await expect(page.locator("#now-empty")).to_be_visible()


async def test_with_long_steps_a_gone_item_is_shown_for_five_of_them(visit):
    stream = new_stream_with_states(timing=HOURS)
    stream.step(a=500)
    stream.report({}, gone=["a"])
    pass_steps(stream, 4)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#gone-heading")).to_have_text("Gone in the last 5 hours")
        await expect(gone_row(page, "a").locator(".time")).to_have_text("4 hours ago, after 1 hour")
        stream.step()
        await expect(page.locator("#gone")).to_be_hidden()


async def test_the_timeline_has_bands_with_marks(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    pass_steps(stream, 20)
    stream.step(a=2_000)
    pass_steps(stream, 20)
    stream.report({}, gone=["a"])
    pass_steps(stream, 17)
    edge, middle = 0.1, 0.5
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.get_by_role("radio", name="1 minute").check()
        await expect(page.locator("#chart")).to_have_attribute("data-steps", "60")

        async def at(step, height):
            return await pixel(page, (step - 0.5) / 60, height)

        nothing = await at(55, middle)
        assert await at(1, edge) == await at(1, middle) != nothing, "a mark"
        assert await at(10, edge) == nothing, "no mark"
        assert await at(10, middle) == await at(1, middle), "a band in the colour of the last value"
        assert await at(22, edge) == await at(22, middle) != await at(1, middle)
        assert await at(30, middle) == await at(22, middle)
        assert await at(55, edge) == nothing
        ends = {await pixel(page, (42 + part / 20) / 60, edge) for part in range(20)}
        assert ends - {nothing}, "a line where it is gone"
        await expect(page.locator("#labels .gone")).to_have_text("agone")


async def test_what_the_timeline_says_of_a_step(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    pass_steps(stream, 3)
    stream.report({}, gone=["a"])
    stream.step()
    low, high = stream.period.interval("a", 500)
    users = f"about 500 users (95% interval: {low} to {high})"
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        await page.locator("#chart").focus()
        for said in (
            "00:00:06 · a · not shown, so not known",
            "00:00:05 · a · gone",
            f"00:00:04 · a · ongoing, {users}, measured 3 steps earlier",
            f"00:00:03 · a · ongoing, {users}, measured 2 steps earlier",
            f"00:00:02 · a · ongoing, {users}, measured 1 step earlier",
            f"00:00:01 · a · new, {users}",
        ):
            await page.keyboard.press("ArrowLeft")
            await expect(page.locator("#readout")).to_have_text(said)
        await page.locator("#chart").hover(position={"x": 1_000, "y": 10})
        await expect(page.locator("#strip-most")).to_have_text(", up to 1")


async def test_the_table_has_states_and_since_when(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.step(b=600)
    stream.report({}, gone=["a"])
    low, high = stream.period.interval("b", 600)
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.locator("summary").click()
        rows = await page.locator("#table-body tr").all_inner_texts()
        first, second, third = (f"1 Jan, 00:00:0{second}" for second in (1, 2, 3))
        assert [line.split("\t") for line in rows][:4] == [
            ["3", "1 Jan, 00:00:04", "a", "gone", first, "–"],
            ["b", "ongoing", second, f"no new value since {second}"],
            ["2", third, "a", "ongoing", first, f"no new value since {first}"],
            ["b", "new", second, f"600 ({low} to {high})"],
        ]


async def test_an_item_whose_last_value_is_not_known_is_there(visit):
    stream = new_stream_with_states()
    history = [stream.decided(step, {"a": 500} if step == 1 else {}) for step in range(1, 9)]
    stream.board.restored(published_before(history[1:], 8, stream.timing))
    async with serving(stream.board) as server, visit(server.url) as page:
        value = row(page, "a").locator(".value")
        await expect(value).to_have_text("there last value not loaded", use_inner_text=True)
        await expect(row(page, "a").locator(".fill")).to_be_hidden()
        await expect(row(page, "a").locator(".time")).to_have_text("for 8 seconds")
        await page.locator("#chart").focus()
        await page.keyboard.press("ArrowLeft")
        await expect(page.locator("#readout")).to_have_text(
            "00:00:08 · a · there; its last value is older than what is loaded"
        )
        assert await pixel(page, 0.998, 0.5) != await pixel(page, 0.998, 0.1)


async def test_data_of_0_1_0_goes_on_with_states(visit):
    stream = new_stream_with_states()
    rule, stream.rule = stream.rule, None
    stream.step(a=500)
    stream.step(a=510)
    stream.step()
    stream.rule = rule
    stream.step(a=520)
    stream.step()
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(row(page, "a").locator(".value")).to_have_text(value_of(stream, 520))
        await page.locator("summary").click()
        texts = await page.locator("#table-body tr").all_inner_texts()
        states = [line.split("\t")[2:5] for line in texts]
        since = "1 Jan, 00:00:04"
        assert states == [
            ["a", "ongoing", since],
            ["a", "new", since],
            ["no items"],
            ["a", "", ""],
            ["a", "", ""],
        ]
        await page.locator("#chart").focus()
        await page.keyboard.press("Home")
        await expect(page.locator("#readout")).to_contain_text("00:00:01 · a · about 500 users")


async def test_where_every_item_is_asked_for_its_value_none_is_called_gone(visit):
    stream = new_stream_with_states(Attention.EVERY_STEP)
    stream.step(a=500, b=600)
    stream.step(b=600)
    async with serving(stream.board) as server, visit(server.url) as page:
        await expect(page.locator("#now-list .item")).to_have_text(["b"])
        await expect(page.locator("#gone")).to_be_hidden()
        await expect(page.locator("#labels .gone")).to_have_text("a")
        await expect(page.locator("#promise-charged")).to_contain_text("an item that lasts can")


async def test_the_page_says_what_counts_against_a_budget(visit):
    stream = new_stream_with_states(contributions=10)
    stream.step(a=500)
    promise = stream.board.promise
    loud = promise.threshold + promise.loud_excess
    async with serving(stream.board) as server, visit(server.url) as page:
        await live(page)
        charged = page.locator("#promise-charged")
        await expect(charged).to_have_text(
            "What counts against the budgets of an item's users: each number that is shown (1, or "
            f"0.2 from {loud} users on), and that the item is gone (1). That it is still there "
            "costs nothing, so an item that lasts stays on this page. Its number is measured after "
            f"1, 2, 4 steps and so on, then every {promise.value_every_steps} seconds. A user "
            "whose budget is spent stops counting until the next period."
        )
        await expect(page.locator("#promise-threshold")).to_have_text(
            f"threshold: {promise.threshold} users; items below it are not shown, except those "
            f"that were above it and still have about {promise.exit_threshold}"
        )


async def test_items_that_come_and_go_are_announced(visit):
    stream = new_stream_with_states()
    stream.step(a=500)
    async with serving(stream.board) as server, visit(server.url) as page:
        await page.clock.install()
        await page.reload()
        await live(page)
        await page.clock.run_for(11_000)
        stream.report({"b": 600}, gone=["a"])
        await expect(page.locator("#announcer")).to_have_text(
            "1 new item, 1 item gone; 1 item now."
        )
