"""What a terminal shows of a stream: in any size, of any items, without acting on them."""

import io
import re

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from rich.console import Console

from streamer.monitors.states import State
from streamer.stream.timing import format_rfc3339
from streamer.terminal.charts import History, Presence, bar, sparkline
from streamer.terminal.live_view import LiveView
from streamer.terminal.plain_view import PlainView
from streamer.terminal.scene import GroundTruth, Scene, visible
from streamer.terminal.standing import brief
from streamer.web.answers import (
    ClosedStep,
    Current,
    CurrentHitter,
    LastValue,
    Promise,
    Published,
    Result,
    Trend,
)
from streamer.web.ground_truth import LABEL, TrueItem, TruthAnswer

SIZES = [(80, 24), (40, 12), (60, 18), (100, 16), (200, 60), (20, 5), (10, 1)]
HOSTILE = {
    "escape": "crash\x1b[2J\x1b]0;owned\x07",
    "lines": "one\ntwo\rthree\tfour\x0b",
    "markup": "[bold red]not a style[/] [link=file:///]x[/link]",
    "direction": "abc\u202egnp.exe\u2066",
    "emoji code": "version :boom: 7",
    "joined": "a\u200db\ufeffc",
    "wide": "搜索" * 60,
    "stacked": "z" + "\u0301" * 300,
    "long": "x" * 5_000,
    "c1": "csi \x9b31m",
}


def promise(**changes):
    terms = {"epsilon": 1.0, "delta": 1e-6, "contributions": 30, "neighbours": "replace"}
    steps = {"step_seconds": 1.0, "period_steps": 600, "refresh_steps": 3}
    noise = {"threshold": 1_050, "margin": 150, "noise_scale": 50.2}
    return Promise(
        sentence="What is promised.", period=3, first=0, **terms | steps | noise | changes
    )


def clock(step):
    return format_rfc3339(1_767_225_600_000 + 1000 * step)


def numbers(estimate):
    ends = {"low": estimate - 160, "high": estimate + 140}
    return {"estimate": estimate, **ends, "margin": 150, "threshold": 1_050}


def hitter(item, estimate, step=9, trend=Trend.STEADY, **changes):
    """As a service of 0.1.0 sends it."""
    times = {"step": step, "start": clock(step), "end": clock(step + 1), "since": 0}
    terms = {"epsilon": 1.0, "delta": 1e-6, "contributions": 10, "period": 3}
    found = times | numbers(estimate) | terms | changes
    return CurrentHitter(item=item, trend=trend, **found)


def there(item, since, step=9, value=None, valued_at=0):
    """Without a value in this step; with the last one, if that is known."""
    last = None
    if value is not None:
        ends = {"low": value - 160, "high": value + 140}
        last = LastValue(step=valued_at, end=clock(valued_at + 1), estimate=value, **ends)
    none = {"estimate": None, "low": None, "high": None, "value": last, "valued_at": valued_at}
    return replace(hitter(item, 0, step), since=since, state=State.ONGOING, **none)


def closed(step, first=None, **estimates):
    """As a service of 0.1.0 sends it."""
    results = tuple(Result(item=item, **numbers(each)) for item, each in estimates.items())
    return ClosedStep(step, clock(step), clock(step + 1), len(results), 3, first, results)


def said(item, state, since=0, estimate=None):
    """What a step says about an item."""
    ends = {"low": estimate and estimate - 160, "high": estimate and estimate + 140}
    found = numbers(0) | {"estimate": estimate, **ends, "state": state, "since": since}
    return Result(item=item, **found)


def step_of(step, *results):
    return ClosedStep(step, clock(step), clock(step + 1), len(results), 3, None, results)


def scene_of(*hitters, steps=(), **changes):
    scene = Scene(
        **{"title": "streamer watch", "subject": "somewhere", "place": "Ctrl-C ends."} | changes
    )
    last = steps[-1].step if steps else 9
    current = Current(last, clock(last), clock(last + 1), hitters)
    scene.guarantee(promise())
    scene.published(Published(tuple(steps), current))
    return scene


