"""Reads the settings from flags, the environment and a YAML file.

Every setting is `STREAMER_SECTION__NAME` in the environment and `section: name:` in the
file. Flags override the environment, which overrides the file. Invalid settings prevent
startup, with one sentence each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableEnvironment

from streamer.errors import ConfigurationError
from streamer.settings import SECTIONS, Settings

PREFIX = "STREAMER_"
_LIST = "run 'streamer config' to list all settings"


def load(flags: Mapping[str, Mapping[str, Any]], file: Path | None = None) -> Settings:
    """The settings from all three sources; flags that are None were not given."""
    content = _read(file)

    class FromEverywhere(Settings, BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__")

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
        raise ConfigurationError([f"the environment is not valid: {error}"]) from None


def _check_environment() -> None:
    """Reject unknown sections, which would be ignored silently otherwise.

    Names without a double underscore are not ours: Kubernetes sets STREAMER_SERVICE_HOST
    and similar for a Service named streamer.
    """
    sections = tuple(f"{PREFIX}{name.upper()}__" for name in SECTIONS)
    unknown = [
        f"{name} is not a setting: {_LIST}"
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and "__" in name and not name.startswith(sections)
    ]
    right = {
        f"{PREFIX}{section}_{name}".upper(): f"{PREFIX}{section}__{name}".upper()
        for section, model in SECTIONS.items()
        for name in model.model_fields
    }
    unknown += [
        f"{name} is not a setting: write {right[name]}, with two underscores"
        for name in sorted(right.keys() & os.environ.keys())
        if "://" not in os.environ[name]  # set for a Service named streamer-http
    ]
    if unknown:
        raise ConfigurationError(unknown)


class _Loader(yaml.SafeLoader):
    """Keeps times as text, for stream.epoch, and rejects duplicate names: which value counts
    would depend on their order.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigurationError([f"config sets {twice[0]} twice: remove one of them"])
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
        # Without the surrounding text, which may contain a secret.
        where = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ConfigurationError([f"config is {file}: it is not valid YAML{where}"]) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationError([f"config is {file}: it is not valid YAML"]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(
            [f"config is {file}: it must contain sections such as stream: and privacy:"]
        )
    wrong = [name for name, section in content.items() if not isinstance(section, dict)]
    if wrong:
        raise ConfigurationError(
            [f"config is {file}: {name} must be a section with settings" for name in wrong]
        )
    return {str(name): section for name, section in content.items()}


def _sentence(detail: dict[str, Any]) -> str:
    """One readable sentence for one invalid setting."""
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"{name} is not a setting: {_LIST}"
    if len(detail["loc"]) == 1:
        # Without its value, which may contain a secret. Sections of a file are checked before.
        return f"{PREFIX}{name.upper()} must be a JSON object with settings of {name}"
    secret = name.endswith(("key", "password"))
    shown = "********" if secret else "empty" if detail["input"] == "" else detail["input"]
    # Users write an enumeration's values and never see the names of its members.
    wanted = re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", detail["msg"])
    return f"{name} is {shown}: {wanted[0].lower()}{wanted[1:]}"
