"""A reader of the API: it misses nothing, comes back by itself, and says why it cannot read."""

import asyncio
import gzip
import json
import os
import socket
import ssl
import struct
from contextlib import asynccontextmanager, suppress

import pytest

from streamer.backoff import Backoff
from streamer.errors import InputError
from streamer.web.client import Follower, page_url
from streamer.web.event_stream import MOST_BYTES
from tests.kafka.secure_broker import Authority
from tests.web.making import DEADLINE, new_stream, serving

HEAD = "HTTP/1.1 {}\r\nContent-Type: {}\r\n{}\r\n"
IMPATIENT = Backoff(0.01, 0.05)
STEPS = b'{"steps":[],"oldest":1,"through":5}'


class Heard:
    """A listener that remembers what it was told."""

    def __init__(self):
        self.states, self.promises, self.steps, self.current = [], [], [], None
        self.resets = 0

    def state(self, trouble):
        if not self.states or self.states[-1] != trouble:
            self.states.append(trouble)

    def guarantee(self, promise):
        self.promises.append(promise)

    def published(self, published):
        self.steps += [step.step for step in published.steps]
        if published.hitters is not None:
            self.current = {each.item: each.estimate for each in published.hitters.hitters}

    def reset(self):
        self.resets += 1
        self.steps.clear()


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def following(port, past=100, scheme="http", backoff=IMPATIENT, **options):
    heard = Heard()
    page = page_url(f"{scheme}://127.0.0.1:{port}")
    task = asyncio.create_task(Follower(page, past, heard, backoff, **options).run())
    try:
        yield heard
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def answering(*answers, tls=None, requests=None):
    """A server that gives these answers, one for each connection, the last one ever again."""
    left = list(answers)

    async def answer(reader, writer):
        request = await reader.readuntil(b"\r\n\r\n")
        if requests is not None:
            requests.append(request.decode())
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        with suppress(ConnectionError):  # of a reader who does not want all of it
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def steps_answer(body=STEPS):
    head = HEAD.format("200 OK", "application/json", f"Content-Length: {len(body)}\r\n")
    return head.encode() + body


def chunked_answer(body):
    head = HEAD.format("200 OK", "application/json", "Transfer-Encoding: chunked\r\n")
    return head.encode() + body


def compressed_answer():
    head = HEAD.format("200 OK", "application/json", "Content-Encoding: gzip\r\n")
    return head.encode() + gzip.compress(STEPS)


ALIVE = HEAD.format("200 OK", "text/event-stream", "").encode() + b"event: alive\n\n"
BUSY = b"HTTP/1.1 503 Busy\r\n\r\n"


async def test_the_past_comes_first_then_what_happens():
    stream = new_stream()
    for _ in range(5):
        stream.step(crash=50)
    async with serving(stream.board) as server, following(server.port, past=3) as heard:
        await until(lambda: heard.current is not None)
        assert heard.steps == [3, 4, 5]
        stream.step(crash=51, slow=40)
        await until(lambda: 6 in heard.steps)
        assert heard.steps == [3, 4, 5, 6]
        assert heard.current == {"crash": 51, "slow": 40}
        assert [promise.epsilon for promise in heard.promises] == [10.0]
        assert heard.states == [""]


async def test_a_stream_without_a_past_is_followed_from_its_first_step():
    stream = new_stream()
    async with serving(stream.board) as server, following(server.port) as heard:
        await until(lambda: heard.promises)
        stream.step(crash=50)
        await until(lambda: heard.steps == [1])


async def test_what_was_missed_while_the_server_was_away_is_had_when_it_is_back():
    stream = new_stream()
    stream.step(crash=50)
    async with serving(stream.board) as server, following(server.port) as heard:
        await until(lambda: heard.steps == [1])
        stream.step(crash=51)
        await until(lambda: heard.steps == [1, 2])
        stream.board.end()
        await server.stop()
        await until(lambda: len(heard.states) > 1)
        stream.board.ended = False
        stream.step(crash=52)
        stream.step(crash=53)
        async with serving(stream.board, port=server.port):
            await until(lambda: 4 in heard.steps)
    assert heard.steps == [1, 2, 3, 4]
    assert heard.states[0] == ""
    assert any("closed the connection" in state for state in heard.states)
    assert heard.resets == 0


