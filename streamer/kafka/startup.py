"""From settings to a connection, and to topics that are configured correctly."""

from __future__ import annotations

import logging
import re
import ssl
from pathlib import Path

from streamer.errors import SettingError
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import LedgerTopics
from streamer.kafka.ledger_records import LARGEST_STATE, LARGEST_STEP, largest_result
from streamer.kafka.rejects import KafkaRejects, largest_reject
from streamer.kafka.source import KafkaSource
from streamer.kafka.topics import TopicAdmin, TopicNeed, ensure_topics
from streamer.kafka.transactions import Transactions
from streamer.settings import KafkaSettings

_log = logging.getLogger(__name__)
_SERVER = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})")


def connection_of(settings: KafkaSettings) -> Connection:
    secure = settings.security_protocol in {"SSL", "SASL_SSL"}
    sasl = settings.security_protocol.startswith("SASL")
    _warn_of_unused(settings, secure, sasl)
    mechanism = settings.sasl_mechanism if sasl else None
    password = _password(settings) if sasl and mechanism != "OAUTHBEARER" else None
    if sasl and mechanism == "OAUTHBEARER":
        if settings.sasl_token_file is None:
            raise SettingError(
                "kafka.sasl_token_file", "not set", "OAUTHBEARER requires a file with a token"
            )
        _read("kafka.sasl_token_file", settings.sasl_token_file)
    elif sasl and not settings.sasl_username:
        raise SettingError("kafka.sasl_username", "not set", f"{mechanism} requires it")
    return Connection(
        servers=_servers(settings.bootstrap_servers),
        security_protocol=settings.security_protocol,
        ssl_context=_ssl_context(settings) if secure else None,
        sasl_mechanism=mechanism,
        username=settings.sasl_username,
        password=password,
        token_file=settings.sasl_token_file if mechanism == "OAUTHBEARER" else None,
        request_timeout_ms=round(settings.request_timeout_seconds * 1000),
    )


def _warn_of_unused(settings: KafkaSettings, secure: bool, sasl: bool) -> None:
    """A login or certificate that is never sent suggests a wrong security protocol."""
    unused = [
        *(() if sasl else ("sasl_username", "sasl_password")),
        *(() if sasl else ("sasl_password_file", "sasl_token_file")),
        *(() if secure else ("ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_key_password")),
    ]
    for name in unused:
        if getattr(settings, name) is not None:
            _log.warning(
                "kafka.%s is set but not used, because kafka.security_protocol is %s",
                name,
                settings.security_protocol,
            )


def topic_needs(settings: KafkaSettings, max_item_bytes: int) -> list[TopicNeed]:
    """The topics that the service uses, and what they must be like.

    A record that a topic does not take would be noticed only after a step is decided.
    """
    timestamps = "message.timestamp.type"
    return [
        TopicNeed(
            "kafka.events_topic",
            settings.events_topic,
            settings.events_partitions,
            config={timestamps: "LogAppendTime"},
            required=() if settings.trust_producer_timestamps else (timestamps,),
        ),
        TopicNeed(
            "kafka.hitters_topic",
            settings.hitters_topic,
            record_bytes=largest_result(max_item_bytes),
        ),
        TopicNeed("kafka.steps_topic", settings.steps_topic, record_bytes=LARGEST_STEP),
        TopicNeed(
            "kafka.rejected_topic",
            settings.rejected_topic,
            record_bytes=largest_reject(settings.rejected_payload),
        ),
        TopicNeed(
            "kafka.state_topic",
            settings.state_topic,
            one_partition=True,
            config={"cleanup.policy": "compact"},
            required=("cleanup.policy",),
            record_bytes=LARGEST_STATE,
        ),
    ]


def ledger_topics(settings: KafkaSettings) -> LedgerTopics:
    return LedgerTopics(
        settings.state_topic, settings.hitters_topic, settings.steps_topic, settings.events_topic
    )