def truth_of(*items, running=()):
    answer = TruthAnswer(LABEL, 9, 1_050, items, withheld=11_143, singles=8_862)
    return GroundTruth(answer, frozenset({"crash"}), frozenset(running), 0.015, left_out=0)


def text_of(scene, width=80, height=24):
    return [line.plain for line in LiveView(scene).lines(width, height)]


def full_scene():
    """With all there is to show, and more than fits."""
    hitters = [
        hitter(f"{name}: {item}", 9_000, trend=t) for name, item in HOSTILE.items() for t in Trend
    ]
    steps = [closed(step, **dict.fromkeys(HOSTILE.values(), 1_000 + step)) for step in range(99)]
    truth = truth_of(*(TrueItem(item, 5_000, 9, 5_000, None, True) for item in HOSTILE.values()))
    return scene_of(*hitters, steps=steps, truth=lambda: truth)


class TestTheView:
    def test_it_lists_trending_items_with_estimate_interval_and_trend(self):
        scene = scene_of(
            hitter("crash", 5_932, trend=Trend.GROWING),
            hitter("slow", 1_220, trend=Trend.SHRINKING),
        )
        lines = text_of(scene)
        crash, slow = r" +5,932 \(5,772–6,072\) +↑ █+ +for 10s +crash$", r"↓ █.? +for 10s +slow$"
        assert any(re.match(crash, line) for line in lines)
        assert any(re.match(r" +1,220 \(1,060–1,360\) +" + slow, line) for line in lines)
        [heading] = [line for line in lines if line.startswith("Trending now")]
        assert heading.startswith("Trending now, users (95% interval, age) ")
        assert heading.endswith("threshold: about 1,050 users")
        note = "  Items with fewer than about 1,050 users are not shown and cannot be known."
        assert note in lines

    def test_columns_stand_below_each_other_up_to_six_digits(self):
        lines = text_of(scene_of(*(hitter("x", 10**digits) for digits in (3, 4, 5)), steps=()))
        assert len({line.index("→") for line in lines if "→" in line}) == 1

    def test_large_numbers_are_never_cut(self):
        [line] = [line for line in text_of(scene_of(hitter("x", 12_345_678))) if "12,345" in line]
        assert " (12,345,518–12,345,818) " in line

    def test_a_narrow_terminal_has_no_intervals_but_items(self):
        lines = text_of(scene_of(hitter("crash:NPE", 5_932)), width=40)
        assert "Trending now, users" in [line.rstrip() for line in lines]
        assert any(re.match(r" +5,932 → █+ +for 10s +crash:NPE$", line) for line in lines)

    def test_a_report_of_0_1_0_has_the_margin_of_its_noise(self):
        old = hitter("crash", 5_932, low=UNSET, high=UNSET)
        line = r" +5,932 ± 150 +→ █+ +for 10s +crash$"
        assert any(re.match(line, each) for each in text_of(scene_of(old)))

    def test_it_shows_the_guarantee_and_the_time(self):
        lines = text_of(scene_of(hitter("crash", 5_932)))
        assert lines[0].endswith("00:00:10 UTC")
        assert "Guarantee  ε = 1, δ = 1e-6 for everything one user does in 10 minutes." in lines
        said = "  Each user has a budget of 30 reports; each report is valid for 3 seconds."
        assert said in lines

    def test_without_a_guarantee_it_is_that_of_the_reports(self):
        scene = scene_of(hitter("crash", 5_932))
        scene.promise = None
        text = "\n".join(text_of(scene))
        assert "ε = 1, δ = 1e-6 for everything one user does in one budget period." in text
        assert "a budget of 10 reports." in text
        scene.reset()
        assert "Known with the first report." in "\n".join(text_of(scene))

    def test_it_says_so_when_there_is_nothing_or_not_yet_anything(self):
        assert "  no items" in text_of(scene_of())
        waiting = Scene("streamer demo", "", "")
        assert any("waiting for the first step to close" in line for line in text_of(waiting))

    def test_bars_are_on_the_scale_of_the_time_that_is_shown(self):
        scene = scene_of(
            hitter("crash", 4_000), steps=[closed(1, crash=8_000), closed(9, crash=4_000)]
        )
        [line] = [line for line in text_of(scene, width=120) if "4,000 (3,840–4,140)" in line]
        [whole] = [line for line in text_of(full_scene_of_now(), width=120) if "item 0" in line][:1]
        assert line.count("█") == whole.count("█") // 2

    def test_the_past_has_a_row_for_each_item_those_of_now_first(self):
        steps = [closed(0, old=2_000), closed(3, crash=900), closed(6, crash=8_000)]
        lines = text_of(scene_of(hitter("crash", 8_000), steps=steps))
        key = "  ▅ value  ━ still there  · not shown"
        start = lines.index(f"Shown since 00:00:00 UTC{key}")
        assert [line.split() for line in lines[start + 1 : start + 3]] == [
            ["·▁█", "crash"],
            ["▂··", "old"],
        ]

    def test_trouble_stands_in_the_first_line(self):
        scene = scene_of(hitter("crash", 5_932))
        scene.state("no broker answers")
        assert text_of(scene)[0].endswith("waiting: no broker answers")
        scene.state("")
        assert "waiting" not in text_of(scene)[0]

    def test_ground_truth_is_labelled_and_only_there_if_it_is_a_simulation(self):
        truth = truth_of(
            TrueItem("usual", 9_000, 9, 9_000, None, False),
            TrueItem("crash", 6_012, 5, 5_950, 5_932, True),
        )
        lines = text_of(scene_of(hitter("crash", 5_932), truth=lambda: truth))
        start = lines.index("Ground truth, known only because this is a simulation")
        assert lines[start + 1].split() == [
            *("outbreak", "6,012", "users,", "shown", "as", "5,932", "crash")
        ]
        assert lines[start + 2].split() == ["usual", "9,000", "users,", "not", "shown", "usual"]
        assert "11,143 items with fewer users are correctly not shown; 8,862" in lines[start + 3]
        assert lines[start + 4] == "  1.5% of users have no reports left"
        real = "\n".join(text_of(scene_of(hitter("crash", 5_932))))
        assert "truth" not in real.lower()

    def test_more_than_fits_is_counted(self):
        lines = text_of(scene_of(*(hitter(f"item {n}", 9_000 - n) for n in range(1_000))))
        assert sum("  item " in line for line in lines) == 6
        assert any(line.strip() == "and 994 more" for line in lines)

    @pytest.mark.parametrize(("width", "height"), SIZES)
    def test_it_fits_into_any_terminal(self, width, height):
        for scene in (full_scene(), scene_of(), Scene("streamer demo", "x" * 300, "y" * 300)):
            lines = LiveView(scene).lines(width, height)
            assert len(lines) <= height
            assert all(line.cell_len <= width for line in lines)

    def test_the_layout_depends_on_the_size_alone(self):
        def parts(scene):
            return [n for n, line in enumerate(text_of(scene)) if line[:6] in {"Trendi", "Shown "}]

        assert parts(scene_of(hitter("crash", 5_000), steps=[closed(9)])) == parts(
            full_scene_of_now()
        )


