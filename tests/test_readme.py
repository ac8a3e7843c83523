"""What README.md says is so: its figures, its example; and the links and pictures of all pages."""

import contextlib
import io
import re
from pathlib import Path

import msgspec
import pytest

from streamer import Guarantee, Workload, plan
from streamer.monitors.seam import Hitter
from streamer.service.startup import terms_of, timing_of
from streamer.settings import Settings
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Recorder
from streamer.stream.records import ResultRecord

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = re.findall(
    r"^\| (\d+) \| ([\d,]+) \| (\d+) \| ([\d,]+) / ([\d,]+) \| \*\*([\d,]+) / ([\d,]+)\*\* \|$",
    TEXT,
    re.MULTILINE,
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("k8s/*.md")])


@pytest.mark.slow
def test_the_thresholds_are_what_plan_prints():
    assert len(TABLE) == 7
    for row in TABLE:
        k, steps, epsilon, *shown = (int(each.replace(",", "")) for each in row)
        guarantee, workload = Guarantee(epsilon, 1e-6, k), Workload(steps, 10_000, 0.05)
        plans = [plan(guarantee, workload, method) for method in ("exact", "horizon")]
        assert shown == [
            number for each in plans for number in (each.threshold, each.guaranteed_weight)
        ]


@pytest.mark.slow
def test_the_result_is_one_of_the_default_settings():
    [text] = re.findall(r"^ {4}(\{\"step\".*?\})$", TEXT, re.MULTILINE | re.DOTALL)
    shown = msgspec.json.decode(text, type=ResultRecord)
    settings = Settings()
    period = Period.containing(shown.step, terms_of(settings.privacy, settings.stream))
    hitter = Hitter(shown.item, shown.estimate, since=shown.step, valued_at=shown.step)
    decided = Decided(shown.step, shown.step, period, (hitter,))
    timing = timing_of(settings.stream)
    [result] = Recorder(timing, shown.step - 1).with_results(decided).results
    assert msgspec.json.decode(text) == msgspec.to_builtins(result)


def test_the_library_example_prints_what_it_says():
    [example] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(example, {})
    decided, public = printed.getvalue().splitlines()
    item, estimate = re.fullmatch(r"\[(\d+)\] \[(\d+)\]", decided).groups()
    assert item == "7"
    assert public.startswith(f"(Hitter(item=7, estimate={estimate}, state=<State.NEW: 'new'>")
    assert abs(int(estimate) - 5000) < 700  # e^(-700/31.4): less than one in a million


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"", text):
        target = "".join(link)
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found.read_text(encoding="utf-8")), target


def anchors(text):
    """Those that the headings get on GitHub."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
