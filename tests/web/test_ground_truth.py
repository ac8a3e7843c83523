"""The truth of a simulation: beside the estimates in the demo, and nowhere else."""

import ast
from pathlib import Path

import pytest

import streamer
from streamer.web.ground_truth import LABEL, TrueStep, Truth
from streamer.web.page import page
from tests.web.making import new_stream, new_stream_with_states
from tests.web.test_public import client_of

PACKAGE = Path(streamer.__file__).parent


@pytest.fixture
def stream():
    return new_stream(epsilon=1.0)


def told(*steps):
    truth = Truth()
    for step in steps:
        truth.tell(step)
    return truth


async def ask(stream, truth):
    async with client_of(stream.board, truth) as client:
        return (await client.get("/api/truth")).json()


async def test_true_numbers_are_beside_the_estimates(stream):
    stream.step(a=1_020)
    answer = await ask(stream, told(TrueStep(1, {"a": 1_000, "b": 9}, fewer=70, singles=50)))
    threshold = stream.period.plan.threshold
    assert answer == {
        "label": "Ground truth, known only because this is a simulation",
        "step": 1,
        "threshold": threshold,
        "items": [
            {
                "item": "a",
                "now": 1_000,
                "step": 1,
                "users": 1_000,
                "estimate": 1_020,
                "rightly": True,
            },
            {
                "item": "b",
                "now": 9,
                "step": 1,
                "users": 9,
                "estimate": None,
                "rightly": True,
            },
        ],
        "withheld": 71,
        "singles": 50,
    }


async def test_what_was_missed_or_reported_wrongly_is_told_too(stream):
    stream.step(few=900)
    answer = await ask(stream, told(TrueStep(1, {"many": 5_000, "few": 3}, fewer=0, singles=0)))
    verdicts = {row["item"]: (row["estimate"], row["rightly"]) for row in answer["items"]}
    assert verdicts == {"many": (None, False), "few": (900, False)}
    assert answer["withheld"] == 0


async def test_an_item_that_rests_is_compared_with_the_step_of_its_report():
    stream = new_stream(epsilon=1.0, refresh_steps=5)
    stream.step(a=1_000)
    stream.step()
    steps = [TrueStep(1, {"a": 990}, 0, 0), TrueStep(2, {"a": 2_000, "b": 5}, 0, 0)]
    answer = await ask(stream, told(*steps))
    rows = [(row["item"], row["now"], row["step"], row["users"]) for row in answer["items"]]
    assert rows == [("a", 2_000, 1, 990), ("b", 5, 2, 5)]


async def test_an_item_that_is_still_there_is_compared_with_the_step_of_its_value():
    stream = new_stream_with_states()
    stream.step(a=1_000)
    stream.step()
    now = stream.period.plan.exit_threshold
    assert now < stream.period.plan.threshold - stream.period.margin
    steps = [TrueStep(1, {"a": 990}, 0, 0), TrueStep(2, {"a": now}, 0, 0)]
    [row] = (await ask(stream, told(*steps)))["items"]
    assert (row["now"], row["users"], row["estimate"]) == (now, 990, 1_000)
    assert row["rightly"], "it has not fallen below the threshold for leaving"


async def test_an_item_that_hardly_anybody_has_any_more_is_shown_wrongly():
    stream = new_stream_with_states()
    stream.step(a=1_000)
    stream.step()
    steps = [TrueStep(1, {"a": 990}, 0, 0), TrueStep(2, {"a": 3}, 0, 0)]
    [row] = (await ask(stream, told(*steps)))["items"]
    assert not row["rightly"]


async def test_the_truth_of_a_step_is_told_when_the_step_is_closed(stream):
    truth = told(TrueStep(1, {"a": 990}, 0, 0), TrueStep(2, {"b": 5}, 0, 0))
    assert (await ask(stream, truth))["step"] is None
    stream.step(a=1_000)
    assert [row["item"] for row in (await ask(stream, truth))["items"]] == ["a"]


async def test_the_truth_of_the_last_thousand_steps_is_kept(stream):
    stream.step(a=1_000)
    truth = told(*(TrueStep(step, {}, 0, 0) for step in range(1, 1_001)))
    assert (await ask(stream, truth))["step"] == 1
    truth.tell(TrueStep(1_001, {}, 0, 0))
    assert (await ask(stream, truth))["step"] is None


async def test_without_a_simulation_the_page_has_no_trace_of_it(stream):
    async with client_of(stream.board) as client:
        for path in ("/api/truth", "/static/truth.js", "/static/truth.css", "/static/truth.html"):
            assert (await client.get(path)).status_code == 404
        texts = [(await client.get("/")).text]
        for name in page(with_truth=False).assets:
            texts.append((await client.get(f"/static/{name}")).text)
        assert len(texts) > 5
        for text in texts:
            assert "truth" not in text.lower()
            assert "simulation" not in text.lower()


async def test_with_a_simulation_the_page_says_so(stream):
    async with client_of(stream.board, Truth()) as client:
        html = (await client.get("/")).text
        assert LABEL in html
        for name in ("truth.js", "truth.css"):
            assert f"static/{name}" in html
            assert (await client.get(f"/static/{name}")).status_code == 200


def test_only_the_demo_makes_a_truth():
    """A service that reads real events must never get one."""
    makers = {
        module.relative_to(PACKAGE).as_posix()
        for module in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "streamer.web.ground_truth"
        if "Truth" in {alias.name for alias in node.names}
    }
    assert makers <= {"web/public.py", "service/demo.py"}
