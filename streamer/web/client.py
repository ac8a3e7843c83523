"""A reader of a live page's API: the recent past first, then every publication as it happens.

A broken connection is reopened, and what was missed is read then. Requests go directly to
the page, each over its own connection. Proxies in the environment are not used: a page is
often local, and a proxy may delay events. Redirects are not followed, and compressed
responses are not requested. For https, the CAs that this machine trusts are used, or those
in SSL_CERT_FILE.

Only `streamer watch` imports this module, because importing httpx takes time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from streamer.backoff import Backoff
from streamer.errors import InputError
from streamer.web.answers import Published, Steps
from streamer.web.event_stream import MOST_BYTES, events_of
from streamer.web.listener import Listener, decoded, tell

BACKOFF = Backoff(0.5, 10.0)
SILENCE_SECONDS = 40.0
"""A live page sends something every 15 s: after this long the connection is lost."""
_CONNECT_SECONDS = 10.0
_NOT_OURS = "this is not a live page of streamer"
_ENDED = "it closed the connection"


@dataclass(slots=True)
class Follower:
    """Follows one page, until it is cancelled."""

    page: httpx.URL
    past: int
    """The first request asks for up to this many records of closed steps."""
    listener: Listener
    backoff: Backoff = BACKOFF
    silence_seconds: float = SILENCE_SECONDS
    _since: int | None = None
    """The last step that the listener has received."""
    _reached: bool = False
    _waits: Iterator[float] = field(init=False)

    async def run(self) -> None:
        """InputError: the page cannot be reached at first. Later, reconnects forever."""
        self._waits = self.backoff.waits()
        async with httpx.AsyncClient(
            base_url=self.page,
            headers={"Accept-Encoding": "identity", "Connection": "close"},
            timeout=httpx.Timeout(self.silence_seconds, connect=_CONNECT_SECONDS),
            verify=ssl.create_default_context(),
            trust_env=False,
            event_hooks={"response": [_check]},
        ) as http:
            while True:
                try:
                    await self._follow(http)
                except ConnectionError as trouble:
                    if not self._reached:
                        raise InputError(f"{self.page} cannot be watched: {trouble}") from None
                    self.listener.state(str(trouble))
                    await asyncio.sleep(next(self._waits))

    async def _follow(self, http: httpx.AsyncClient) -> None:
        """Follow one connection until it ends, or the stream is another one."""
        if self._since is None:
            path = f"/api/steps?limit={self.past}"
            async with _answer(http, path, "application/json") as body:
                known = decoded(Steps, await _whole(body))
            self._reached = True
            self.listener.published(Published(known.steps, None))
            self._since = known.through
        path = "/api/events" if self._since is None else f"/api/events?since={self._since}"
        async with _answer(http, path, "text/event-stream") as body:
            async for event in events_of(body):
                self._waits = self.backoff.waits()
                self.listener.state("")
                last = tell(self.listener, event)
                self._since = self._since if last is None else last
                if event.name == "reset":
                    self._since = None
                    return
        raise ConnectionError(_ENDED)


def page_url(text: str) -> httpx.URL:
    """The address of a live page as typed: the scheme may be omitted.

    InputError: not an address, or with parts that a page does not have (a user, a query).
    """
    mistake = InputError(f"{text!r} is not an address: use one like http://127.0.0.1:8080")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
        host.encode("idna")  # refuses names that no resolver accepts
        url = httpx.URL(scheme=parts.scheme, host=host, port=port, path=parts.path.rstrip("/"))
    except (ValueError, httpx.InvalidURL):
        raise mistake from None
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\@?#')
    if url.scheme not in {"http", "https"} or not host or not is_plain:
        raise mistake
    return url


@asynccontextmanager
async def _answer(
    http: httpx.AsyncClient, path: str, kind: str
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The body of the response to a GET of this media type, in chunks.

    ConnectionError describes why there is no response, or why it ended early.
    """
    try:
        async with http.stream("GET", path, headers={"Accept": kind}) as response:
            yield response.aiter_raw()
    # While a body is read, httpx does not wrap TLS errors.
    except (httpx.TransportError, ssl.SSLError) as error:
        raise ConnectionError(_reason(error)) from None


async def _check(response: httpx.Response) -> None:
    """A hook, so that it runs before httpx parses the target of a redirect."""
    if response.status_code in {429, 503}:
        raise ConnectionError("it has too many readers or is still starting: try again in a moment")
    if response.is_redirect:
        raise ConnectionError("it redirects to another address: use that one")
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.status_code != 200 or kind != response.request.headers["accept"]:
        raise ConnectionError(f"{_NOT_OURS} (status {response.status_code})")


def _reason(error: httpx.TransportError | ssl.SSLError) -> str:
    cause = _system_error(error)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return _why_unreachable(cause)
    if isinstance(error, httpx.TimeoutException):
        return "it stopped responding"
    if cause is not None and cause.strerror:
        return cause.strerror.lower()
    # httpx: a closed connection and a server without HTTP differ only in the message.
    hung_up = any(words in str(error) for words in ("disconnected", "peer closed"))
    return _NOT_OURS if isinstance(error, httpx.ProtocolError) and not hung_up else _ENDED


def _why_unreachable(cause: OSError | None) -> str:
    match cause:
        case socket.gaierror():
            return "no such host"
        case ssl.SSLCertVerificationError():
            return f"its certificate was rejected ({cause.verify_message})"
        case ssl.SSLError():
            return "it does not use TLS: use http://"
        case _:
            return "nothing answers at this address; is it running?"


def _system_error(error: BaseException) -> OSError | None:
    """The system error behind the exceptions that libraries wrapped around it."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, OSError):
        behind = behind.__cause__ or behind.__context__
    return behind


async def _whole(body: AsyncIterable[bytes]) -> bytes:
    whole = bytearray()
    async for chunk in body:
        whole += chunk
        if len(whole) > MOST_BYTES:
            raise ConnectionError("its response is too large")
    return bytes(whole)