class TestStates:
    def test_a_value_that_was_not_measured_in_this_step_has_its_age(self):
        scene = scene_of(there("crash", since=1, value=5_000, valued_at=6), steps=[closed(9)])
        [line] = [line for line in text_of(scene) if line.endswith("crash")]
        assert re.match(r" +5,000 \(4,840–5,140\) +3s ago +→ █+ +for 9s +crash$", line)

    def test_a_value_of_this_step_has_none(self):
        scene = scene_of(there("crash", since=1, value=5_000, valued_at=9), steps=[closed(9)])
        assert not any(" ago" in line for line in text_of(scene))

    def test_an_item_whose_last_value_is_not_known_is_there(self):
        [line] = [line for line in text_of(scene_of(there("crash", since=1))) if "crash" in line]
        assert re.match(r" +– +→ +for 9s +crash$", line)

    def test_what_is_new_leads_for_a_few_steps(self):
        begun = [said("small", State.NEW, 5), said("again", State.BACK, 5), said("big", State.NEW)]

        def order(through):
            now = [
                there("big", since=0, value=9_000, step=through),
                there("small", since=5, value=1_100, step=through),
                there("again", since=5, value=1_060, step=through),
            ]
            lines = text_of(scene_of(*now, steps=[step_of(5, *begun), closed(through)]))
            signs = r" +[\d,]+ \(.+\) .*([●↺→]) .+ (\S+ \d+s) +(\w+)$"
            return [found.groups() for line in lines if (found := re.match(signs, line))]

        assert order(9) == [
            ("●", "new 5s", "small"),
            ("↺", "back 5s", "again"),
            ("→", "for 10s", "big"),
        ]
        assert [item for _, _, item in order(10)] == ["big", "small", "again"]

    def test_an_item_that_has_gone_is_shown_for_a_while_after_those_that_are_there(self):
        before = [step_of(0, said("lost", State.NEW, estimate=2_000)), step_of(1)]
        gone = step_of(4, said("lost", State.GONE))

        def lines(through, *later):
            steps = [*before, gone, *later, closed(through)]
            return text_of(scene_of(there("crash", since=0, value=5_000), steps=steps))

        shown = lines(9)
        [place] = [n for n, line in enumerate(shown) if "✕" in line]
        assert re.match(r" +2,000 \(1,840–2,140\) +9s ago +✕ █.+ gone 5s +lost$", shown[place])
        assert shown[place - 1].endswith("crash")
        assert any("✕" in line for line in lines(303))
        assert not any("✕" in line for line in lines(304))
        back = step_of(8, said("lost", State.BACK, since=8, estimate=1_500))
        assert not any("✕" in line for line in lines(9, back))

    def test_with_long_steps_a_gone_item_is_shown_for_some_of_them(self):
        steps = [step_of(4, said("lost", State.GONE))]
        for through, shown in ((8, True), (9, False)):
            scene = scene_of(steps=[*steps, closed(through)])
            scene.guarantee(promise(step_seconds=3_600.0))
            assert any("✕" in line for line in text_of(scene)) == shown

    def test_many_gone_items_leave_room_for_what_is_there(self):
        gone = step_of(9, *(said(f"lost {n}", State.GONE) for n in range(50)))
        lines = text_of(scene_of(*(there(f"item {n}", since=0) for n in range(50)), steps=[gone]))
        assert sum("✕" in line for line in lines) == 2
        assert sum(" item " in line for line in lines) >= 4

    def test_the_latest_gone_item_comes_first(self):
        steps = [step_of(n, said(f"lost {n}", State.GONE)) for n in range(9)]
        lines = text_of(scene_of(steps=steps))
        assert [line[-6:] for line in lines if "✕" in line] == ["lost 8", "lost 7"]

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            *((0, "0s"), (59, "59s"), (60, "1m"), (90, "90s"), (120, "2m"), (3_600, "1h")),
            *((5_400, "90m"), (7_200, "2h"), (86_400, "1d"), (90_000, "25h"), (900_000, "10d")),
        ],
    )
    def test_times_are_brief(self, seconds, words):
        assert brief(seconds) == words

    def test_the_past_has_bands_where_an_item_is_there(self):
        steps = [
            step_of(0, said("crash", State.NEW, estimate=8_000)),
            step_of(1, said("crash", State.ONGOING)),
            step_of(2, said("crash", State.ONGOING, estimate=900)),
            step_of(3, said("crash", State.GONE)),
        ]
        scene = scene_of(steps=steps)
        scene.guarantee(promise(attention="changes"))
        assert any(line.split() == ["█━▁·", "crash"] for line in text_of(scene))

    def test_items_without_a_value_are_kept_by_their_last_one(self):
        scene = scene_of(steps=[closed(8, **{f"item {n}": 1_000 + n for n in range(300)})])
        quiet = step_of(9, *(said(f"item {n}", State.ONGOING) for n in range(300)))
        scene.published(Published((quiet,), None))
        kept = {result.item for result in scene.steps[-1].results}
        assert kept == {f"item {n}" for n in range(100, 300)}

    def test_the_guarantee_says_what_is_free(self):
        scene = scene_of()
        scene.guarantee(promise(attention="changes"))
        lines = text_of(scene)
        assert (
            "  Each user has a budget of 30 reports; that an item is still there is free." in lines
        )
        note = "  New items with fewer than about 1,050 users are not shown and cannot be known."
        assert note in lines


