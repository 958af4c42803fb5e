"""What every message, and every piece of one, has in common; the messages themselves are in `contracts.messages`."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """What every message shares: it never changes once said, and carries the version of its shape."""

    # Built when first used: a process speaks few of these, and loads all of them.
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings", defer_build=True)

    schema_version: int = Field(default=1, ge=1)


class Part(BaseModel):
    """A piece of a message; versioned by the message it stands in."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore", defer_build=True)
