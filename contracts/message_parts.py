"""What every message, and every piece of one, has in common; the messages themselves are in `contracts.messages`."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

_LISTS = frozenset({"list", "tuple", "set", "frozenset"})


class FailFastModel(BaseModel):
    """A model that reports the first wrong item of a list: a body may have a hundred thousand of them."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        """Return the schema whose lists are left at their first fault."""
        schema = handler(source)
        pending: list[Any] = [schema]
        while pending:
            part = pending.pop()
            if isinstance(part, dict):
                if str(part.get("type")) in _LISTS:
                    part["fail_fast"] = True
                pending += part.values()
            elif isinstance(part, list | tuple):
                pending += part
        return schema


class Message(FailFastModel):
    """What every message shares: it never changes once said, and carries the version of its shape."""

    # Built when first used: a process speaks few of these, and loads all of them.
    model_config = ConfigDict(
        frozen=True, extra="ignore", ser_json_inf_nan="strings", defer_build=True
    )

    schema_version: int = Field(default=1, ge=1)


class Part(FailFastModel):
    """A piece of a message; versioned by the message it stands in."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", defer_build=True
    )


def is_none(value: object) -> bool:
    """Return whether *value* is None: of a field that is then left out."""
    return value is None