def full_scene_of_now():
    return scene_of(*(hitter(f"item {n}", 9_000) for n in range(50)), steps=[closed(9)])


class TestHostileItems:
    @pytest.mark.parametrize("item", HOSTILE.values(), ids=HOSTILE)
    def test_a_terminal_is_sent_nothing_of_theirs_but_letters(self, item):
        truth = truth_of(TrueItem(item, 5_000, 9, 5_000, None, True), running={item})
        scene = scene_of(
            hitter(item, 5_000), steps=[closed(9, **{item: 5_000})], truth=lambda: truth
        )
        written = io.StringIO()
        console = Console(file=written, force_terminal=True, width=80, height=24, color_system=None)
        console.print(LiveView(scene))
        assert all(letter.isprintable() or letter == "\n" for letter in written.getvalue())
        lines = []
        PlainView(scene, lines.append).draw()
        assert all(line.isprintable() for line in lines)

    def test_markup_is_text(self):
        lines = LiveView(scene_of(hitter("[bold]x[/]", 5_000))).lines(80, 24)
        assert any(line.plain.endswith("[bold]x[/]") for line in lines)

    @pytest.mark.parametrize(
        ("item", "shown"),
        [
            ("plain ✓ größe 運動靴", "plain ✓ größe 運動靴"),
            ("\x1b[2J", "\\x1b[2J"),
            ("a\nb", "a\\nb"),
            ("\u202eabc", "\\u202eabc"),
            ("\U000e0001", "\\U000e0001"),
            ("x" * 5_000, "x" * 400 + "…"),
        ],
    )
    def test_what_is_not_printable_is_escaped(self, item, shown):
        assert visible(item) == shown


