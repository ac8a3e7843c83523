"""How to connect to the brokers, and a check that it works."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from streamer.errors import SettingError


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything a client needs to connect."""

    servers: tuple[str, ...]
    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = None
    token_file: Path | None = None
    request_timeout_ms: int = 15_000

    def options(self) -> dict[str, Any]:
        """The keyword arguments of every aiokafka client."""
        return {"bootstrap_servers": list(self.servers), **self._security()}

    def _security(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "security_protocol": self.security_protocol,
            "ssl_context": self.ssl_context,
            "request_timeout_ms": self.request_timeout_ms,
        }
        if self.sasl_mechanism:
            options["sasl_mechanism"] = self.sasl_mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        if self.token_file:
            options["sasl_oauth_token_provider"] = _TokenFile(self.token_file)
        return options

    async def check(self) -> bool:
        """Whether any broker answers. SettingError: only a change of settings can help."""
        mistakes = []
        for server in self.servers:
            try:
                if await self._answers(server):
                    return True
            except SettingError as mistake:
                mistakes.append(mistake)
        if mistakes:
            raise mistakes[0]
        return False

    async def _answers(self, server: str, again: bool = True) -> bool:
        host, _, port = server.rpartition(":")
        connection = await self._connect(host.strip("[]"), int(port), server)
        if connection is None:
            return False
        try:
            answered = (await connection.send(MetadataRequest([]))).cluster_id is not None
        except KafkaConnectionError:
            answered = False
        except (KafkaError, TimeoutError, OSError):
            return False
        finally:
            connection.close()
        if not answered and again:
            # A server that is shutting down does the same, but only once.
            return await self._answers(server, again=False)
        if not answered:
            raise self._shut_out(server)
        return True

    async def _connect(self, host: str, port: int, server: str) -> AIOKafkaConnection | None:
        try:
            return await create_conn(host, port, **self._security())
        except (SaslAuthenticationFailed, AuthenticationFailedError):
            raise SettingError(
                "kafka.sasl_username", self.username, "the broker rejected this user and password"
            ) from None
        except (AuthenticationMethodNotSupported, UnsupportedSaslMechanismError):
            raise SettingError(
                "kafka.sasl_mechanism", self.sasl_mechanism, "the broker does not support it"
            ) from None
        except IllegalSaslStateError:
            raise self._other_protocol(
                server, "does not accept SASL logins; use PLAINTEXT or SSL"
            ) from None
        except ssl.SSLError as error:
            raise self._tls_failure(server, error) from None
        except (socket.gaierror, UnicodeError) as error:
            if isinstance(error, OSError) and error.errno == socket.EAI_AGAIN:
                return None
            raise SettingError("kafka.bootstrap_servers", server, "no such host") from None
        except (TimeoutError, OSError, KafkaError) as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLError):
                raise self._tls_failure(server, cause) from None
            if isinstance(cause, asyncio.IncompleteReadError) and _is_tls(cause):
                raise self._other_protocol(server, "requires TLS; use SSL or SASL_SSL") from None
            if self.ssl_context is not None and await _speaks_plainly(host, port):
                raise self._other_protocol(
                    server, "does not use TLS; use PLAINTEXT or SASL_PLAINTEXT"
                ) from None
            return None

    def _other_protocol(self, server: str, fact: str) -> SettingError:
        return SettingError("kafka.security_protocol", self.security_protocol, f"{server} {fact}")

    def _tls_failure(self, server: str, error: ssl.SSLError) -> SettingError:
        if isinstance(error, ssl.SSLCertVerificationError):
            if error.verify_code in _NOT_TRUSTED:
                return SettingError(
                    "kafka.ssl_ca_file",
                    "not the CA that signed the broker's certificate",
                    f"{error.verify_message}; name the file with that CA",
                )
            return SettingError(
                "kafka.bootstrap_servers",
                server,
                f"its certificate was rejected ({error.verify_message})",
            )
        if "CERTIFICATE" in (error.reason or ""):
            return SettingError(
                "kafka.ssl_cert_file",
                "missing or not trusted",
                f"{server} requires a client certificate from a CA that it trusts",
            )
        return self._other_protocol(server, f"failed the TLS handshake ({error.reason})")

    def _shut_out(self, server: str) -> SettingError:
        """A server that accepts the connection but does not answer requires a login."""
        if self.token_file is not None:
            return SettingError(
                "kafka.sasl_token_file", self.token_file, f"{server} rejected the token in it"
            )
        return self._other_protocol(server, "closes the connection; it may require a SASL login")


# Verify codes of OpenSSL for a chain that does not end in a trusted CA.
_NOT_TRUSTED = {2, 18, 19, 20, 21}


def _is_tls(error: asyncio.IncompleteReadError) -> bool:
    """Whether the first bytes, read as the length of an answer, start a TLS alert."""
    return error.expected is not None and error.expected >> 16 == 0x1503


async def _speaks_plainly(host: str, port: int) -> bool:
    try:
        connection = await create_conn(host, port)
    except (TimeoutError, OSError, KafkaError):
        return False
    connection.close()
    return True


class _TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the file for every connection: tokens expire, and another process renews them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        return await asyncio.to_thread(lambda: self._path.read_text(encoding="utf-8").strip())