async def test_another_stream_at_the_same_place_is_begun_anew():
    known, other = new_stream(first=100), new_stream(first=1)
    known.step(crash=50)
    other.step(slow=20)
    other.step(slow=21)
    async with serving(known.board) as server, following(server.port) as heard:
        await until(lambda: heard.steps == [100])
        known.board.end()
        await server.stop()
        async with serving(other.board, port=server.port):
            await until(lambda: heard.resets and heard.current == {"slow": 21})
            assert heard.steps == [1, 2]


async def test_a_service_of_0_1_0_has_no_intervals_and_is_followed():
    stream = new_stream()
    stream.step(crash=50)
    [kept] = stream.board.newest(1)
    step = json.loads(kept.json)
    [result] = step["results"]
    del result["low"], result["high"]
    steps = json.dumps({"steps": [step], "oldest": 1, "through": 1}).encode()
    async with answering(steps_answer(steps)) as port, following(port) as heard:
        await until(lambda: heard.steps == [1])


async def test_silence_is_a_dead_connection():
    stream = new_stream()
    stream.step(crash=50)
    async with (
        serving(stream.board) as server,
        following(server.port, silence_seconds=0.2) as heard,
    ):
        await until(lambda: "it stopped responding" in heard.states)
        await until(lambda: heard.states[-1] == "")


async def refusal_of(page):
    with pytest.raises(InputError) as refused:
        await asyncio.wait_for(Follower(page_url(page), 10, Heard()).run(), DEADLINE)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


class TestWhatCannotBeFollowed:
    async def test_a_port_where_nobody_listens(self, unused_tcp_port):
        sentence = await refusal_of(f"http://127.0.0.1:{unused_tcp_port}")
        assert f"http://127.0.0.1:{unused_tcp_port} cannot be watched" in sentence
        assert "is it running?" in sentence

    async def test_a_page_under_another_path(self):
        async with serving(new_stream().board) as server:
            assert "status 404" in await refusal_of(f"{server.url}/elsewhere")

    async def test_tls_where_there_is_none(self):
        async with serving(new_stream().board) as server:
            sentence = await refusal_of(f"https://127.0.0.1:{server.port}")
        assert "does not use TLS" in sentence

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (b"SSH-2.0-OpenSSH\r\n\r\n", "not a live page of streamer"),
            (b"\0" * 200_000, "not a live page of streamer"),
            (b"", "closed the connection"),
            (b"HTTP/1.1 302 Found\r\nLocation: \x1b]0;evil\r\n\r\n", "redirects"),
            (b"HTTP/1.1 503 Busy\r\n\r\n", "too many readers"),
            (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello", "not a live page"),
            (steps_answer(b'{"steps": 5}'), "does not respond like a live page"),
            (steps_answer()[:-9], "closed the connection"),
            (chunked_answer(b"5\r\n{"), "closed the connection"),
            (chunked_answer(b"many\r\n{}\r\n"), "not a live page of streamer"),
            (compressed_answer(), "does not respond like a live page"),
        ],
    )
    async def test_a_server_of_another_kind(self, answer, words):
        async with answering(answer) as port:
            sentence = await refusal_of(f"http://127.0.0.1:{port}")
        assert words in sentence
        assert sentence.isprintable()

    async def test_an_answer_without_an_end(self):
        endless = HEAD.format("200 OK", "application/json", "").encode() + b" " * (MOST_BYTES + 1)
        async with answering(endless) as port:
            assert "its response is too large" in await refusal_of(f"http://127.0.0.1:{port}")


