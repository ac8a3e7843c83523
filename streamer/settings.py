"""All settings: each is declared here, once, with its type, its default and its description.

Derived from these declarations are the flags of `run` with their help, the terms of a period,
the help and the defaults of `plan`, `audit` and `compare`, and the comments that `config`
prints. `config.py` reads the values.

Every command imports this module, so its import must stay quick: no model is made in it,
and validators are built when they are first needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from streamer.privacy.terms import Method, Neighbours

LONGEST_SECONDS: Final = 86_400 * 366
"""The longest step, lateness or lead that makes sense."""
Value = TypeVar("Value")
IS_FLAG: Final[JsonDict] = {"flag": True}


def setting(default: Value, description: str, **more: Any) -> Value:
    """A setting of a section; `more` is what pydantic's Field takes."""
    return cast(Value, Field(default, description=description, **more))


def flag(default: Value, description: str, **more: Any) -> Value:
    """A setting that is a flag of `streamer run`, too."""
    return setting(default, description, json_schema_extra=IS_FLAG, **more)


class Section(BaseModel):
    """A misspelt name is a mistake, not a setting that does nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """In YAML `yes` and `on` are true, which would count as 1."""
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation is not bool:
            raise PydanticCustomError(
                "truth", "it must not be true or false; YAML reads yes, no, on and off as these"
            )
        return value


class StreamSettings(Section):
    """How time is cut into steps, and what an event may be."""

    step_seconds: float = flag(
        60.0, "Seconds in a step. Fixed for a journal's life.", ge=0.001, le=LONGEST_SECONDS
    )
    lateness_seconds: float = flag(
        10.0,
        "Seconds after the end of its step until which an event may arrive.",
        ge=0,
        le=LONGEST_SECONDS,
    )
    epoch: str = flag(
        "1970-01-01T00:00:00Z", "The time at which step 0 begins. Fixed for a journal's life."
    )
    ahead_seconds: float = flag(
        300.0,
        "Seconds that an event's time may lie ahead of its arrival, and an arrival ahead of now.",
        ge=0,
        le=LONGEST_SECONDS,
    )
    max_record_bytes: int = setting(65_536, "A longer record is rejected.", ge=64, le=1 << 24)
    max_user_bytes: int = setting(
        256, "A record with a longer user id is rejected.", ge=1, le=1 << 16
    )
    max_item_bytes: int = setting(
        1_024, "A record with a longer item is rejected.", ge=1, le=1 << 16
    )


class PrivacySettings(Section):
    """The guarantee. Pinned in the journal for a period; changes begin with the next one."""

    epsilon: float = flag(
        1.0, "ε: how much one user may change the odds of any output in a period."
    )
    delta: float = flag(1e-6, "δ: the small probability that the bound ε leaves out.")
    contributions: int = flag(
        10, "k: reports that a user counts for in a period; after that the user no longer counts."
    )
    period_steps: int = flag(1440, "Steps in a budget period; users' budgets start again after it.")
    refresh_steps: int = flag(1, "Steps from a report of an item until it is asked about again.")
    neighbours: Neighbours = flag(
        Neighbours.REPLACE,
        "Which two worlds must look alike: one user's history replaced, or one user added or "
        "removed.",
    )
    calibration: Literal[Method.EXACT, Method.THEOREM] = flag(
        Method.EXACT,
        "The analysis that the noise comes from: exact is ours, theorem the paper's constants.",
    )
    threshold: int | None = flag(
        None, "The noisy count from which an item is reported; planned if not given."
    )
    beta: float = flag(
        0.05,
        "β: the chance of any miss or false report in a period that the threshold is planned for.",
    )
    items: int = flag(
        100_000, "The largest number of distinct items in a step that the threshold is planned for."
    )
    key: SecretStr | None = setting(None, "64 hex digits: the key of the users' pseudonyms.")
    key_file: Path | None = flag(
        None,
        "A file that holds the key of the users' pseudonyms. Without it and without "
        "privacy.key, a key is made and kept with a file journal.",
    )


Name = Annotated[str, Field(min_length=1)]


class KafkaSettings(Section):
    """The brokers, the topics, and this deployment's identity."""

    bootstrap_servers: str = flag(
        "localhost:9092", "The Kafka brokers, as host:port, several separated by commas."
    )
    events_topic: Name = setting("telemetry.events", "Where events are read from.")
    hitters_topic: Name = setting("telemetry.hitters", "Where hitters are written to.")
    steps_topic: Name = setting("telemetry.steps", "Where a record per closed step is written to.")
    rejected_topic: Name = setting(
        "telemetry.rejected", "Where records that are not events are reported."
    )
    state_topic: Name = setting(
        "telemetry.state", "The journal: compacted, one partition, written by this service alone."
    )
    transactional_id: Name = setting(
        "streamer", "One per deployment: an instance that starts with it ends all older ones."
    )
    group_id: Name = setting("streamer", "Its committed offsets are for lag tools only.")
    create_topics: bool = flag(False, "Create missing Kafka topics with the right settings.")
    events_partitions: int = setting(
        4, "Partitions of the events topic, if it is created.", ge=1, le=10_000
    )
    replication_factor: int | None = setting(
        None,
        "Of topics that are created; if not given 3, or the number of brokers if that is less.",
        ge=1,
        le=1_000,
    )
    rejected_payload: bool = setting(
        False, "Put the raw record, which is personal data, into the rejected topic."
    )
    start_anew: bool = setting(
        False,
        "Start with an empty state topic beside a steps topic that is not, at the current "
        "step: users' budgets are spent again.",
    )
    skew_seconds: float = setting(
        1.0, "Seconds that the brokers' clocks may be behind this machine's.", ge=0, le=3_600
    )
    max_poll_records: int = setting(
        5_000, "The most records that are taken from the brokers at a time.", ge=1, le=1_000_000
    )
    max_buffered_events: int = setting(
        5_000_000, "From this number on, partitions that are ahead of others wait for them.", ge=1
    )
    request_timeout_seconds: float = setting(
        15.0, "How long a broker may take to answer.", ge=0.1, le=600
    )
    transaction_timeout_seconds: float = setting(
        60.0, "After this time the brokers abort a transaction that was not ended.", ge=1, le=900
    )
    shutdown_seconds: float = setting(
        20.0, "How long an orderly shutdown may take.", ge=0.1, le=600
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT", "Whether connections are encrypted, and whether there is a login."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = setting(
        "PLAIN", "How to log in, if security_protocol has SASL."
    )
    sasl_username: str | None = setting(None, "Whom to log in as.")
    sasl_password: SecretStr | None = setting(None, "The password of sasl_username.")
    sasl_password_file: Path | None = setting(
        None, "A file that holds the password of sasl_username."
    )
    sasl_token_file: Path | None = setting(
        None, "OAUTHBEARER: a file that holds the token, read again for every connection."
    )
    ssl_ca_file: Path | None = setting(
        None,
        "The authorities that brokers' certificates are checked against; the system's if not "
        "given.",
    )
    ssl_cert_file: Path | None = setting(
        None, "A client certificate, with its key in ssl_key_file."
    )
    ssl_key_file: Path | None = setting(None, "The key of the client certificate.")
    ssl_key_password: SecretStr | None = setting(
        None, "The password of ssl_key_file, if it has one."
    )
    ssl_check_hostname: bool = setting(True, "Whether a broker's certificate must name its host.")


