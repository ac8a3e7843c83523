"""All settings: each is declared once, with its type, default and description; those of events in
`event_settings.py`, all others here.

The flags of `run` with their help, the terms of a period, the help and defaults of `plan`,
`audit` and `compare`, and the comments that `config` prints are derived from these
declarations. `config.py` reads the values.

Every command imports this module, so the import must stay fast: it creates no model, and
validators are built on first use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError

from streamer.declarations import Section, flag, setting
from streamer.event_settings import EventsSettings
from streamer.privacy.terms import Attention, Method, Neighbours

LONGEST_SECONDS: Final = 86_400 * 366
"""The longest step, lateness or lead that makes sense."""


class StreamSettings(Section):
    """How time is divided into steps, and which events are accepted."""

    step_seconds: float = flag(
        60.0,
        "Length of a step in seconds. Fixed once a journal exists.",
        ge=0.001,
        le=LONGEST_SECONDS,
    )
    lateness_seconds: float = flag(
        10.0,
        "How many seconds after the end of its step an event may still arrive.",
        ge=0,
        le=LONGEST_SECONDS,
    )
    epoch: str = flag(
        "1970-01-01T00:00:00Z", "The time at which step 0 begins. Fixed once a journal exists."
    )
    start: str | None = flag(
        None,
        "Where a new stream begins; without it, the step of the clock when the service first "
        "starts (a file without --until: the first event).",
    )
    items_per_step: int = flag(
        3,
        "How many different items of a user count in a step, the latest ones. Changes take effect "
        "with the next budget period.",
    )
    items_file: Path | None = flag(
        None,
        "A file with declared items, one a line: known to everybody, and asked about in every step "
        "at a lower threshold. Changes take effect with the next budget period.",
    )
    publish_delay_seconds: float = setting(
        0.25,
        "Seconds after a step is due (its end, lateness_seconds and kafka.skew_seconds) at which "
        "its results leave.",
        ge=0,
        le=3_600,
    )
    ahead_seconds: float = flag(
        300.0,
        "How many seconds an event's time may be ahead of its arrival, and an arrival ahead of "
        "this machine's clock.",
        ge=0,
        le=LONGEST_SECONDS,
    )
    max_record_bytes: int = setting(65_536, "Longer records are rejected.", ge=64, le=1 << 24)
    max_user_bytes: int = setting(
        256, "Records with a longer user id are rejected.", ge=1, le=1 << 16
    )
    max_item_bytes: int = setting(
        1_024, "Records with a longer item are rejected.", ge=1, le=1 << 16
    )


class PrivacySettings(Section):
    """The guarantee. Pinned in the journal per period; changes take effect with the next one."""

    epsilon: float = flag(
        1.0, "ε: how much one user may change the odds of any output in a period."
    )
    delta: float = flag(
        1e-6, "δ: how much the probability of any output may change in addition to the bound ε."
    )
    contributions: int = flag(
        10,
        "k: a user's budget in a period. A report costs 1; with the horizon calibration, one that "
        "is far above its threshold costs 0.2. A user without budget is ignored.",
    )
    period_steps: int = flag(
        1440, "Steps in a budget period; every period starts with full budgets."
    )
    attention: Attention | None = flag(
        None,
        "What is asked about an item: changes (a new item for its value, then mostly whether it is "
        "still there, which costs nothing) or every_step (its value in every step). By default "
        "changes with the horizon calibration, and every_step with the others.",
    )
    value_every_steps: int | None = flag(
        None,
        "With attention changes, the longest time between two values of an item that stays "
        "public, in steps; planned from the budget if not given.",
    )
    refresh_steps: int = flag(
        1,
        "With attention every_step, the steps from a report of an item until it can be reported "
        "again.",
    )
    neighbours: Neighbours = flag(
        Neighbours.REPLACE,
        "Which change the guarantee hides: one user's history replaced by another, or one user "
        "added or removed.",
    )
    calibration: Literal[Method.HORIZON, Method.EXACT, Method.THEOREM] = flag(
        Method.HORIZON,
        "How the noise is calibrated: horizon (Gaussian, for the questions of one period), exact "
        "(Laplace, for any number of questions) or theorem (the paper's constants).",
    )
    threshold: int | None = flag(
        None, "Items with a noisy count of at least this are reported; planned if not given."
    )
    beta: float = flag(
        0.05,
        "β: the probability of any miss or false report in a period, for planning the threshold.",
    )
    items: int = flag(
        100_000, "The largest number of distinct items in a step, for planning the threshold."
    )
    declared_items: tuple[str, ...] = setting(
        (), "Declared items, as in stream.items_file, which replaces this list."
    )
    open_domain: bool = setting(
        True, "Whether items that are not declared are asked about and reported, too."
    )
    users: int = flag(
        1_000_000,
        "The number of users, for planning the threshold: in a year, less than one item that a "
        "single user holds is expected to be published. 0: no limit.",
    )
    key: SecretStr | None = setting(None, "The key of the users' pseudonyms, as 64 hex digits.")
    key_file: Path | None = flag(
        None,
        "A file with the key of the users' pseudonyms. Without it and without privacy.key, a key "
        "is generated and kept with a file journal.",
    )


Name = Annotated[str, Field(min_length=1)]


class KafkaSettings(Section):
    """The brokers, the topics, and this deployment's identity."""

    bootstrap_servers: str = flag(
        "localhost:9092", "The Kafka brokers, as host:port, separated by commas."
    )
    events_topic: Name = setting("telemetry.events", "Where events are read from.")
    hitters_topic: Name = setting("telemetry.hitters", "Where hitters are written to.")
    steps_topic: Name = setting("telemetry.steps", "Where a record per closed step is written to.")
    rejected_topic: Name = setting(
        "telemetry.rejected", "Where records that are not valid events are reported."
    )
    state_topic: Name = setting(
        "telemetry.state", "The journal: compacted, one partition, written only by this service."
    )
    transactional_id: Name = setting(
        "streamer", "One per deployment: an instance that starts with it fences off all older ones."
    )
    group_id: Name = setting(
        "streamer", "The consumer group that offsets are committed to, for lag tools only."
    )
    create_topics: bool = flag(False, "Create missing Kafka topics with the right settings.")
    events_partitions: int = setting(
        4, "Partitions of the events topic, if it is created.", ge=1, le=10_000
    )
    replication_factor: int | None = setting(
        None,
        "Replicas of created topics; if not given 3, or the number of brokers if that is less.",
        ge=1,
        le=1_000,
    )
    rejected_payload: bool = setting(
        False, "Include the raw record, which is personal data, in the rejected topic."
    )
    start_anew: bool = setting(
        False,
        "Start at the current step with an empty state topic even if the steps topic has "
        "records: users' budgets are spent again.",
    )
    trust_producer_timestamps: bool = setting(
        False,
        "Accept an events topic whose producers set the timestamps (CreateTime): their clocks then "
        "decide which events count and when steps close.",
    )
    skew_seconds: float = setting(
        1.0,
        "How many seconds the brokers' clocks may be behind this machine's, and behind each other.",
        ge=0,
        le=3_600,
    )
    max_poll_records: int = setting(
        5_000, "Up to this many records are fetched from the brokers at a time.", ge=1, le=1_000_000
    )
    max_buffered_events: int = setting(
        5_000_000,
        "With this many events in memory, partitions that are ahead wait for the others.",
        ge=1,
    )
    request_timeout_seconds: float = setting(
        15.0, "How long a broker may take to answer.", ge=0.1, le=600
    )
    transaction_timeout_seconds: float = setting(
        60.0, "The brokers abort a transaction that is still open after this time.", ge=1, le=900
    )
    shutdown_seconds: float = setting(
        20.0, "How long a graceful shutdown may take.", ge=0.1, le=600
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT", "Whether connections are encrypted (SSL) and authenticated (SASL)."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = setting(
        "PLAIN", "How to authenticate, if security_protocol includes SASL."
    )
    sasl_username: str | None = setting(None, "The user to authenticate as.")
    sasl_password: SecretStr | None = setting(None, "The password of sasl_username.")
    sasl_password_file: Path | None = setting(None, "A file with the password of sasl_username.")
    sasl_token_file: Path | None = setting(
        None, "OAUTHBEARER: a file with the token, read again for every connection."
    )
    ssl_ca_file: Path | None = setting(
        None,
        "The certificate authorities that brokers are verified against; the system's if not given.",
    )
    ssl_cert_file: Path | None = setting(
        None, "A client certificate, with its key in ssl_key_file."
    )
    ssl_key_file: Path | None = setting(None, "The key of the client certificate.")
    ssl_key_password: SecretStr | None = setting(
        None, "The password of ssl_key_file, if it is encrypted."
    )
    ssl_check_hostname: bool = setting(True, "Whether a broker's certificate must name its host.")


