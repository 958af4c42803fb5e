"""Values of documents: a snapshot of them, the origin of an edit, and its changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tasklore.contracts.edits import Edit
from tasklore.contracts.identifiers import Name
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.items import Body

#: What a plan is to others: a change of its own, one that takes a plan back, or one that takes an undo back.
PlanKind = Literal["edit", "undo", "redo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One JSON document of one user.

    `revision` counts its edits, 0 for a template that is not stored. `form` is how its file was written, see
    `documents.files.json_files`; empty for one that never was a file. `born` names this life of the document: one that
    was forgotten and made again is another. `size` is the bytes of the body, or a little more; None when not yet
    counted. `body` is read only: snapshots and drafts share its parts.
    """

    resource_id: str
    revision: int
    body: Body
    form: str = ""
    born: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Documents of one user as they all were at one moment, by resource id."""

    user_id: str
    documents: Mapping[str, Document]


class Origin(BaseModel):
    """Who wanted a plan, when, and on what grounds; kept in the history as it is.

    `by` is `rules`, `person`, `import`, `expiry` or the name of a model. `fact_text` is the fact as it was extracted,
    `evidence` the words of the turn that say it. `finder` and `editor` are what the two answered, each with its `model`
    and `temperature`; None when rules decided.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    by: str = Field(min_length=1, max_length=200)
    at: datetime
    turn_id: str | None = Field(default=None, max_length=200)
    fact_id: str | None = Field(default=None, max_length=200)
    fact_text: str = Field(default="", max_length=2_000)
    evidence: str = Field(default="", max_length=20_000)
    reasoning: str = Field(default="", max_length=8_000)
    finder: JsonValue = None
    editor: JsonValue = None


class Plan(BaseModel):
    """Edits that are applied all together or not at all, and once: by `plan_id`, even when they are sent again.

    Every edit names its document in `file`; it may be left out where the draft has one document only.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    plan_id: Name
    edits: tuple[Edit, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Step:
    """One document before a plan and after it; `overwritten` is what `documents.stamps.stamp` said it was."""

    before: Document
    after: Document
    changes: tuple[Change, ...]
    overwritten: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPlan:
    """What a plan did to each document; those that it leaves as they are, are not in it.

    `known` is True when the plan was applied before and did nothing now; `undoes` is the plan that it takes back, None
    for an `edit`.
    """

    plan: Plan
    steps: Mapping[str, Step] = field(default_factory=lambda: MappingProxyType({}))
    kind: PlanKind = "edit"
    undoes: str | None = None
    known: bool = False

    @property
    def changes(self) -> dict[str, tuple[Change, ...]]:
        """The changes by resource id, in order."""
        return {resource_id: step.changes for resource_id, step in self.steps.items()}

    @property
    def revisions(self) -> dict[str, int]:
        """The revision of each document after the plan, by resource id."""
        return {
            resource_id: step.after.revision for resource_id, step in self.steps.items()
        }


def resource_of(file: str) -> str:
    """Return the resource that *file* names, with or without `.json`."""
    return file.removesuffix(".json")
