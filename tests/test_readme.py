"""What README.md says is so: its figures, its example; and the links and pictures of all pages."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from streamer import Guarantee, Workload, plan

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = re.findall(
    r"^\| 1 \| 1e-6 \| (\d+) \| ([\d,]+) \| \*\*([\d.]+)\*\* \|$", TEXT, re.MULTILINE
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("k8s/*.md")])


@pytest.mark.slow
def test_the_noise_is_what_plan_prints():
    assert len(TABLE) == 5
    for contributions, theorem, exact in TABLE:
        for shown, method, form in ((theorem, "theorem", ",.0f"), (exact, "exact", ".1f")):
            planned = plan(
                Guarantee(epsilon=1, delta=1e-6, contributions=int(contributions)),
                Workload(period_steps=1440, items=100_000, beta=0.05, users=1_000_000),
                method,
            )
            assert format(planned.calibration.noise_scale, form) == shown


def test_the_library_example_prints_what_it_says():
    [example] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(example, {})
    item, estimate = re.fullmatch(r"\[(\d+)\] \[(\d+)\]\n", printed.getvalue()).groups()
    assert item == "7"
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
