"""The HTTP server: where it listens, what it says if it cannot, and how it ends."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from streamer.errors import SettingError
from streamer.web.server import HttpServer
from tests.web.asking import ask

DEADLINE = 30


async def hello(request):
    return PlainTextResponse("hello")


class Endless:
    """A stream without an end, and whether it was ended."""

    def __init__(self):
        self.ended = asyncio.Event()

    async def __call__(self, request):
        return StreamingResponse(self._lines())

    async def _lines(self):
        try:
            while True:
                yield "more\n"
                await asyncio.sleep(0.01)
        finally:
            self.ended.set()


def server(host="127.0.0.1", port=0, section="metrics", stream=None):
    routes = [Route("/", hello), *([Route("/stream", stream.__call__)] if stream else [])]
    return HttpServer(Starlette(routes=routes), section, host, port)


@pytest.fixture
async def running():
    running = server()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
def taken():
    """A port that somebody else listens at."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


class TestListening:
    async def test_with_port_0_any_free_one_is_taken_and_told(self, running):
        assert running.port > 0
        assert running.url == f"http://127.0.0.1:{running.port}"
        assert (await ask(running.port, "/")).body == b"hello"

    async def test_it_answers_as_soon_as_it_is_started(self):
        for _ in range(5):
            started = server()
            await started.start()
            try:
                assert (await ask(started.port, "/")).status == 200
            finally:
                await started.stop()

    async def test_two_servers_run_beside_each_other(self, running):
        other = server()
        await other.start()
        assert other.port != running.port
        await other.stop()
        assert (await ask(running.port, "/")).status == 200

    async def test_a_port_can_be_used_again_at_once(self):
        first = server()
        await first.start()
        await ask(first.port, "/")
        await first.stop()
        second = server(port=first.port)
        await second.start()
        assert (await ask(second.port, "/")).status == 200
        await second.stop()

    @pytest.mark.parametrize(
        ("host", "url"),
        [
            ("0.0.0.0", "http://127.0.0.1:{}"),
            ("localhost", "http://localhost:{}"),
            ("::", "http://[::1]:{}"),
            ("::1", "http://[::1]:{}"),
        ],
    )
    async def test_the_url_is_one_that_can_be_opened_here(self, host, url):
        if ":" in host and not _has_ipv6():
            pytest.skip("this machine has no IPv6")
        started = server(host)
        await started.start()
        try:
            assert started.url == url.format(started.port)
            address = started.url.removeprefix("http://").rpartition(":")[0].strip("[]")
            assert (await ask(started.port, "/", host=address)).status == 200
        finally:
            await started.stop()


@pytest.mark.slow
class TestMistakes:
    @pytest.mark.parametrize("section", ["metrics", "http"])
    async def test_a_port_that_is_taken_is_named_with_its_setting(self, taken, section):
        with pytest.raises(SettingError) as caught:
            await server(port=taken, section=section).start()
        assert caught.value.setting == f"{section}.port"
        assert str(caught.value) == (
            f"{section}.port is {taken}: address already in use; choose another port"
        )

    @pytest.mark.parametrize(
        "host",
        [
            "192.0.2.1",  # for documentation: nobody's
            "a..b",
            "x" * 64 + ".example",
            "nul\0",
            "",
            "127.0.0.1:9090",
        ],
    )
    async def test_a_host_that_is_not_here_is_named_with_its_setting(self, host):
        with pytest.raises(SettingError) as caught:
            await server(host, section="http").start()
        assert caught.value.setting == "http.host"
        assert str(caught.value) == f"http.host is {host}: it is not an address of this machine"

    async def test_after_a_mistake_there_is_nothing_to_stop(self, taken):
        wrong = server(port=taken)
        with pytest.raises(SettingError):
            await wrong.start()
        await wrong.stop()

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("metrics.port", None, "address already in use; choose another port"),
            ("http.port", None, "address already in use; choose another port"),
            ("http.host", "192.0.2.1", "it is not an address of this machine"),
            ("metrics.host", "192.0.2.1", "it is not an address of this machine"),
            ("metrics.port", "70000", "input should be less than or equal to 65535"),
            ("http.port", "-1", "input should be greater than or equal to 0"),
            ("metrics.items", "-1", "input should be greater than or equal to 0"),
            ("log.level", "loud", "input should be 'info', 'warning' or 'error'"),
            ("log.format", "xml", "input should be 'auto', 'json' or 'text'"),
        ],
    )
    def test_the_program_says_so_in_one_sentence(self, taken, name, value, sentence):
        value = value or str(taken)
        ended = _run({"log.format": "text", name: value})
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr == f"streamer: {name} is {value}: {sentence}\n"

    def test_in_a_container_that_is_a_line_of_json_too(self, taken):
        ended = _run({"metrics.port": str(taken)})
        [line] = ended.stderr.splitlines()
        told = json.loads(line)
        assert (told["level"], told["exit_code"], ended.returncode) == ("error", 2, 2)
        assert told["message"].startswith(f"metrics.port is {taken}: ")


class TestStopping:
    async def test_nobody_is_let_in_any_more(self):
        stopped = server()
        await stopped.start()
        await stopped.stop()
        with pytest.raises(ConnectionRefusedError):
            await ask(stopped.port, "/")

    async def test_a_connection_that_is_idle_does_not_hold_it_up(self):
        stopped = server()
        await stopped.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", stopped.port)
        began = time.monotonic()
        await stopped.stop()
        assert time.monotonic() - began < 1.5
        assert await reader.read() == b""
        writer.close()

    @pytest.mark.slow
    async def test_streams_are_cut_after_a_moment_and_nobody_complains(self, caplog):
        stream = Endless()
        stopped = server(stream=stream)
        await stopped.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", stopped.port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"more\n")
        caplog.set_level(logging.ERROR)
        async with asyncio.timeout(DEADLINE):
            await stopped.stop()
            await stream.ended.wait()
        assert caplog.messages == []
        writer.close()

    async def test_signals_are_left_to_the_service(self):
        handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
        started = server()
        await started.start()
        assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
        await started.stop()

    async def test_one_that_was_never_started_can_be_stopped(self):
        await server().stop()


def _run(settings):
    """`streamer run` until it ends by itself."""
    settings = {"privacy.key": "ab" * 32, "metrics.port": "0", "http.port": "0", **settings}
    given = {f"STREAMER_{name.replace('.', '__')}".upper(): each for name, each in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "streamer.cli", "run"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def _has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


async def test_a_reader_who_takes_nothing_is_cut_off(monkeypatch):
    monkeypatch.setattr("streamer.web.server.PATIENCE_SECONDS", 0.2)
    gone = asyncio.Event()

    async def flood(scope, receive, send):
        """More than buffers hold, to a reader who does not read."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = {"type": "http.response.body", "body": bytes(32 << 20), "more_body": True}
        await send(body)
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    serving = HttpServer(flood, "http", "127.0.0.1", 0)
    await serving.start()
    with socket.create_connection(("127.0.0.1", serving.port)) as stalled:
        stalled.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(gone.wait(), DEADLINE)
        await serving.stop()
