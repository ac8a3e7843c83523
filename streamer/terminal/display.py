"""Draws a scene until it ends: a live view on a terminal, plain lines otherwise."""

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
"""Between two redraws: steps can be short, and many can arrive at once."""


@contextmanager
def displayed(scene: Scene, console: Console, end: Callable[[], object]) -> Iterator[None]:
    """Draw a scene whenever it changes; needs a running event loop. `end` is called when
    the reader of the plain lines has closed the pipe."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if not console.is_terminal or console.is_dumb_terminal:
        scene.changed = PlainView(scene, lambda line: _print(line, end)).draw
        yield
        return
    loop = asyncio.get_running_loop()
    with Live(LiveView(scene), console=console, screen=True, auto_refresh=False) as live:
        redraw = _Redraw(live.refresh, loop)
        scene.changed = redraw.request
        loop.add_signal_handler(signal.SIGWINCH, redraw.request)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            redraw.stop()


def _print(line: str, end: Callable[[], object]) -> None:
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe. Python would flush again at exit and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end()


class _Redraw:
    """Draws shortly after a request, once for several requests."""

    def __init__(self, draw: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        self._draw, self._loop = draw, loop
        self._due: asyncio.TimerHandle | None = None
        self._stopped = False

    def request(self) -> None:
        if self._due is None and not self._stopped:
            self._due = self._loop.call_later(_PAUSE_SECONDS, self._now)

    def stop(self) -> None:
        """Draw nothing more: the screen has been given back."""
        self._stopped = True
        if self._due is not None:
            self._due.cancel()

    def _now(self) -> None:
        self._due = None
        self._draw()


@contextmanager
def ended_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP calls `end`; a second one has its default effect."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end_once() -> None:
        for each in signals:
            loop.remove_signal_handler(each)
        end()

    for each in signals:
        loop.add_signal_handler(each, end_once)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