class TestCharts:
    @pytest.mark.parametrize(
        ("value", "drawn"), [(8, "████"), (4, "██"), (1, "▌"), (5, "██▌"), (0, "▏"), (80, "████")]
    )
    def test_a_bar_is_as_long_as_its_value(self, value, drawn):
        assert bar(value, 1, 8, 4).plain == drawn.ljust(4)

    def test_a_sparkline_has_a_letter_for_each_value_and_for_presence(self):
        row = [None, *map(Presence, (0, 40, 79, 80)), Presence()]
        assert sparkline(row, 80).plain == "·▁▄██━"

    def test_a_column_holds_what_was_reported_while_an_item_rested(self):
        steps = [closed(n, **({"x": 100 + n} if n % 3 == 0 else {})) for n in range(10)]
        for last in range(1, 11):
            rows = History.of(steps[:last], 20, refresh=3).rows
            assert None not in rows["x"], last

    def test_runs_of_empty_steps_take_their_room(self):
        history = History.of([closed(0, x=5), closed(100, first=1), closed(101, x=6)], 500, 1)
        assert history.rows["x"] == [Presence(5), *[None] * 100, Presence(6)]
        assert History.of([closed(0, x=5), closed(100, first=1)], 50, 1).rows == {}
        assert History.of([], 50, 1) is None

    def test_an_item_without_a_value_is_there_and_not_zero(self):
        states = (State.NEW, State.ONGOING, State.ONGOING, State.GONE)
        steps = [
            step_of(n, said("x", state, estimate=900 if n in (0, 2) else None))
            for n, state in enumerate(states)
        ]
        history = History.of(steps, 20, 1)
        assert history.rows["x"] == [Presence(900), Presence(), Presence(900), None]
        assert History.of(steps, 20, 2).rows["x"] == [Presence(900), Presence(900)]
        assert history.most == 900


