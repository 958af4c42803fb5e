"""Changes of a memory by an operator: files put in the place of documents, a redo, and forgetting it everywhere.

Supervisors edit no documents: the process that serves these is lent the functions that do.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, UndoRefused
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, resource_of
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.supervisor.operations.forms import Form, Lines, View
from tasklore.supervisor.operations.memory.history import find_plan
from tasklore.supervisor.operations.memory.plans import PlanView, view_plan
from tasklore.supervisor.operations.memory.services import (
    Owner,
    OwnerScope,
    TurnServices,
    demand_owner,
    find_resource,
)
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    faults_of_line,
    unusable,
)
from tasklore.supervisor.operations.table import Operations, Shows, operation

#: How the name of a document begins that is of no kind; a mistyped word is not to become a new document.
_PREFIX = "resource_"
#: Plans that are looked through for the end of an id; a whole id is found however old it is.
_LOOKED_THROUGH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """A file to put in the place of a document of *owner*; its own metadata names *resource* where that is None."""

    owner: str
    content: bytes
    at: datetime
    resource: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redo:
    """A plan of *owner* to apply again that was taken back; None is the last one."""

    owner: str
    plan_id: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Counts by kind: data removed, data left all the same, and messages beside which files may keep remains."""

    removed: Mapping[str, int]
    left: Mapping[str, int]
    beside: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class MemoryHands:
    """The functions by which an operator changes memories.

    Args:
        put: Stores a file, and returns the plan that did; None when the document is that already.
        redo: Applies a plan again, and returns the plan that did.
        erase: Removes a user from every store and from the servers' files, and counts the rest.
        purge: Removes what a user had forgotten from a chat, and is hidden since, in the same way.
    """

    put: Callable[[DocumentFile], Awaitable[PlanRecord | None]]
    redo: Callable[[Redo], Awaitable[PlanRecord]]
    erase: Callable[[str], Awaitable[Erased]]
    purge: Callable[[str], Awaitable[Erased]]


@dataclass(frozen=True, kw_only=True)
class OperatorMemory(TurnServices):
    """The stores of an operator's looks at memories, and the hands that change them."""

    hands: MemoryHands


class ImportedDocument(Form):
    """A JSON document; `file` is its name in the answer, `resource` its id where the content has none."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    file: Annotated[str, Field(max_length=1_000)] = ""
    content: str
    resource: Annotated[str | None, Field(min_length=1, max_length=128)] = None


class StoredFile(View):
    """The end of a file: the revisions that it led to, none if it was stored already, or why it was refused."""

    file: str
    plan_id: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)
    error: str | None = None


class ImportedFiles(View):
    """The end of each file, in their order; those that were refused do not keep others from being stored."""

    user: str
    files: tuple[StoredFile, ...]


class Redoing(Form):
    """The plan to apply again that was taken back, or the end of its id; without one the last."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    plan_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=128,
            description="Its id, or the end of it; default: the last one.",
        ),
    ] = None


class Forgetting(View):
    """Counts by kind of deleted data and of data that are left: none is the proof that all are deleted.

    `beside` counts other messages in files that may still contain deleted data, and
    files that could not be rewritten. `now` says that it was only about what a chat had
    hidden.
    """

    user: str
    now: bool = False
    removed: dict[str, int]
    left: dict[str, int]
    beside: dict[str, int]


@operation(
    "memory",
    "import",
    "POST /v1/memory/{user}/import",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(picture="memory_files", example="memory import ana food.json"),
)
async def import_documents(
    services: OperatorMemory,
    caller: Caller,
    user: Owner,
    lines: Lines,
    *,
    scope: OwnerScope = "user",
) -> ImportedFiles:
    """Replace stored documents by JSON documents.

    Each line is an object of `content`, the text of a file, and `file` and `resource`
    if needed. Each is an edit that `undo` can revert.
    """
    owner = demand_owner(caller, user, scope)
    files = _read_forms(lines, ImportedDocument)
    stored = (await services.reader.snapshot(owner)).documents
    done = []
    for file in files:
        try:
            record = await services.hands.put(
                DocumentFile(
                    owner=owner,
                    content=file.content.encode(),
                    at=datetime.now(UTC),
                    resource=_new_resource(file.resource, services.kinds, stored),
                )
            )
        except (InvalidInput, Refused) as error:
            done.append(StoredFile(file=file.file, error=str(error)))
            continue
        revisions = {} if record is None else dict(record.revisions)
        plan_id = None if record is None else record.plan_id
        done.append(StoredFile(file=file.file, plan_id=plan_id, revisions=revisions))
    return ImportedFiles(user=owner, files=tuple(done))


