"""A reader of the API: it misses nothing, comes back by itself, and says why it cannot read."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from streamer.backoff import Backoff
from streamer.errors import InputError
from streamer.web import client, request
from streamer.web.client import Event, Follower, events_of
from streamer.web.request import Address
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


def page_at(port, prefix=""):
    return Address(secure=False, host="127.0.0.1", port=port, prefix=prefix)


@asynccontextmanager
async def following(port, past=100):
    heard = Heard()
    task = asyncio.create_task(Follower(page_at(port), past, heard, IMPATIENT).run())
    try:
        yield heard
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def answering(*answers):
    """A server that gives these answers, one for each connection, the last one ever again."""
    left = list(answers)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def steps_answer(body=STEPS):
    head = HEAD.format("200 OK", "application/json", f"Content-Length: {len(body)}\r\n")
    return head.encode() + body


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
    assert any("ended the connection" in state for state in heard.states)
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


async def test_silence_is_a_dead_connection(monkeypatch):
    monkeypatch.setattr(request, "SILENCE_SECONDS", 0.2)
    stream = new_stream()
    stream.step(crash=50)
    async with serving(stream.board) as server, following(server.port) as heard:
        await until(lambda: "it has fallen silent" in heard.states)
        await until(lambda: heard.states[-1] == "")


class TestWhatCannotBeFollowed:
    async def refusal_of(self, address):
        with pytest.raises(InputError) as refused:
            await asyncio.wait_for(Follower(address, 10, Heard()).run(), DEADLINE)
        sentence = str(refused.value)
        assert "\n" not in sentence
        return sentence

    async def test_a_port_where_nobody_listens(self, unused_tcp_port):
        sentence = await self.refusal_of(page_at(unused_tcp_port))
        assert f"http://127.0.0.1:{unused_tcp_port} cannot be watched" in sentence
        assert "is it running?" in sentence

    async def test_a_page_under_another_path(self):
        async with serving(new_stream().board) as server:
            assert "status 404" in await self.refusal_of(page_at(server.port, "/elsewhere"))

    async def test_tls_where_there_is_none(self):
        async with serving(new_stream().board) as server:
            address = Address(True, "127.0.0.1", server.port, "")
            assert "does not speak TLS" in await self.refusal_of(address)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (b"SSH-2.0-OpenSSH\r\n\r\n", "no live page of streamer"),
            (b"\0" * 200_000, "no live page of streamer"),
            (b"", "ended the connection"),
            (b"HTTP/1.1 302 Found\r\nLocation: \x1b]0;evil\r\n\r\n", "redirects"),
            (b"HTTP/1.1 503 Busy\r\n\r\n", "too many readers"),
            (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello", "no live page"),
            (steps_answer(b'{"steps": 5}'), "does not speak as a live page"),
            (steps_answer()[:-9], "ended the connection"),
        ],
    )
    async def test_a_server_of_another_kind(self, answer, words):
        async with answering(answer) as port:
            sentence = await self.refusal_of(page_at(port))
        assert words in sentence
        assert sentence.isprintable()


async def test_a_page_that_has_no_room_for_more_readers_is_asked_again():
    busy = b"HTTP/1.1 503 Busy\r\n\r\n"
    events = HEAD.format("200 OK", "text/event-stream", "").encode() + b"event: alive\n\n"
    async with answering(steps_answer(), busy, busy, events) as port, following(port) as heard:
        await until(lambda: "" in heard.states)
        assert "too many readers" in heard.states[0]


async def chunks_of(*parts):
    for part in parts:
        yield part


async def test_events_are_told_apart_however_they_are_cut():
    text = b'retry: 5\n\nid: 7\nevent: published\ndata: {"a":1}\n\nevent: reset\r\ndata: {}\r\n\r\n'
    expected = [Event("published", b'{"a":1}'), Event("reset", b"{}")]
    for size in range(1, len(text) + 1):
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert [event async for event in events_of(chunks_of(*parts))] == expected


async def test_an_event_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(client, "_MOST_BYTES", 100)
    with pytest.raises(ConnectionError, match="more than can be read"):
        [event async for event in events_of(chunks_of(b"data: ", b"x" * 100))]


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("http://127.0.0.1:8080", Address(False, "127.0.0.1", 8080, "")),
            ("127.0.0.1:8080", Address(False, "127.0.0.1", 8080, "")),
            ("localhost", Address(False, "localhost", 80, "")),
            ("https://live.example/streamer/", Address(True, "live.example", 443, "/streamer")),
            ("http://[::1]:8080/", Address(False, "::1", 8080, "")),
        ],
    )
    def test_they_are_read_as_people_write_them(self, text, address):
        assert Address.parse(text) == address
        assert Address.parse(address.url) == address

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
            Address.parse(text)
        assert str(refused.value).isprintable()
        assert "is no address: write one like http://127.0.0.1:8080" in str(refused.value)
