"""The public port: its API, its files, and what is not there."""

import gzip
import json

import httpx
import pytest

from streamer.web.board import Board
from streamer.web.public import public_app
from tests.web.making import SECONDS, new_stream, new_stream_with_states, serving


def client_of(board, truth=None, **options):
    transport = httpx.ASGITransport(public_app(board, truth))
    return httpx.AsyncClient(transport=transport, base_url="http://test", **options)


@pytest.fixture
def stream():
    made = new_stream()
    for number in range(1, 6):
        made.step(a=100 + number)
    return made


async def ask(stream, path, **options):
    async with client_of(stream.board) as client:
        return await client.get(path, **options)


async def test_hitters_are_those_of_the_last_step_with_all_that_their_record_has(stream):
    answer = (await ask(stream, "/api/hitters")).json()
    assert (answer["step"], answer["end"]) == (5, "2026-01-01T00:00:06Z")
    period = stream.period
    low, high = period.interval("a", 105)
    assert low < 105 < high
    assert answer["hitters"] == [
        {
            "step": 5,
            "start": "2026-01-01T00:00:05Z",
            "end": "2026-01-01T00:00:06Z",
            "item": "a",
            "estimate": 105,
            "low": low,
            "high": high,
            "margin": period.margin,
            "threshold": period.plan.threshold,
            "epsilon": 10.0,
            "delta": 0.01,
            "contributions": 2,
            "period": 0,
            "trend": "steady",
            "since": 1,
            "value": {
                "step": 5,
                "end": "2026-01-01T00:00:06Z",
                "estimate": 105,
                "low": low,
                "high": high,
            },
        }
    ]


async def test_a_hitter_without_a_value_in_this_step_has_its_last_one():
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.step()
    low, high = stream.period.interval("a", 500)
    [hitter] = (await ask(stream, "/api/hitters")).json()["hitters"]
    assert (hitter["state"], hitter["since"], hitter["valued_at"]) == ("ongoing", 1, 1)
    assert (hitter["estimate"], hitter["low"], hitter["high"]) == (None, None, None)
    assert hitter["value"] == {
        "step": 1,
        "end": "2026-01-01T00:00:02Z",
        "estimate": 500,
        "low": low,
        "high": high,
    }


async def test_an_item_that_is_gone_is_in_its_step_and_no_hitter():
    stream = new_stream_with_states()
    stream.step(a=500)
    stream.report({}, gone=["a"])
    assert (await ask(stream, "/api/hitters")).json()["hitters"] == []
    [step] = (await ask(stream, "/api/steps?since=1")).json()["steps"]
    [result] = step["results"]
    assert (result["item"], result["state"], result["estimate"]) == ("a", "gone", None)


async def test_before_the_first_step_there_are_no_hitters():
    board = Board(SECONDS)
    async with client_of(board) as client:
        assert (await client.get("/api/hitters")).json()["hitters"] == []
        answer = (await client.get("/api/steps")).json()
        assert answer == {"steps": [], "oldest": None, "through": None}
        missing = await client.get("/api/guarantee")
        assert missing.status_code == 503
        assert missing.json()["error"].startswith("The stream has not started yet")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("?limit=2", [4, 5]),
        ("?since=2", [3, 4, 5]),
        ("?since=2&limit=2", [3, 4]),
        ("?since=-7&limit=1", [1]),
        ("?since=5", []),
        ("?since=99", []),
    ],
)
async def test_steps_are_had_from_a_step_on_or_the_newest(stream, query, found):
    answer = (await ask(stream, f"/api/steps{query}")).json()
    assert [step["step"] for step in answer["steps"]] == found
    assert (answer["oldest"], answer["through"]) == (1, 5)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/api/steps?limit=0", "limit is 0: use 1 to 1,000."),
        ("/api/steps?limit=1001", "limit is 1001: use 1 to 1,000."),
        ("/api/steps?since=yesterday", "since is not an integer: use a number such as 12."),
        ("/api/steps?since=1&since=2", "since is given more than once: give it once."),
        ("/api/steps?sinse=1", "Unknown parameter sinse: use since and limit."),
        ("/api/hitters?item=a", "Unknown parameter item: use no parameters."),
        ("/api/guarantee?x", "Unknown parameter x: use no parameters."),
        ("/api/events?limit=1", "Unknown parameter limit: use since."),
    ],
)
async def test_a_wrong_question_is_answered_with_one_sentence(stream, path, sentence):
    answer = await ask(stream, path)
    assert (answer.status_code, answer.json()) == (400, {"error": sentence})