class HttpSettings(Section):
    """The public port: the live page and its API, only values that passed the monitor."""

    host: str = setting("127.0.0.1", "Where to listen; 0.0.0.0 in a container.")
    port: int = setting(8080, "0: any that is free.", ge=0, le=65_535)


class MetricsSettings(Section):
    """The operators' port: health, readiness, metrics."""

    host: str = setting("127.0.0.1", "Where to listen; 0.0.0.0 in a container.")
    port: int = setting(9090, "0: any that is free.", ge=0, le=65_535)
    items: int = setting(
        100, "The most items that streamer_hitter_estimate shows at a time.", ge=0, le=10_000
    )


class LogSettings(Section):
    """What is logged to stderr, and how."""

    level: Literal["info", "warning", "error"] = setting(
        "info", "The least severe messages that are logged."
    )
    format: Literal["auto", "json", "text"] = setting(
        "auto", "auto: text on a terminal, otherwise JSON lines."
    )


class Settings(BaseModel):
    """The effective settings, by section."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    stream: StreamSettings = Field(default_factory=StreamSettings)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    log: LogSettings = Field(default_factory=LogSettings)


SECTIONS: Final[dict[str, type[Section]]] = {
    name: cast(type[Section], field.annotation) for name, field in Settings.model_fields.items()
}