def rejects_of(settings: KafkaSettings, transactions: Transactions) -> KafkaRejects:
    return KafkaRejects(
        transactions, settings.rejected_topic, settings.events_topic, settings.rejected_payload
    )


def source_of(settings: KafkaSettings, connection: Connection, admin: TopicAdmin) -> KafkaSource:
    return KafkaSource(
        connection, admin, settings.events_topic, settings.group_id, settings.max_poll_records
    )


async def prepare_topics(admin: TopicAdmin, settings: KafkaSettings, max_item_bytes: int) -> None:
    """Topics exist and are right; one line if producers are trusted with arrival times."""
    needs = topic_needs(settings, max_item_bytes)
    _check_different(needs)
    facts = await ensure_topics(admin, needs, settings.create_topics, settings.replication_factor)
    kind = facts[settings.events_topic].config.get("message.timestamp.type")
    if kind != "LogAppendTime":
        _log.warning(
            "kafka.trust_producer_timestamps is true and %s has timestamps of type %s: a "
            "producer's clock decides which events count and when steps close, so the guarantee "
            "holds only if every producer can be trusted with it",
            settings.events_topic,
            kind,
        )


def _check_different(needs: list[TopicNeed]) -> None:
    """Results in the events topic would be read as events; in the state topic, destroy it."""
    settings: dict[str, str] = {}
    for need in needs:
        if need.name in settings:
            allowed = f"{settings[need.name]} names the same topic; name another one"
            raise SettingError(need.setting, need.name, allowed)
        settings[need.name] = need.setting


def _servers(text: str) -> tuple[str, ...]:
    servers = tuple(part.strip() for part in text.split(",") if part.strip())
    if not servers or not all(map(_is_server, servers)):
        raise SettingError(
            "kafka.bootstrap_servers", text or "empty", "use host:port, separated by commas"
        )
    return servers


def _is_server(text: str) -> bool:
    found = _SERVER.fullmatch(text)
    return found is not None and 0 < int(found[2]) < 1 << 16


def _password(settings: KafkaSettings) -> str:
    if settings.sasl_password_file is not None:
        if settings.sasl_password is not None:
            raise SettingError(
                "kafka.sasl_password_file",
                settings.sasl_password_file,
                "kafka.sasl_password is set too: use only one",
            )
        return _read("kafka.sasl_password_file", settings.sasl_password_file)
    if settings.sasl_password is None:
        raise SettingError(
            "kafka.sasl_password", "not set", f"{settings.sasl_mechanism} requires it"
        )
    return settings.sasl_password.get_secret_value()


def _ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    for setting, path in (
        ("kafka.ssl_ca_file", settings.ssl_ca_file),
        ("kafka.ssl_cert_file", settings.ssl_cert_file),
        ("kafka.ssl_key_file", settings.ssl_key_file),
    ):
        if path is not None and not path.is_file():
            raise SettingError(setting, path, "no such file")
    if settings.ssl_key_file is not None and settings.ssl_cert_file is None:
        raise SettingError(
            "kafka.ssl_key_file", settings.ssl_key_file, "set kafka.ssl_cert_file too"
        )
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_file)
    except (ssl.SSLError, OSError):
        raise SettingError(
            "kafka.ssl_ca_file", settings.ssl_ca_file, "it contains no PEM certificates"
        ) from None
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_cert_file is not None:
        secret = settings.ssl_key_password
        try:
            context.load_cert_chain(
                settings.ssl_cert_file,
                settings.ssl_key_file,
                secret.get_secret_value() if secret else "",  # None: OpenSSL would prompt
            )
        except (ssl.SSLError, OSError):
            raise SettingError(
                "kafka.ssl_cert_file",
                settings.ssl_cert_file,
                "it and kafka.ssl_key_file are not a PEM certificate and its key, or "
                "kafka.ssl_key_password is wrong",
            ) from None
    return context


def _read(setting: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(setting, path, f"{error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(setting, path, "it is not a text file") from None