LINKED_ITEM: Final = "{item}"
"""Stands for the item in http.link_template."""


class HttpSettings(Section):
    """The public port: the live page and its API, which show private results only."""

    host: str = setting("127.0.0.1", "The address to listen on; 0.0.0.0 in a container.")
    port: int = setting(8080, "0: any free port.", ge=0, le=65_535)
    link_template: str | None = setting(
        None,
        "Where to read more about an item, such as a crash tracker: an http or https address in "
        "which {item} stands for the item, URL-encoded. Alerts and the dashboard link to it.",
    )

    @field_validator("link_template")
    @classmethod
    def _check_link(cls, template: str | None) -> str | None:
        if template is not None and not _is_link(template):
            raise PydanticCustomError(
                "link_template",
                "it must be an http or https address with {item} after the host, such as "
                "https://crashes.example.com/?q={item}",
            )
        return template


def _is_link(template: str) -> bool:
    """An item stands after the host: it must not decide where a link leads."""
    try:
        parts = urlsplit(template)
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and LINKED_ITEM in template
        and LINKED_ITEM not in parts.netloc
        and template.isprintable()
        and " " not in template
    )


class MetricsSettings(Section):
    """The operators' port: health, readiness, metrics."""

    host: str = setting("127.0.0.1", "The address to listen on; 0.0.0.0 in a container.")
    port: int = setting(9090, "0: any free port.", ge=0, le=65_535)
    items: int = setting(
        100, "Up to this many items are shown by the streamer_hitter metrics.", ge=0, le=10_000
    )


class LogSettings(Section):
    """What is logged to stderr, and how."""

    level: Literal["info", "warning", "error"] = setting(
        "info", "Messages below this level are not logged."
    )
    format: Literal["auto", "json", "text"] = setting(
        "auto", "auto: text on a terminal, otherwise JSON lines."
    )


class Settings(BaseModel):
    """The effective settings, by section."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    stream: StreamSettings = Field(default_factory=StreamSettings)
    events: EventsSettings = Field(default_factory=EventsSettings)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    log: LogSettings = Field(default_factory=LogSettings)


SECTIONS: Final[dict[str, type[Section]]] = {
    name: cast(type[Section], field.annotation) for name, field in Settings.model_fields.items()
}
