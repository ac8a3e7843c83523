"""Runs the Kafka service as a process: two ports, logs, signals.

The ports for operators and readers open first and close last.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from contextlib import AsyncExitStack

import streamer
from streamer.operations.logs import StepLog
from streamer.operations.metrics import Metrics
from streamer.service.kafka_service import KafkaService
from streamer.service.startup import timing_of
from streamer.settings import Settings
from streamer.stream.publication import Audiences
from streamer.web.board import Board
from streamer.web.operators import operators_app
from streamer.web.public import public_app
from streamer.web.server import HttpServer

_log = logging.getLogger(__name__)
INTERRUPTED_TWICE = 130


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; a second signal ends the process at once."""
    timing = timing_of(settings.stream)
    metrics = Metrics(
        streamer.__version__, timing, settings.metrics.items, settings.http.link_template
    )
    board = Board(timing)
    audience = Audiences((metrics.hitters, board, StepLog()))
    service = KafkaService(settings, watchers=(metrics,), audience=audience)
    operators = HttpServer(
        operators_app(service.status, lambda: metrics.text(service.situation())),
        *("metrics", settings.metrics.host, settings.metrics.port),
    )
    public = HttpServer(public_app(board), "http", settings.http.host, settings.http.port)
    async with AsyncExitStack() as at_end:
        for server in (operators, public):
            await server.start()
            at_end.push_async_callback(server.stop)
        at_end.callback(board.end)
        _spare_the_collector()
        _log.info("metrics and health at %s, the live page at %s", operators.url, public.url)
        await _run(service, settings.kafka.shutdown_seconds)


def _spare_the_collector() -> None:
    """Events contain no reference cycles, but their number would trigger a collection every
    few milliseconds, over everything that was ever imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


async def _run(service: KafkaService, shutdown_seconds: float) -> None:
    running = asyncio.create_task(service.run())
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def end(signum: int) -> None:
        if received:
            os._exit(INTERRUPTED_TWICE)
        received.append(signum)
        _log.info("shutting down on %s", signal.Signals(signum).name)
        service.stop()
        loop.call_later(shutdown_seconds, running.cancel)

    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, end, signum)
    with contextlib.suppress(asyncio.CancelledError):
        await running
