"""An HTTP server inside of our loop: we own the socket and the signals, uvicorn the rest."""

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
        """`section`: of the settings that host and port come from, for complaints."""
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
                http=_Patient,
            )
        )
        self._running: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened at: chosen by the system if 0 was asked for."""
        return self._port

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Returns when requests are answered."""
        listening = self._listen()
        self._port = listening.getsockname()[1]
        self._running = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._running.done():
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """Streams that are still being read are cut after a moment."""
        if self._running is None:
            return
        self._server.should_exit = True
        await asyncio.wait([self._running], timeout=_GRACE_SECONDS)
        # To the application this is a reader who has gone; uvicorn would cancel it, and
        # complain of each.
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self._running

    def _listen(self) -> socket.socket:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
        except (OSError, ValueError):  # ValueError: what is not even a name
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
                f"{(error.strerror or 'it cannot be used').lower()}; choose another",
            ) from None
        listening.setblocking(False)
        return listening

    def _not_here(self) -> SettingError:
        return SettingError(
            f"{self._section}.host", self._host, "it is not an address of this machine"
        )


class _Patient(H11Protocol):
    """Cuts off who takes nothing of what is sent to them: they would hold a connection for ever."""

    _cut: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._cut = self.loop.call_later(PATIENCE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._forgive()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def _forgive(self) -> None:
        if self._cut is not None:
            self._cut.cancel()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for the service, which ends its servers itself."""
        yield
