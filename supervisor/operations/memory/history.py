"""The history of a memory: its edits, how an entry came about, and an edit taken back."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from tasklore.contracts.callers import Caller
from tasklore.memory.documents.paths import exists, parse, resolve
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.memory.documents.storage.writer import KEEP_REVISIONS
from tasklore.supervisor.operations.forms import SPAN, Form, View
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.memory.plans import (
    PlanExplained,
    PlanView,
    explain_plan,
    view_plan,
)
from tasklore.supervisor.operations.memory.services import (
    DocumentWord,
    MemoryLooks,
    MemoryServices,
    MemoryTask,
    OneDocument,
    Owner,
    OwnerScope,
    demand_owner,
    find_resource,
    read_documents,
)
from tasklore.supervisor.operations.memory.tasks import Started, carry_out
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)

#: Characters of the end of a plan's id by which it may be named: ids of one hour begin alike.
_SHORT_ID = 8

After = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{0,15}$",
        description="Pagination cursor: the `after` of the previous page.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=200, description="Maximum number.")]


class PlanPage(View):
    """Plans, the newest first; `after` leads to the next page, null at the end."""

    plans: tuple[PlanView, ...]
    after: str | None


class Explanation(View):
    """How the entry at a place came about: every plan that touched it, the newest first.

    Without any it came with the document, or before the history that is kept.
    """

    user: str
    resource: str
    path: str
    plans: tuple[PlanExplained, ...]


class Undo(Form):
    """The edit to undo: the `plan_id` of a plan, or the end of it; default: the last one that is in effect."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    plan_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=128,
            description="A plan of the history, or the end of its id; default: the "
            "last one.",
        ),
    ] = None
    wait_seconds: Annotated[
        float, Field(ge=0, le=300, description="How long to wait for the answer."), SPAN
    ] = 30.0


class Undone(Started):
    """The result of an undo: `plan_id` took `undoes` back and led to `revisions`."""

    plan_id: str | None = None
    undoes: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


@operation(
    "memory",
    "history",
    "GET /v1/memory/{user}/history",
    roles=("read",),
    problems=(404,),
    shows=Shows(
        rows="plans",
        picture="memory_plans",
        example="memory history ana --resource food",
    ),
)
async def list_plans(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    resource: OneDocument = None,
    after: After = "",
    limit: Limit = 20,
) -> PlanPage:
    """List the edits of a memory, the newest first."""
    owner = demand_owner(caller, user, scope)
    wanted = None
    if resource is not None:
        wanted = await _demand_resource(services, owner, resource)
    return await _read_page(services, owner, wanted, after=after, limit=limit)


@operation(
    "memory",
    "document-history",
    "GET /v1/memory/{user}/documents/{resource}/history",
    roles=("read",),
    problems=(404,),
    shows=Shows(
        rows="plans", picture="memory_plans", example="memory document-history ana food"
    ),
)
async def list_document_plans(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    resource: DocumentWord,
    *,
    scope: OwnerScope = "user",
    after: After = "",
    limit: Limit = 20,
) -> PlanPage:
    """List the edits of a document, the newest first."""
    owner = demand_owner(caller, user, scope)
    wanted = await _demand_resource(services, owner, resource)
    return await _read_page(services, owner, wanted, after=after, limit=limit)


@operation(
    "memory",
    "explain",
    "GET /v1/memory/{user}/explanation",
    roles=("read",),
    problems=(404,),
    shows=Shows(
        arguments=("path",),
        picture="memory_explanation",
        example="memory explain ana food.likes[0] --resource food",
    ),
)
async def explain_entry(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000,
            description="A path in a document, as shown.",
        ),
    ],
    resource: Annotated[
        str | None,
        Field(
            max_length=128,
            description="The document; default: the one that contains the path.",
        ),
    ] = None,
) -> Explanation:
    """Explain where an entry comes from, and why.

    Shows the original words, the fact found in them, who decided and why: every edit of
    the entry, newest first.
    """
    owner = demand_owner(caller, user, scope)
    documents = await read_documents(services, owner)
    wanted = (
        find_resource(resource, services.kinds, documents)
        if resource is not None
        else _find_holder(documents, owner, path)
    )
    records = await services.reader.explain(owner, wanted, path)
    return Explanation(
        user=owner,
        resource=wanted,
        path=str(resolve(documents[wanted].body, parse(path))),
        plans=tuple(map(explain_plan, records)),
    )