async def test_long_answers_come_whole(stream):
    for number in range(900):
        stream.report({f"{'long ' * 50}{number}": 100, "b": 90})
    answer = (await ask(stream, "/api/steps?limit=900")).json()
    assert [step["step"] for step in answer["steps"]] == list(range(6, 906))
    assert answer["steps"][-1]["results"][0]["item"] == "b"


@pytest.mark.parametrize("path", ["/api/hitters", "/api/steps?since=2", "/api/guarantee"])
async def test_a_poller_is_sent_nothing_while_nothing_changes(stream, path):
    first = await ask(stream, path)
    tag = {"If-None-Match": f'"other", {first.headers["ETag"]}'}
    again = await ask(stream, path, headers=tag)
    assert (again.status_code, again.content, again.headers["ETag"]) == (
        304,
        b"",
        first.headers["ETag"],
    )
    stream.step(a=100)
    assert (await ask(stream, path, headers=tag)).status_code == 200


async def test_the_board_of_another_process_has_other_tags(stream):
    tag = (await ask(stream, "/api/hitters")).headers["ETag"]
    twin = new_stream()
    for number in range(1, 6):
        twin.step(a=100 + number)
    answer = await ask(twin, "/api/hitters", headers={"If-None-Match": tag})
    assert answer.status_code == 200


async def test_the_page_and_its_files_are_cached_by_their_contents(stream):
    async with client_of(stream.board) as client:
        for path in ("/", "/static/page.js", "/static/page.css", "/static/icon.svg"):
            first = await client.get(path)
            again = await client.get(path, headers={"If-None-Match": first.headers["ETag"]})
            assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


async def test_long_answers_are_compressed_for_those_who_can_read_that(stream):
    for _ in range(100):
        stream.step(a=100)
    async with serving(stream.board) as server, httpx.AsyncClient(base_url=server.url) as client:
        for encoding in ("gzip", "identity"):
            async with client.stream(
                "GET", "/api/steps", headers={"Accept-Encoding": encoding}
            ) as answer:
                raw = b"".join([part async for part in answer.aiter_raw()])
            assert (answer.headers.get("Content-Encoding") == "gzip") == (encoding == "gzip")
            body = gzip.decompress(raw) if encoding == "gzip" else raw
            assert len(json.loads(body)["steps"]) == 100
            assert (len(raw) < len(body) / 5) == (encoding == "gzip")


EVERYTHING = ["/", "/static/page.js", "/api/hitters", "/api/steps", "/api/guarantee", "/nothing"]


@pytest.mark.parametrize("path", EVERYTHING)
async def test_every_answer_forbids_what_the_page_does_not_need(stream, path):
    headers = (await ask(stream, path)).headers
    assert headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path", ["/metrics", "/healthz", "/readyz", "/api/truth", "/api/hitters/", "/api"]
)
async def test_nothing_of_the_operators_and_nothing_else_is_here(stream, path):
    answer = await ask(stream, path)
    assert (answer.status_code, answer.json()) == (404, {"error": "Not found."})


@pytest.mark.parametrize("path", ["/static/", "/static/..%2fpublic.py", "/static/index.html"])
async def test_no_other_file_can_be_had(stream, path):
    assert (await ask(stream, path)).status_code == 404


@pytest.mark.parametrize("path", [*EVERYTHING[:-1], "/api/events"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_only_reading_is_possible(stream, path, method):
    async with client_of(stream.board) as client:
        answer = await client.request(method, path)
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("path", EVERYTHING[:-1])
async def test_headers_alone_can_be_asked_for(stream, path):
    async with client_of(stream.board) as client:
        head, whole = await client.head(path), await client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["ETag"] == whole.headers["ETag"]


async def test_the_page_has_no_script_and_no_style_of_its_own_and_nothing_from_elsewhere(stream):
    html = (await ask(stream, "/")).text
    assert "style=" not in html
    assert "<style" not in html
    assert "://" not in html
    assert html.count("<script") == html.count('<script type="module" src="static/')
    for name in ("page.js", "page.css", "words.js", "history.js", "timeline.js", "now.js"):
        text = (await ask(stream, f"/static/{name}")).text
        assert "innerHTML" not in text
        assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


async def test_two_streams_with_the_same_publications_have_the_same_answers(stream):
    """Answers are a function of what is published: nothing else can be read out of them."""
    twin = new_stream()
    for number in range(1, 6):
        twin.step(a=100 + number)
    for path in ("/api/hitters", "/api/steps", "/api/guarantee", "/"):
        assert (await ask(stream, path)).content == (await ask(twin, path)).content
