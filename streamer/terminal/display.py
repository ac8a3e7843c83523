"""Where a scene is drawn, and how long: a live view on a terminal, otherwise plain lines."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from streamer.terminal.live_view import LiveView
from streamer.terminal.plain_view import PlainView
from streamer.terminal.scene import Scene

_PAUSE_SECONDS = 0.05
"""Between two pictures: steps may be short, and many may come at once."""


@contextmanager
def displayed(scene: Scene, console: Console, end: Callable[[], object]) -> Iterator[None]:
    """Draw a scene whenever it changes; within a running event loop. `end` is called when
    nobody reads the lines any more."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if not console.is_terminal or console.is_dumb_terminal:
        scene.changed = PlainView(scene, lambda line: _print(line, end)).draw
        yield
        return
    loop = asyncio.get_running_loop()
    with Live(LiveView(scene), console=console, screen=True, auto_refresh=False) as live:
        pencil = _Pencil(live.refresh, loop)
        scene.changed = pencil.draw
        loop.add_signal_handler(signal.SIGWINCH, pencil.draw)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            pencil.put_down()


def _print(line: str, end: Callable[[], object]) -> None:
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough; Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end()


class _Pencil:
    """Draws soon after it is asked to, and once if it is asked several times."""

    def __init__(self, draw: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        self._draw, self._loop = draw, loop
        self._due: asyncio.TimerHandle | None = None
        self._down = False

    def draw(self) -> None:
        if self._due is None and not self._down:
            self._due = self._loop.call_later(_PAUSE_SECONDS, self._now)

    def put_down(self) -> None:
        """Nothing is drawn any more: the screen is somebody else's."""
        self._down = True
        if self._due is not None:
            self._due.cancel()

    def _now(self) -> None:
        self._due = None
        self._draw()


@contextmanager
def ended_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP calls `end`; a second one does what it always does."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def told() -> None:
        for each in signals:
            loop.remove_signal_handler(each)
        end()

    for each in signals:
        loop.add_signal_handler(each, told)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
