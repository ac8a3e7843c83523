"""The public port: the live page and its JSON API, without any operator data.

Every response is a function of publications and public settings. The API is read-only;
docs/openapi.yaml describes it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamer.web.answers import Refusal
from streamer.web.board import Board, Kept
from streamer.web.feed import Feed
from streamer.web.ground_truth import Truth
from streamer.web.page import Asset, page

LARGEST_ANSWER = 1_000
"""Maximum number of steps in one response."""
STEPS = 100
"""Default number of steps in one response."""

_CHUNK_BYTES = 1 << 16
_JSON = "application/json"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_encode = msgspec.json.Encoder().encode


def public_app(board: Board, truth: Truth | None = None, feed: Feed | None = None) -> Starlette:
    """The page and the API of one board; `truth` only for a simulation."""
    site = _Site(board, truth, feed or Feed(board))
    app = Starlette(
        routes=site.routes(),
        middleware=[Middleware(_SafeHeaders), Middleware(GZipMiddleware, compresslevel=6)],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    return app


class _Site:
    def __init__(self, board: Board, truth: Truth | None, feed: Feed) -> None:
        self._board, self._truth, self._feed = board, truth, feed
        self._page = page(with_truth=truth is not None)

    def routes(self) -> list[Route]:
        routes = [
            Route("/", self.index),
            Route("/static/{name}", self.asset),
            Route("/api/hitters", self.hitters),
            Route("/api/steps", self.steps),
            Route("/api/guarantee", self.guarantee),
            Route("/api/events", self.events),
        ]
        return [*routes, Route("/api/truth", self.truth)] if self._truth else routes

    async def index(self, request: Request) -> Response:
        return _file(request, self._page.html)

    async def asset(self, request: Request) -> Response:
        asset = self._page.assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        return _file(request, asset)

    async def hitters(self, request: Request) -> Response:
        _numbers(request, ())
        return self._known(request) or self._json(self._board.current_json)

    async def guarantee(self, request: Request) -> Response:
        _numbers(request, ())
        if self._board.promise is None:
            raise HTTPException(503, "The stream has not started yet: try again in a moment.")
        return self._known(request) or self._json(_encode(self._board.promise))

    async def steps(self, request: Request) -> Response:
        asked = _numbers(request, ("since", "limit"))
        since, limit = asked.get("since"), asked.get("limit", STEPS)
        if not 1 <= limit <= LARGEST_ANSWER:
            raise HTTPException(400, f"limit is {limit}: use 1 to {LARGEST_ANSWER:,}.")
        board = self._board
        kept = board.newest(limit) if since is None else board.after(since, limit)
        around = _encode({"oldest": board.oldest, "through": board.through})
        return self._known(request) or StreamingResponse(
            _chunks(kept, around), media_type=_JSON, headers=self._caching()
        )

    async def truth(self, request: Request) -> Response:
        _numbers(request, ())
        if self._truth is None:
            raise HTTPException(404)
        return self._json(_encode(self._truth.beside(self._board)))

    async def events(self, request: Request) -> Response:
        """Server-sent events; a browser that reconnects sends the id of its last event."""
        since = _numbers(request, ("since",)).get("since")
        if seen := request.headers.get("last-event-id"):
            since = _number("Last-Event-ID", seen)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")
        if self._feed.is_full:
            raise HTTPException(503, "Too many live readers: poll /api/steps instead.")
        return StreamingResponse(
            self._feed.read(since), headers=headers, media_type="text/event-stream"
        )

    def _known(self, request: Request) -> Response | None:
        """A 304 response if the board is unchanged since the client last asked."""
        return _unchanged(request, self._caching())

    def _json(self, body: bytes) -> Response:
        return Response(body, media_type=_JSON, headers=self._caching())

    def _caching(self) -> dict[str, str]:
        etag = f'W/"{self._board.identity}-{self._board.revision}"'
        return {"Cache-Control": "no-cache", "ETag": etag}


def _file(request: Request, asset: Asset) -> Response:
    headers = {"Cache-Control": "no-cache", "ETag": asset.etag}
    return _unchanged(request, headers) or Response(
        asset.body, media_type=asset.media_type, headers=headers
    )


def _unchanged(request: Request, headers: dict[str, str]) -> Response | None:
    known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
    # Proxies that compress a response may weaken its tag; the content is the same.
    if {"*", headers["ETag"], f"W/{headers['ETag']}"} & known:
        return Response(status_code=304, headers=headers)
    return None


async def _chunks(kept: Sequence[Kept], around: bytes) -> AsyncIterator[bytes]:
    """The steps as one JSON object, in chunks: a slow reader keeps only one in memory."""
    part = bytearray(b'{"steps":[')
    for place, each in enumerate(kept):
        part += b"," + each.json if place else each.json
        if len(part) >= _CHUNK_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part) + b"]," + around.removeprefix(b"{")


def _numbers(request: Request, known: tuple[str, ...]) -> dict[str, int]:
    """The query parameters, all integers; anything else is refused."""
    asked: dict[str, int] = {}
    for name, text in request.query_params.multi_items():
        if name not in known:
            allowed = " and ".join(known) if known else "no parameters"
            raise HTTPException(400, f"Unknown parameter {name}: use {allowed}.")
        if name in asked:
            raise HTTPException(400, f"{name} is given more than once: give it once.")
        asked[name] = _number(name, text)
    return asked


def _number(name: str, text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise HTTPException(400, f"{name} is not an integer: use a number such as 12.")
    return int(text)


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException)
    sentences = {404: "Not found.", 405: "Read-only: use GET."}
    sentence = sentences.get(error.status_code, error.detail)
    headers = {**(error.headers or {}), "Cache-Control": "no-store"}
    if error.status_code == 503:
        headers["Retry-After"] = "5"
    body = _encode(Refusal(sentence))
    return Response(body, error.status_code, headers, media_type=_JSON)


class _SafeHeaders:
    """No content from other hosts, no inline code, no MIME sniffing, no framing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)
