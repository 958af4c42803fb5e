"""Edits of JSON memory documents, as a finder and an editor propose them: closed, so that nothing unknown is applied.

Whoever proposes them is not trusted: `tasklore.memory.documents` refuses what does not fit and then changes nothing
at all.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

#: Characters of a path: far above any real one, far below what makes reading it costly.
MAX_PATH = 1_000
#: Edits of one plan: "delete all my preferences" over many lists; more is a mistake or an attack.
MAX_EDITS = 500

Decision = Literal["proceed", "reject", "conflict"]


class _Edit(BaseModel):
    """What every edit shares: where, why, and of which document.

    `path` is written as `food.likes[2]` (see `tasklore.memory.documents.paths`). `file` is a resource id, with or
    without `.json`; None means the one document that the plan is about.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(max_length=MAX_PATH)
    reason: str = Field(default="", max_length=2_000)
    file: str | None = Field(default=None, max_length=200)


class Insert(_Edit):
    """Add `new_value`: at the end of a list that `path` names, before the place `list[2]`, or under a new name."""

    operation: Literal["insert"] = "insert"
    new_value: JsonValue


class Update(_Edit):
    """Replace the value at `path` by `new_value`."""

    operation: Literal["update"] = "update"
    new_value: JsonValue


class Delete(_Edit):
    """Remove the value at `path`."""

    operation: Literal["delete"] = "delete"


class NoChange(_Edit):
    """Leave everything as it is, and say why: a duplicate, or nothing to do."""

    operation: Literal["no_change"] = "no_change"
    path: str = Field(default="", max_length=MAX_PATH)


Edit = Annotated[Insert | Update | Delete | NoChange, Field(discriminator="operation")]
