"""How to reach the brokers, and whether they can be reached that way."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

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
        """Whether some broker answers. What only a change of settings can mend is raised."""
        for server in self.servers:
            host, _, port = server.rpartition(":")
            if await self._answers(host.strip("[]"), int(port)):
                return True
        return False

    async def _answers(self, host: str, port: int) -> bool:
        try:
            connection = await create_conn(host, port, **self._security())
        except (SaslAuthenticationFailed, AuthenticationFailedError):
            raise SettingError(
                "kafka.sasl_username", self.username, "the broker refuses it with this password"
            ) from None
        except (AuthenticationMethodNotSupported, UnsupportedSaslMechanismError):
            raise SettingError(
                "kafka.sasl_mechanism", self.sasl_mechanism, "the broker does not offer it"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise SettingError(
                "kafka.ssl_ca_file",
                "not the one that the broker's certificate is from",
                f"{error.verify_message}; name the file with that authority",
            ) from None
        except ssl.SSLError as error:
            raise SettingError(
                "kafka.security_protocol",
                self.security_protocol,
                f"the TLS handshake with {host}:{port} fails ({error.reason})",
            ) from None
        except socket.gaierror:
            raise SettingError(
                "kafka.bootstrap_servers", f"{host}:{port}", "there is no host of that name"
            ) from None
        except (TimeoutError, OSError, KafkaError):
            return False
        connection.close()
        return True


class _TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the token anew for every connection: whoever renews it writes the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        return await asyncio.to_thread(lambda: self._path.read_text(encoding="utf-8").strip())
