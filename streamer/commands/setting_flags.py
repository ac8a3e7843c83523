"""Settings as options of a command, generated from their declarations in `settings.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import typer

from streamer.declarations import IS_FLAG, Section
from streamer.settings import SECTIONS

GivenSettings: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By section and name: the settings whose flag is on the command line."""

_PANELS = {"kafka": "Input"}
"""The help panel of a section's flags; by default it has the section's name."""


def with_setting_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Add a flag to the command for every setting that is declared as one.

    The flags replace the command's parameter `given`, which receives their values.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    flags = [(section, name) for section in SECTIONS for name in flags_of(SECTIONS[section])]

    @functools.wraps(command)
    def with_flags(*, context: typer.Context, **values: Any) -> None:
        given: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        for section, name in flags:
            value, source = values.pop(name), context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                given[section][name] = value
        command(**values, given=given)

    with_flags.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(parameter for parameter in own if parameter.name != "given"),
            *(_flag(section, name) for section, name in flags),
            _keyword("context", typer.Context),
        ]
    )
    return with_flags


def flags_of(section: type[Section]) -> Iterator[str]:
    """The names of a section's settings that are flags."""
    fields = section.model_fields.items()
    return (name for name, field in fields if field.json_schema_extra == IS_FLAG)


def setting_option(section: type[Section], name: str, panel: str) -> Any:
    """An option with the description of a setting."""
    return typer.Option(help=section.model_fields[name].description, rich_help_panel=panel)


def _flag(section: str, name: str) -> inspect.Parameter:
    model = SECTIONS[section]
    field = model.model_fields[name]
    option = setting_option(model, name, _PANELS.get(section, section.capitalize()))
    return _keyword(name, Annotated[field.annotation, option], field.default)


def _keyword(
    name: str, annotation: Any, default: object = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