@operation(
    "memory",
    "redo",
    "POST /v1/memory/{user}/redo",
    roles=("operate",),
    mounted="operations",
    problems=(409,),
    shows=Shows(
        arguments=("plan_id",), picture="memory_plan", example="memory redo ana"
    ),
)
async def redo_plan(
    services: OperatorMemory,
    caller: Caller,
    user: Owner,
    redo: Redoing,
    *,
    scope: OwnerScope = "user",
) -> PlanView:
    """Redo an edit that was undone."""
    owner = demand_owner(caller, user, scope)
    plan_id = redo.plan_id
    if plan_id is not None:
        records = await services.reader.history(owner, limit=_LOOKED_THROUGH)
        plan_id = find_plan(records, plan_id) or plan_id
    try:
        record = await services.hands.redo(
            Redo(owner=owner, plan_id=plan_id, at=datetime.now(UTC))
        )
    except UndoRefused as error:
        raise Refused(409, "undo-refused", str(error)) from error
    return view_plan(record)


@operation(
    "memory",
    "forget",
    "DELETE /v1/memory/{user}/everything",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        confirm="Forget everything about {user}, or with `now` what a chat has hidden? It cannot be undone.",
        picture="memory_forgotten",
        example="memory forget ana",
    ),
)
async def forget_everything(
    services: OperatorMemory,
    caller: Caller,
    user: Owner,
    *,
    now: Annotated[
        bool,
        Field(
            description="Only what a chat has hidden for a day, and nothing that was said since."
        ),
    ] = False,
) -> Forgetting:
    """Delete all data of a person, and verify that nothing is left.

    Deletes documents, history, facts, turns, conversations, cached answers that only
    they asked for, sessions of pipelines and the evidence of those that failed here,
    and erases the messages with their words from the servers' files. Their decisions
    for a project stay as records without text and name. It cannot be undone. The name
    can be used again at once. If interrupted, repeat the command to finish.

    What a person had forgotten from a chat is hidden for a day, and deleted with the
    rest; `now` deletes that alone.
    """
    caller.demand_user(user)
    hands = services.hands
    done = await (hands.purge(user) if now else hands.erase(user))
    return Forgetting(
        user=user,
        now=now,
        removed=dict(done.removed),
        left=dict(done.left),
        beside=dict(done.beside),
    )


EDITS: Operations[OperatorMemory] = (
    import_documents,
    redo_plan,
    forget_everything,
)

_File = TypeVar("_File", bound=Form)


def _read_forms(lines: Lines, shape: type[_File]) -> list[_File]:
    """Return each of *lines* as a *shape*.

    Raises:
        Refused: 422, some are none; names each, and nothing was stored.
    """
    found: list[_File] = []
    faults: list[Fault] = []
    for number, value in enumerate(lines.values, 1):
        try:
            # A date comes as a text, as in any JSON.
            found.append(shape.model_validate(value))
        except ValidationError as error:
            faults += faults_of_line(number, error)
    if faults:
        raise unusable(faults)
    return found


def _new_resource(
    word: str | None, kinds: Kinds, stored: Mapping[str, Document]
) -> str | None:
    """Return the resource that *word* means, None for what the file says; a whole name may be that of a new document.

    Raises:
        Refused: it means none or several.
    """
    if word is None:
        return None
    try:
        return find_resource(word, kinds, stored)
    except Refused as error:
        if word.startswith(_PREFIX):
            return resource_of(word)
        raise InvalidInput(f"{error}, or {_PREFIX}... for a new one") from error
