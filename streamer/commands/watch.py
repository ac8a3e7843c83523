"""`streamer watch`: what is trending now, in a terminal, from a live page or from Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.errors import InputError

if TYPE_CHECKING:
    from streamer.kafka.connection import Connection
    from streamer.settings import Settings
    from streamer.terminal.scene import Scene

KAFKA = "kafka"


def watch_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL|kafka",
            help="A live page such as http://127.0.0.1:8080, or kafka for the configured topics.",
        ),
    ],
    config: Annotated[
        Path | None, typer.Option(help="YAML file with settings; only for kafka.")
    ] = None,
) -> None:
    """Show published results live in this terminal. Reconnects automatically; Ctrl-C stops it."""
    from streamer.operations.logs import configure
    from streamer.settings import LogSettings

    configure(LogSettings(level="error"), auto="text")
    if source == KAFKA:
        from streamer.config import load

        asyncio.run(_watch_kafka(load({}, config)))
    elif config is not None:
        raise InputError(f"--config is only for kafka: omit it, or watch kafka instead of {source}")
    else:
        asyncio.run(_watch_page(source))


async def _watch_page(text: str) -> None:
    from streamer.terminal.scene import PAST, Scene
    from streamer.web.client import Follower, page_url

    page = page_url(text)
    scene = Scene("streamer watch", str(page), "Press Ctrl-C to stop.")
    await _until_signalled(scene, Follower(page, PAST, scene).run())


async def _watch_kafka(settings: Settings) -> None:
    from streamer.kafka.startup import connection_of
    from streamer.terminal.scene import Scene

    kafka = settings.kafka
    connection = connection_of(kafka)
    if not await connection.check():
        raise InputError(f"no broker answers at {kafka.bootstrap_servers}")
    subject = f"{kafka.hitters_topic} at {kafka.bootstrap_servers}"
    scene = Scene("streamer watch", subject, "Press Ctrl-C to stop.")
    await _until_signalled(scene, _follow_topics(connection, settings, scene))


async def _follow_topics(connection: Connection, settings: Settings, scene: Scene) -> None:
    from streamer.kafka.results import KafkaResults
    from streamer.stream.current import CurrentHitters
    from streamer.terminal.scene import PAST
    from streamer.web.answers import Published, closed_steps, current_at

    topics = {
        "kafka.hitters_topic": settings.kafka.hitters_topic,
        "kafka.steps_topic": settings.kafka.steps_topic,
    }
    # The topics do not say when a reported item is checked again; the settings do.
    scene.resting = settings.privacy.refresh_steps
    hitters = CurrentHitters(scene.resting)
    async for publication in KafkaResults(connection, topics, PAST, scene.state).publications():
        hitters.take(publication)
        now = current_at(publication.steps[-1], hitters)
        scene.published(Published(tuple(closed_steps(publication)), now))


async def _until_signalled(scene: Scene, following: Coroutine[Any, Any, None]) -> None:
    from streamer.commands.output import console
    from streamer.terminal.display import displayed, ended_by_signals

    task = asyncio.create_task(following)
    with (
        ended_by_signals(task.cancel),
        displayed(scene, console, task.cancel),
        contextlib.suppress(asyncio.CancelledError),
    ):
        await task
