"""`streamer demo`: a live demonstration without Kafka and without arguments."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.errors import OutputError, SettingError

if TYPE_CHECKING:
    from streamer.service.demo import Demo
    from streamer.terminal.scene import Scene
    from streamer.web.server import HttpServer

_COMMAND = "    "
"""Prefix of lines that are commands to copy; they are never wrapped."""


def demo_command(
    users: Annotated[int, typer.Option(help="Number of simulated users.")] = 100_000,
    seconds: Annotated[
        float | None,
        typer.Option(help="Stop after this many seconds.", min=0, show_default="at Ctrl-C"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Repeat the same fleet and outbreaks; never the same noise.",
            min=0,
            show_default="random",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address the page listens on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65_535)
    ] = 8080,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Keep decisions and budgets in this directory; the next demo resumes from it."
        ),
    ] = None,
) -> None:
    """Run a simulated fleet with outbreaks through the real engine; show it here and on a page."""
    from streamer.commands.output import console
    from streamer.operations.logs import configure
    from streamer.service.demo import Demo
    from streamer.settings import LogSettings

    configure(LogSettings(level="warning"), auto="text")
    demo = Demo(users, secrets.randbits(32) if seed is None else seed, journal)
    asyncio.run(_run(demo, host, port, seconds))
    for line in _summary(demo):
        console.print(line, markup=False, emoji=False, soft_wrap=line.startswith(_COMMAND))


def _program() -> str:
    """How to call this program here: in a virtual environment it may not be on the PATH."""
    called = Path(sys.argv[0])
    if called.name != "streamer" or shutil.which("streamer"):
        return "streamer"
    return shlex.quote(os.path.relpath(called))


async def _run(demo: Demo, host: str, port: int, seconds: float | None) -> None:
    from contextlib import AsyncExitStack

    from streamer.commands.output import console
    from streamer.terminal.display import displayed, ended_by_signals
    from streamer.web.public import public_app
    from streamer.web.server import HttpServer

    server = HttpServer(public_app(demo.board, demo.truth), "http", host, port)
    async with AsyncExitStack() as at_end:
        await _start(server)
        at_end.push_async_callback(server.stop)
        at_end.callback(demo.board.end)
        at_end.enter_context(ended_by_signals(demo.stop))
        if seconds is not None:
            at_end.callback(asyncio.get_running_loop().call_later(seconds, demo.stop).cancel)
        scene = _scene(demo, server.url)
        at_end.enter_context(displayed(scene, console, demo.stop))
        listening = asyncio.create_task(_listen(demo, scene))
        listening.add_done_callback(lambda _: demo.stop())
        await demo.run()
        demo.board.end()
        await listening


async def _start(server: HttpServer) -> None:
    """The server names its settings; here they are command-line options."""
    try:
        await server.start()
    except SettingError as error:
        sentence = str(error).removeprefix("http.")
        hint = " with --port, or 0 to pick a free one" if error.setting == "http.port" else ""
        raise OutputError(f"{sentence}{hint}") from None


def _scene(demo: Demo, url: str) -> Scene:
    from streamer.fleet.endless import OUTBREAKS
    from streamer.terminal.scene import GroundTruth, Scene

    def truth() -> GroundTruth:
        return GroundTruth(
            answer=demo.truth.beside(demo.board),
            outbreaks=frozenset(OUTBREAKS),
            running=demo.outbreaks,
            exhausted=demo.summary.exhausted / demo.users,
            left_out=demo.left_out,
        )

    return Scene(
        title="streamer demo",
        subject=f"{demo.users:,} simulated users, steps of 1 second",
        place=f"Live page: {url} (press Ctrl-C to stop)",
        truth=truth,
    )


async def _listen(demo: Demo, scene: Scene) -> None:
    """Follow the board like a reader of the page, starting with the restored history."""
    from streamer.terminal.scene import PAST
    from streamer.web.event_stream import events_of
    from streamer.web.feed import Feed
    from streamer.web.listener import tell

    board = demo.board
    await board.news()
    since = None
    if board.through is not None and board.oldest is not None:
        since = max(board.oldest - 1, board.through - PAST)
    async for event in events_of(Feed(board).read(since)):
        tell(scene, event)


def _summary(demo: Demo) -> Iterator[str]:
    summary, promise, program = demo.summary, demo.board.promise, _program()
    yield (
        f"{summary.steps:,} steps, {summary.records:,} records from {demo.users:,} simulated "
        f"users: {summary.hitters:,} reports."
    )
    if promise is not None:
        share = summary.exhausted / demo.users
        yield (
            f"{share:.1%} of the users have used up their {promise.contributions} reports for this "
            "budget period."
        )
        yield promise.sentence
    if demo.left_out:
        yield (
            f"{demo.left_out:,} steps were skipped: this machine slept, or is too slow for this "
            "many users (see --users)."
        )
    if demo.journal is not None:
        yield "The journal is kept. To resume from it:"
        yield f"{_COMMAND}{program} demo --journal {shlex.quote(str(demo.journal))}"
    yield ""
    yield "Next, with Kafka at localhost:9092, each command in its own terminal:"
    yield f"{_COMMAND}(umask 077; openssl rand -hex 32 > key)"
    yield f"{_COMMAND}{program} run --create-topics --step-seconds 1 --key-file key"
    yield f"{_COMMAND}{program} simulate --output kafka --paced --users 100000 --step-seconds 1"
    yield f"{_COMMAND}{program} watch kafka"
