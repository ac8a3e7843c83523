"""The operators' port: health, readiness, metrics. Never expose it publicly."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamer.operations.health import Status, Verdict


def operators_app(status: Status, metrics: Callable[[], bytes]) -> Starlette:
    """`metrics`: returns the text for Prometheus."""

    async def alive(request: Request) -> Response:
        del request
        return _answer(status.alive(), "alive", "stuck")

    async def ready(request: Request) -> Response:
        del request
        return _answer(status.ready(), "ready", "not ready")

    async def measured(request: Request) -> Response:
        del request
        return Response(metrics(), media_type=CONTENT_TYPE_LATEST)

    app = Starlette(
        routes=[
            Route("/healthz", alive),
            Route("/readyz", ready),
            Route("/metrics", measured),
        ]
    )
    app.router.redirect_slashes = False
    return app


def _answer(verdict: Verdict, good: str, bad: str) -> JSONResponse:
    return JSONResponse(
        {"status": good if verdict.good else bad, "reason": verdict.reason},
        status_code=200 if verdict.good else 503,
        headers={"Cache-Control": "no-store"},
    )