async def test_a_page_that_has_no_room_for_more_readers_is_asked_again():
    async with answering(steps_answer(), BUSY, BUSY, ALIVE) as port, following(port) as heard:
        await until(lambda: "" in heard.states)
        assert "too many readers" in heard.states[0]


async def test_waits_grow_until_something_is_heard():
    taken = []

    class Noted:
        def waits(self):
            for wait in Backoff(0.001, 0.008).waits():
                taken.append(wait)
                yield wait

    answers = (steps_answer(), BUSY, BUSY, ALIVE)
    async with answering(*answers) as port, following(port, backoff=Noted()):
        await until(lambda: len(taken) >= 4)
    assert taken[:4] == [0.001, 0.002, 0.001, 0.001]


async def test_a_connection_that_is_reset_is_made_again():
    accepted = 0

    async def answer(reader, writer):
        nonlocal accepted
        accepted += 1
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/api/steps" in request or accepted > 2:
            writer.write(steps_answer() if b"/api/steps" in request else ALIVE)
            writer.close()
        else:
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, following(server.sockets[0].getsockname()[1]) as heard:
        await until(lambda: "" in heard.states)
    assert heard.states[0] == "connection reset by peer"


async def test_requests_go_straight_to_the_page_and_ask_for_plain_answers(
    monkeypatch, unused_tcp_port
):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_tcp_port}")
    requests = []
    async with (
        answering(steps_answer(), ALIVE, requests=requests) as port,
        following(port, past=7) as heard,
    ):
        await until(lambda: "" in heard.states)
    assert [request.splitlines()[0] for request in requests[:2]] == [
        "GET /api/steps?limit=7 HTTP/1.1",
        "GET /api/events?since=5 HTTP/1.1",
    ]
    kinds = ["application/json", "text/event-stream"]
    for request, kind in zip(requests, kinds, strict=False):
        headers = request.lower().splitlines()[1:]
        assert f"host: 127.0.0.1:{port}" in headers
        assert f"accept: {kind}" in headers
        assert "accept-encoding: identity" in headers
        assert "connection: close" in headers


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path):
        return Authority(tmp_path, "authority")

    @pytest.fixture
    def tls(self, authority):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("page"))
        return context

    async def test_a_page_with_a_certificate_that_is_trusted_is_followed(
        self, authority, tls, monkeypatch
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        async with (
            answering(steps_answer(), ALIVE, tls=tls) as port,
            following(port, scheme="https") as heard,
        ):
            await until(lambda: "" in heard.states)

    async def test_another_certificate_is_refused(self, tls):
        async with answering(steps_answer(), tls=tls) as port:
            sentence = await refusal_of(f"https://127.0.0.1:{port}")
        assert "its certificate was rejected (" in sentence

    async def test_what_is_not_encrypted_after_all_is_refused_in_words(
        self, authority, tls, monkeypatch
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))

        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            os.write(writer.get_extra_info("socket").fileno(), steps_answer())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            assert "[ssl" in await refusal_of(f"https://127.0.0.1:{port}")


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "page"),
        [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("localhost", "http://localhost"),
            ("HTTP://LocalHost:80/", "http://localhost"),
            ("https://live.example/streamer/", "https://live.example/streamer"),
            ("https://live.example:443", "https://live.example"),
            ("https://live.example:80", "https://live.example:80"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ],
    )
    def test_they_are_read_as_people_write_them(self, text, page):
        assert str(page_url(text)) == page
        assert page_url(page) == page_url(text)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "http://", "ftp://host", "http://host:port", "http://host:99999", "//x"),
            *("http://a b", "http://host/\r\nX: y", "http://user:secret@host", "http://host?x=1"),
            *("http://\x1b[31m", f"http://{'x' * 300}", "http://hö.example"),
        ],
    )
    def test_what_is_none_is_refused_in_one_sentence(self, text):
        with pytest.raises(InputError) as refused:
            page_url(text)
        assert str(refused.value).isprintable()
        assert "is not an address: use one like http://127.0.0.1:8080" in str(refused.value)
