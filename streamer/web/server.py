"""An HTTP server in our event loop: we own the socket and the signals, uvicorn the rest."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamer.errors import SettingError

PATIENCE_SECONDS = 60.0
_GRACE_SECONDS = 2
_MOST_CONNECTIONS = 1_000


class HttpServer:
    """Serves one application at one address, from `start` to `stop`."""

    def __init__(self, app: ASGIApp, section: str, host: str, port: int) -> None:
        """`section`: the settings section of host and port, for error messages."""
        self._section = section
        self._host, self._port = host, port
        self._server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=2 * _GRACE_SECONDS,
                limit_concurrency=_MOST_CONNECTIONS,
                http=_StallTimeout,
            )
        )
        self._running: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The listening port; chosen by the system if 0 was configured."""
        return self._port

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Returns once requests are served."""
        listening = self._listen()
        self._port = listening.getsockname()[1]
        self._running = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._running.done():
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """Open streams are closed after a grace period."""
        if self._running is None:
            return
        self._server.should_exit = True
        await asyncio.wait([self._running], timeout=_GRACE_SECONDS)
        # The application sees a client disconnect. uvicorn would cancel each request and log
        # an error.
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self._running

    def _listen(self) -> socket.socket:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
        except (OSError, ValueError):  # ValueError: not a valid name
            raise self._not_here() from None
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen()
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRNOTAVAIL:
                raise self._not_here() from None
            raise SettingError(
                f"{self._section}.port",
                self._port,
                f"{(error.strerror or 'it cannot be used').lower()}; choose another port",
            ) from None
        listening.setblocking(False)
        return listening

    def _not_here(self) -> SettingError:
        return SettingError(
            f"{self._section}.host", self._host, "it is not an address of this machine"
        )


class _StallTimeout(H11Protocol):
    """Closes connections of clients that stop reading; they would stay open forever."""

    _stall_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(PATIENCE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The service handles signals and stops its servers itself."""
        yield
