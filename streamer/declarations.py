"""How a setting is declared: with its type, its default and a description of one line."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

Value = TypeVar("Value")
IS_FLAG: Final[JsonDict] = {"flag": True}


def setting(default: Value, description: str, **more: Any) -> Value:
    """A setting of a section; `more` is passed to pydantic's Field."""
    return cast(Value, Field(default, description=description, **more))


def flag(default: Value, description: str, **more: Any) -> Value:
    """A setting that is also a flag of `streamer run`."""
    return setting(default, description, json_schema_extra=IS_FLAG, **more)


class Section(BaseModel):
    """Rejects unknown names: a misspelt setting must not be ignored silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _reject_stray_booleans(cls, value: object, info: ValidationInfo) -> object:
        """YAML reads `yes` and `on` as true, which pydantic would accept as 1."""
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation is not bool:
            raise PydanticCustomError(
                "boolean", "it must not be a boolean; YAML reads yes, no, on and off as booleans"
            )
        return value
