"""One HTTP request, and its answer as it comes: what a reader of server-sent events needs.

HTTP/1.1 over a socket of its own, with or without TLS. Answers come in chunks, by their
length or up to the end of the connection. Redirections are not followed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamer.errors import InputError

_CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 40.0
"""A live page says something every 15 s: after so long the connection is dead."""
_BLOCK = 1 << 16
_NOT_OURS = "there is no live page of streamer"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a page is; `prefix` is what comes before its own paths, often nothing."""

    secure: bool
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """As people write it: the scheme may be left out."""
        mistake = InputError(f"{text!r} is no address: write one like http://127.0.0.1:8080")
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            host, port = parts.hostname, parts.port
            f"{host}".encode("idna")
        except ValueError:
            raise mistake from None
        is_plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\@?#')
        if parts.scheme not in {"http", "https"} or not host or not is_plain:
            raise mistake
        secure = parts.scheme == "https"
        return cls(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"


async def answer_of(address: Address, path: str, kind: str) -> AsyncGenerator[bytes, None]:
    """The body of the answer to a GET, which must be of this media type, in parts.

    ConnectionError says in words why there is none, or no more of it.
    """
    reader, writer = await _connect(address)
    try:
        writer.write(
            f"GET {address.prefix}{path} HTTP/1.1\r\nHost: {address.authority}\r\n"
            f"Accept: {kind}\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        async for part in _body(reader, kind):
            yield part
    except TimeoutError:
        raise ConnectionError("it has fallen silent") from None
    except asyncio.IncompleteReadError:
        raise ConnectionError("it has ended the connection") from None
    except (asyncio.LimitOverrunError, ValueError):
        raise ConnectionError(_NOT_OURS) from None
    except OSError as error:
        if error.strerror is None:  # one of ours, in words
            raise
        raise ConnectionError(error.strerror.lower()) from None
    finally:
        writer.transport.abort()


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context() if address.secure else None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await asyncio.open_connection(address.host, address.port, ssl=context)
    except socket.gaierror:
        raise ConnectionError("there is no host of that name") from None
    except ssl.SSLCertVerificationError as error:
        raise ConnectionError(f"its certificate is refused ({error.verify_message})") from None
    except ssl.SSLError:
        raise ConnectionError("it does not speak TLS: write http://") from None
    except OSError:
        raise ConnectionError("nothing answers there; is it running?") from None


async def _body(reader: asyncio.StreamReader, kind: str) -> AsyncIterator[bytes]:
    async with asyncio.timeout(SILENCE_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    status, headers = _parse(head)
    if status in {429, 503}:
        raise ConnectionError("it has too many readers, or is only starting: try again in a moment")
    if status // 100 == 3:
        raise ConnectionError("it redirects to another address: name that one")
    if status != 200 or headers.get("content-type", "").partition(";")[0].strip() != kind:
        raise ConnectionError(f"{_NOT_OURS} (status {status})")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        async for part in _chunks(reader):
            yield part
        return
    left = int(headers["content-length"]) if "content-length" in headers else None
    while left is None or left > 0:
        async with asyncio.timeout(SILENCE_SECONDS):
            part = await reader.read(_BLOCK if left is None else min(_BLOCK, left))
        if not part and left is not None:
            raise asyncio.IncompleteReadError(part, left)
        if not part:
            return
        left = None if left is None else left - len(part)
        yield part


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(SILENCE_SECONDS):
            size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        if size == 0:
            return
        while size > 0:
            async with asyncio.timeout(SILENCE_SECONDS):
                part = await reader.read(min(_BLOCK, size))
            if not part:
                raise asyncio.IncompleteReadError(part, size)
            size -= len(part)
            yield part
        async with asyncio.timeout(SILENCE_SECONDS):
            await reader.readexactly(2)


def _parse(head: bytes) -> tuple[int, Mapping[str, str]]:
    """The status and the headers, by their names in small letters; ValueError: no HTTP."""
    first, *lines = head.decode("latin-1").split("\r\n")
    protocol, status, *_ = first.split(" ")
    if not protocol.startswith("HTTP/1."):
        raise ValueError(protocol)
    pairs = (line.partition(":") for line in lines if ":" in line)
    return int(status), {name.strip().lower(): value.strip() for name, _, value in pairs}