class TestPlainLines:
    @staticmethod
    def told(scene):
        lines = []
        view = PlainView(scene, lines.append)
        scene.changed = view.draw
        return lines

    def test_each_report_is_told_once(self):
        scene = Scene("streamer watch", "somewhere", "Ctrl-C ends.")
        lines = self.told(scene)
        scene.guarantee(promise())
        for step in range(3):
            current = Current(step, clock(step), clock(step + 1), (hitter("crash", 2_000 + step),))
            scene.published(Published((closed(step, crash=2_000 + step),), current))
        assert lines == [
            "streamer watch: somewhere",
            "Ctrl-C ends.",
            "guarantee: ε = 1, δ = 1e-6 for everything one user does in 10 minutes. "
            "Each user has a budget of 30 reports; each report is valid for 3 seconds.",
            "00:00:01 UTC      2,000 users (1,840–2,140)               crash",
            "00:00:02 UTC      2,001 users (1,841–2,141)               crash",
            "00:00:03 UTC      2,002 users (1,842–2,142)               crash",
        ]

    def test_a_line_is_written_for_what_changes_and_for_values(self):
        scene = Scene("streamer watch", "somewhere", "Ctrl-C ends.")
        lines = self.told(scene)
        told = [
            said("crash", State.NEW, since=3, estimate=2_000),
            said("crash", State.ONGOING, since=3),
            said("crash", State.ONGOING, since=3, estimate=3_000),
            said("crash", State.GONE, since=3),
            said("crash", State.BACK, since=7, estimate=1_900),
        ]
        # The records themselves say that a step is a second long.
        scene.published(Published(tuple(step_of(3 + n, each) for n, each in enumerate(told)), None))
        assert lines[2:] == [
            "00:00:04 UTC      2,000 users (1,840–2,140)    new        crash",
            "00:00:06 UTC      3,000 users (2,840–3,140)    for 3s     crash",
            "00:00:07 UTC       gone after 3s                          crash",
            "00:00:08 UTC      1,900 users (1,740–2,040)    back       crash",
        ]

    def test_a_report_of_0_1_0_has_the_margin_of_its_noise(self):
        scene = Scene("streamer watch", "somewhere", "Ctrl-C ends.")
        lines = self.told(scene)
        step = closed(1, crash=2_000)
        old = replace(step.results[0], low=UNSET, high=UNSET)
        scene.published(Published((replace(step, results=(old,)),), None))
        assert lines[-1] == "00:00:02 UTC      2,000 users ± 150                       crash"

    def test_the_end_of_reports_and_trouble_are_told_once(self):
        scene = scene_of(hitter("crash", 5_000), steps=[closed(9, crash=5_000)])
        lines = self.told(scene)
        scene.changed()
        scene.state("no broker answers")
        scene.state("no broker answers")
        scene.state("")
        quiet = Current(10, clock(10), clock(11), ())
        scene.published(Published((closed(10),), quiet))
        scene.published(Published((closed(11),), quiet))
        assert [line for line in lines if "crash" not in line][-3:] == [
            "waiting: no broker answers",
            "reconnected",
            "00:00:11 UTC  no items any more",
        ]

    def test_outbreaks_are_told_when_they_begin_and_end(self):
        running = set()
        scene = scene_of(truth=lambda: truth_of(running=running))
        lines = self.told(scene)
        for items in ({"crash"}, {"crash", "slow"}, {"slow"}, {"slow"}):
            running.clear()
            running.update(items)
            scene.published(Published((), None))
        truth = [line.partition("simulation: ")[2] for line in lines if "ground truth" in line]
        assert truth == [
            "outbreak of crash starts",
            "outbreak of slow starts",
            "outbreak of crash ends",
        ]

    def test_another_stream_with_earlier_steps_is_told_too(self):
        scene = scene_of(hitter("crash", 5_000), steps=[closed(99, crash=5_000)])
        lines = self.told(scene)
        scene.changed()
        scene.reset()
        scene.published(Published((closed(3, slow=4_000),), None))
        assert lines[-1].endswith("slow")