@operation(
    "memory",
    "undo",
    "POST /v1/memory/{user}/undo",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(arguments=("plan_id",), example="memory undo ana"),
)
async def undo_plan(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    undo: Undo,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> Undone | Unfinished[Undone]:
    """Undo an edit, in every document that it changed.

    An older edit can be undone unless a later edit changed the same entry.
    """
    owner = demand_owner(caller, user, scope)
    return await _take_back(services, caller, owner, undo, chosen=idempotency_key)


@operation(
    "memory",
    "document-undo",
    "POST /v1/memory/{user}/documents/{resource}/undo",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(arguments=("plan_id",), example="memory document-undo ana food"),
)
async def undo_document_plan(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    resource: DocumentWord,
    undo: Undo,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> Undone | Unfinished[Undone]:
    """Undo an edit of a document, in every document that it changed."""
    owner = demand_owner(caller, user, scope)
    wanted = await _demand_resource(services, owner, resource)
    return await _take_back(
        services, caller, owner, undo, resource=wanted, chosen=idempotency_key
    )


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (
    list_plans,
    list_document_plans,
    explain_entry,
)
CHANGES: Operations[MemoryServices] = (undo_plan, undo_document_plan)


async def _demand_resource(services: MemoryLooks, owner: str, word: str) -> str:
    return find_resource(word, services.kinds, await read_documents(services, owner))


async def _read_page(
    services: MemoryLooks,
    owner: str,
    resource: str | None,
    *,
    after: str,
    limit: int,
) -> PlanPage:
    """Return up to *limit* plans behind the number *after*, "" for the newest; of *resource* alone when given.

    Whatever is edited meanwhile, going on with `after` shows every plan once.
    """
    # One more tells whether there is another page.
    count = limit + 1
    records = await services.reader.history(owner, resource, count)
    if after and records:
        # Numbers grow by one with each plan of the user, so that at most so many are newer.
        newer = max(0, records[0].number - int(after) + 1)
        records = await services.reader.history(owner, resource, newer + count)
        records = tuple(record for record in records if record.number < int(after))
    shown = records[:limit]
    return PlanPage(
        plans=tuple(map(view_plan, shown)),
        after=str(shown[-1].number) if len(records) > limit else None,
    )


def _find_holder(documents: Mapping[str, Document], owner: str, path: str) -> str:
    """Return the one of *documents* that has an entry at *path*.

    Raises:
        InvalidPath: *path* cannot be read.
        Refused: 404, none has; 422, several have.
    """
    wanted = parse(path)
    found = [
        one for one, document in documents.items() if exists(document.body, wanted)
    ]
    if len(found) > 1:
        complaint = f"{path!r} is in {', '.join(found)}; say which"
        raise unusable([Fault(where="resource", message=complaint)])
    if not found:
        cure = "GET /v1/memory/{user}/documents shows what is there"
        raise not_found(f"no document of {owner!r} has {path!r}; {cure}")
    return found[0]


async def _take_back(
    services: MemoryServices,
    caller: Caller,
    owner: str,
    undo: Undo,
    *,
    resource: str | None = None,
    chosen: str | None,
) -> Undone | Unfinished[Undone]:
    if undo.plan_id is None and chosen is not None:
        # The same again would take another one back.
        complaint = "say which plan is to be taken back, as the request may be repeated"
        raise unusable([Fault(where="plan_id", message=complaint)])
    records = await services.reader.history(owner, resource, KEEP_REVISIONS)
    plan_id = _demand_plan(records, undo.plan_id)
    task = MemoryTask(
        name="undo", parameters={"plan_id": plan_id}, owner=owner, chosen=chosen
    )
    return await carry_out(Undone, services, caller, task, wait_s=undo.wait_seconds)


def _demand_plan(records: Sequence[PlanRecord], word: str | None) -> str:
    """Return the id of the one of *records* that *word* is or ends; None: of the last that stands.

    Raises:
        Refused: 404, there is none; 409, nothing stands; 422, several ids end so.
    """
    if word is not None:
        found = find_plan(records, word)
        if found is None:
            raise not_found(
                f"there is no plan {word!r} in this history; GET "
                "/v1/memory/{user}/history lists them"
            )
        return found
    for record in records:
        if record.undone_by is None and record.kind != "undo":
            return record.plan_id
    raise Refused(
        409, "undo-refused", "the history has no plan that could be taken back"
    )


def find_plan(records: Sequence[PlanRecord], word: str) -> str | None:
    """Return the id of the one of *records* that *word* is, or ends as a list shows it; None when there is none.

    Raises:
        Refused: 422, several ids end so.
    """
    known = [record.plan_id for record in records]
    if word in known:
        return word
    found = [one for one in known if len(word) >= _SHORT_ID and one.endswith(word)]
    if len(found) > 1:
        listed = ", ".join(found[:5])
        complaint = f"{word!r} ends {len(found)} ids: {listed}; give more of it"
        raise unusable([Fault(where="plan_id", message=complaint)])
    return found[0] if found else None
