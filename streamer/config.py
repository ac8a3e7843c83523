"""All settings, in one model: from flags, the environment, and a YAML file.

Every setting is `STREAMER_SECTION__NAME` in the environment and `section: name:` in the
file. Flags win over the environment, the environment over the file. Wrong settings stop
the start with one sentence each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableEnvironment

from streamer.errors import ConfigurationError
from streamer.privacy.terms import Method, Neighbours

PREFIX = "STREAMER_"


class Section(BaseModel):
    """A misspelt name is a mistake, not a setting that does nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """In YAML `yes` and `on` are true, which would count as 1."""
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation is not bool:
            raise PydanticCustomError("truth", "true and false are no values of it")
        return value


class StreamSettings(Section):
    """How time is cut into steps, and what an event may be."""

    step_seconds: float = Field(default=60.0, ge=0.001, le=86_400 * 366)
    """Length of a step. Fixed for a journal's life."""
    lateness_seconds: float = Field(default=10.0, ge=0, le=86_400 * 366)
    """How long after the end of its step an event may arrive."""
    epoch: str = "1970-01-01T00:00:00Z"
    """Where step 0 begins. Fixed for a journal's life."""
    ahead_seconds: float = Field(default=300.0, ge=0, le=86_400 * 366)
    """How far an event's time may lie ahead of its arrival, and an arrival ahead of now."""
    max_record_bytes: int = Field(default=65_536, ge=64, le=1 << 24)
    max_user_bytes: int = Field(default=256, ge=1, le=1 << 16)
    max_item_bytes: int = Field(default=1_024, ge=1, le=1 << 16)


class PrivacySettings(Section):
    """The guarantee. Pinned in the journal for a period; changes begin with the next one."""

    epsilon: float = 1.0
    delta: float = 1e-6
    contributions: int = 10
    """Reports that a user counts for in a period."""
    period_steps: int = 1440
    refresh_steps: int = 1
    """A reported item is not asked about again for so many steps."""
    neighbours: Neighbours = Neighbours.REPLACE
    calibration: Literal[Method.EXACT, Method.THEOREM] = Method.EXACT
    threshold: int | None = None
    """By hand; otherwise planned."""
    beta: float = 0.05
    """The chance of any miss or false report in a period that the threshold is planned for."""
    items: int = 100_000
    """The largest number of distinct items in a step that the threshold is planned for."""
    key: SecretStr | None = None
    """64 hex digits: what users' pseudonyms are made with."""
    key_file: Path | None = None
    """A file that holds the key. Without either, a key is made and kept with a file journal."""


Name = Annotated[str, Field(min_length=1)]


class KafkaSettings(Section):
    """The brokers, the topics, and who we are to them."""

    bootstrap_servers: str = "localhost:9092"
    """host:port, several separated by commas."""
    events_topic: Name = "telemetry.events"
    hitters_topic: Name = "telemetry.hitters"
    steps_topic: Name = "telemetry.steps"
    rejected_topic: Name = "telemetry.rejected"
    state_topic: Name = "telemetry.state"
    """The journal: compacted, one partition, written by this service alone."""
    transactional_id: Name = "streamer"
    """One per deployment: an instance that starts with it ends all older ones."""
    group_id: Name = "streamer"
    """Its committed offsets are for lag tools only."""
    create_topics: bool = False
    """Make topics that are missing, with the right settings."""
    events_partitions: int = Field(default=4, ge=1, le=10_000)
    """Partitions of the events topic, if it is made."""
    replication_factor: int | None = Field(default=None, ge=1, le=1_000)
    """Of topics that are made; 3 if not given, or as many as there are brokers."""
    rejected_payload: bool = False
    """Put the raw record, which is personal data, into the rejected topic."""
    start_anew: bool = False
    """Start with an empty state topic beside a steps topic that is not, at the current step:
    users' budgets are spent again."""
    skew_seconds: float = Field(default=1.0, ge=0, le=3_600)
    """How far the brokers' clocks may be behind this machine's."""
    max_poll_records: int = Field(default=5_000, ge=1, le=1_000_000)
    max_buffered_events: int = Field(default=5_000_000, ge=1)
    """From here on partitions that are ahead of others wait for them."""
    request_timeout_seconds: float = Field(default=15.0, ge=0.1, le=600)
    transaction_timeout_seconds: float = Field(default=60.0, ge=1, le=900)
    shutdown_seconds: float = Field(default=20.0, ge=0.1, le=600)
    """How long an orderly end may take."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "PLAIN"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_password_file: Path | None = None
    sasl_token_file: Path | None = None
    """OAUTHBEARER: read anew for every connection."""
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    """A client certificate, with its key in ssl_key_file."""
    ssl_key_file: Path | None = None
    ssl_key_password: SecretStr | None = None
    ssl_check_hostname: bool = True


class HttpSettings(Section):
    """The public port: the live page and its API, only values that passed the monitor."""

    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0 in a container."""
    port: int = Field(default=8080, ge=0, le=65_535)
    """0: any that is free."""


