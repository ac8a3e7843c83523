"""A broker that must be reached with encryption and passwords, and certificates for it.

Its listeners: one without any security for whoever sets things up; one for each way that
users come in.
"""

import base64
import ipaddress
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kafka.broker import Broker, free_port

USER, GUEST, PASSWORD = "streamer", "guest", "open sesame"
"""The user may do everything, the guest nothing that it is not granted; one password."""
KEY_PASSWORD = "swordfish"


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its files in a directory of its own."""

    directory: Path
    name: str
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def file(self) -> Path:
        """Its own certificate."""
        path = self.directory / f"{self.name}.pem"
        if not path.exists():
            made = self._certificate(self.name, self.key.public_key(), authority=True)
            path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return path

    def issue(self, name: str, password: str | None = None) -> tuple[Path, Path]:
        """A certificate for a name and for 127.0.0.1, and its key, as two files."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, secret = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        made = self._certificate(name, key.public_key(), authority=False)
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        lock = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        secret.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
        )
        return certificate, secret

    def _certificate(
        self, name: str, key: ec.EllipticCurvePublicKey, authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self.key, hashes.SHA256())
        )


@dataclass(frozen=True)
class SecureBroker:
    """Where each way in is: `sasl_ssl` takes SCRAM and PLAIN, `ssl` takes certificates,
    `sasl_plaintext` takes SCRAM and tokens without a signature."""

    broker: Broker
    authority: Authority
    ports: dict[str, int]

    @classmethod
    def make(cls, directory: Path) -> "SecureBroker":
        authority = Authority(directory, "authority")
        certificate, key = authority.issue("broker")
        keys = directory / "broker.keys"
        keys.write_bytes(key.read_bytes() + certificate.read_bytes())
        ports = {name: free_port() for name in ("ssl", "sasl_ssl", "sasl_plaintext")}
        broker = Broker(directory / "kafka", scram_users={USER: PASSWORD, GUEST: PASSWORD})
        broker.extra = _properties(broker, ports, keys, authority.file)
        return cls(broker, authority, ports)

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


def _properties(
    broker: Broker, ports: dict[str, int], keys: Path, authority: Path
) -> dict[str, str]:
    listeners = [f"{name.upper()}://127.0.0.1:{port}" for name, port in ports.items()]
    open_listener = f"PLAINTEXT://127.0.0.1:{broker.port}"
    controller = f"CONTROLLER://127.0.0.1:{broker.controller_port}"
    protocols = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
    login = "org.apache.kafka.common.security"
    scram = f"{login}.scram.ScramLoginModule required;"
    return {
        "listeners": ",".join([open_listener, controller, *listeners]),
        "advertised.listeners": ",".join([open_listener, *listeners]),
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in protocols)]
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{login}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            f"{login}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER};User:CN={USER}",
        "transaction.max.timeout.ms": "120000",
        "connection.failed.authentication.delay.ms": "0",
    }


def token(user: str) -> str:
    """An unsigned token for this user, as the broker of the tests takes them."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now - 10, "exp": now + 600})
    texts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    ]
    return ".".join([*texts, ""])