class MetricsSettings(Section):
    """The operators' port: health, readiness, metrics."""

    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0 in a container."""
    port: int = Field(default=9090, ge=0, le=65_535)
    """0: any that is free."""
    items: int = Field(default=100, ge=0, le=10_000)
    """The most items that streamer_hitter_estimate shows at a time."""


class LogSettings(Section):
    """What is said on stderr, and how."""

    level: Literal["info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"
    """auto: text on a terminal, otherwise JSON lines."""


class Settings(BaseSettings):
    """The effective settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    stream: StreamSettings = StreamSettings()
    privacy: PrivacySettings = PrivacySettings()
    kafka: KafkaSettings = KafkaSettings()
    http: HttpSettings = HttpSettings()
    metrics: MetricsSettings = MetricsSettings()
    log: LogSettings = LogSettings()


def load(flags: Mapping[str, Mapping[str, Any]], file: Path | None = None) -> Settings:
    """The settings from all three places; flags that are None were not given."""
    content = _read(file)

    class FromEverywhere(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings
            return init_settings, env_settings, InitSettingsSource(settings_cls, content)

    given = {
        section: {name: value for name, value in values.items() if value is not None}
        for section, values in flags.items()
    }
    _check_environment()
    try:
        return FromEverywhere(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigurationError([_sentence(dict(detail)) for detail in error.errors()]) from None
    except UnreadableEnvironment as error:
        raise ConfigurationError([f"the environment cannot be read: {error}"]) from None


def _check_environment() -> None:
    """A section that does not exist would be passed over silently otherwise.

    Names without a double underscore are not ours: Kubernetes sets STREAMER_SERVICE_HOST
    and the like for a Service that is called streamer.
    """
    sections = tuple(f"{PREFIX}{name.upper()}__" for name in Settings.model_fields)
    unknown = [
        f"{name} is not a setting: see 'streamer config' for those that are"
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and "__" in name and not name.startswith(sections)
    ]
    right = {
        f"{PREFIX}{section}_{name}".upper(): f"{PREFIX}{section}__{name}".upper()
        for section, field in Settings.model_fields.items()
        for name in type(field.default).model_fields
    }
    unknown += [
        f"{name} is not a setting: write {right[name]}, with two underscores"
        for name in sorted(right.keys() & os.environ.keys())
        if "://" not in os.environ[name]  # of a Service that is called streamer-http
    ]
    if unknown:
        raise ConfigurationError(unknown)


class _Loader(yaml.SafeLoader):
    """Leaves a time as it is written: stream.epoch is one. A name that is there twice is a
    mistake: which of its values counts would depend on their order.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigurationError([f"config names {twice[0]} twice: keep one of them"])
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506
    except OSError as error:
        raise ConfigurationError([f"config is {file}: {error.strerror}"]) from None
    except yaml.MarkedYAMLError as error:
        # Without the text around it, which may hold a secret.
        where = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ConfigurationError([f"config is {file}: it is not YAML{where}"]) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationError([f"config is {file}: it is not YAML"]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(
            [f"config is {file}: it must hold sections such as stream: and privacy:"]
        )
    wrong = [name for name, section in content.items() if not isinstance(section, dict)]
    if wrong:
        raise ConfigurationError(
            [f"config is {file}: {name} must be a section with settings" for name in wrong]
        )
    return {str(name): section for name, section in content.items()}


def _sentence(detail: dict[str, Any]) -> str:
    """One readable sentence for one wrong setting."""
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"{name} is not a setting: see 'streamer config' for those that are"
    # A whole section may hold a secret, too.
    secret = len(detail["loc"]) == 1 or name.endswith(("key", "password"))
    shown = "given" if secret else detail["input"]
    # The name of an enumeration's member means nothing to who writes its value.
    wanted = re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", detail["msg"])
    return f"{name} is {shown}: {wanted[0].lower()}{wanted[1:]}"
