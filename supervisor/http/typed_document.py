"""The OpenAPI document with a path for each task that agents offer, typed by their cards."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header
from starlette.responses import Response

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.admission.keys import require_role
from tasklore.supervisor.http.card_schemas import (
    Allowance,
    UnusableSchema,
    plain_text,
    to_components,
)
from tasklore.supervisor.http.openapi import SCHEMAS
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.task_paths import PATH

#: Characters of the schemas of one card, counted as `Allowance` does; those of ours have a tenth.
_MOST_OF_CARD: Final = 256 * 1024
#: Tasks of a card with paths of their own, and bytes of all paths and schemas: a document that can still be read.
_MOST_TASKS: Final = 200
_MOST_BYTES: Final = 4 * 1024**2
#: Agents that are named where the document has no path for their tasks.
_MOST_NAMED: Final = 20
_PARAMETERS = "#/components/parameters/"
#: The body and the answer of a task whose card does not say them, or not so that they can be shown.
_ANY_PARAMETERS: dict[str, Any] = {"type": "object", "additionalProperties": True}
_ANY_RESULT: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPaths:
    """The paths of one card's tasks, the schemas that they refer to, and how many bytes all of it has."""

    card: AgentCard
    paths: Mapping[str, Any]
    schemas: Mapping[str, Any]
    size: int


@dataclass(frozen=True, slots=True)
class _Written:
    catalogue: Catalogue
    body: bytes
    etag: str


@dataclass
class TypedDocument:
    """The document of *plain*, the API without agents, for the agents of *catalogue*; made anew when these change."""

    plain: Callable[[], Mapping[str, Any]]
    catalogue: Callable[[], Catalogue]
    _known: dict[str, CardPaths] = field(default_factory=dict)
    _written: _Written | None = None
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> tuple[bytes, str]:
        """Return the document as JSON, and its `ETag`."""
        async with self._writing:
            catalogue = self.catalogue()
            if self._written is None or self._written.catalogue is not catalogue:
                # Hundreds of agents take longer than others should wait.
                self._written = await asyncio.to_thread(self._write, catalogue)
            return self._written.body, self._written.etag

    def _write(self, catalogue: Catalogue) -> _Written:
        document = deepcopy(dict(self.plain()))
        shared = _share_parameters(document)
        self._known = {
            agent_id: self._describe(card, shared)
            for agent_id, card in catalogue.cards.items()
        }
        left = _MOST_BYTES
        # The largest card gives way first: it may be there to push others out.
        for one in sorted(self._known.values(), key=lambda known: known.size):
            left -= one.size
            if left >= 0:
                document["paths"].update(one.paths)
                document["components"]["schemas"].update(one.schemas)
        _name_untyped(document, catalogue)
        body = json.dumps(document, separators=(",", ":")).encode()
        etag = hashlib.blake2b(body, digest_size=16).hexdigest()
        return _Written(catalogue, body, f'"{etag}"')

    def _describe(self, card: AgentCard, template: Mapping[str, Any]) -> CardPaths:
        known = self._known.get(card.agent_id)
        if (
            known is not None
            and known.card.digest == card.digest
            and known.card == card
        ):
            return known
        return describe_card(card, template)


def describe_card(card: AgentCard, template: Mapping[str, Any]) -> CardPaths:
    """Return the paths of the tasks of *card*, each made from *template*, the operation of any task."""
    allowance = Allowance(_MOST_OF_CARD)
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for task in card.tasks if len(card.tasks) <= _MOST_TASKS else ():
        name = f"{card.agent_id}.{task.name}"
        notes = [plain_text(task.description)]
        body = _add_schema(
            schemas,
            task.parameters,
            f"{name}.Parameters",
            default=_ANY_PARAMETERS,
            allowance=allowance,
            notes=notes,
        )
        result = _add_schema(
            schemas,
            task.result,
            f"{name}.Result",
            default=_ANY_RESULT,
            allowance=allowance,
            notes=notes,
        )
        path = PATH.format(agent_id=card.agent_id, task=task.name)
        operation = _make_operation(template, card, task, body=body, result=result)
        paths[path] = {"post": {**operation, "description": "\n\n".join(notes).strip()}}
    size = len(json.dumps([paths, schemas]))
    return CardPaths(card=card, paths=paths, schemas=schemas, size=size)


def _add_schema(
    schemas: dict[str, Any],
    root: Mapping[str, Any] | None,
    name: str,
    *,
    default: Mapping[str, Any],
    allowance: Allowance,
    notes: list[str],
) -> Mapping[str, Any]:
    """Add *root* to *schemas* as *name*, and return what refers to it; *default*, and a note, where it cannot stand."""
    if root is None:
        return default
    try:
        schemas.update(to_components(root, name, SCHEMAS, allowance))
    except UnusableSchema as error:
        shown = name.rpartition(".")[2].lower()
        notes.append(
            f"Its {shown} cannot be described: the schema of the card is left out, as {error}."
        )
        return default
    return {"$ref": f"{SCHEMAS}{name}"}


def _make_operation(
    template: Mapping[str, Any],
    card: AgentCard,
    task: TaskCard,
    *,
    body: Mapping[str, Any],
    result: Mapping[str, Any],
) -> dict[str, Any]:
    done = {
        **template["responses"]["200"],
        "content": {"application/json": {"schema": result}},
    }
    return {
        **template,
        "tags": [card.agent_id],
        "operationId": f"{card.agent_id}.{task.name}",
        "summary": f"{task.name} of {card.agent_id}",
        "requestBody": {
            "content": {"application/json": {"schema": body}},
            "required": not {"required", "$ref"}.isdisjoint(task.parameters),
        },
        "responses": {**template["responses"], "200": done},
    }


def _share_parameters(document: dict[str, Any]) -> dict[str, Any]:
    """Move the parameters of any task's operation, but those of its path, to components; return it without the latter.

    They are the same for each task.
    """
    operation = document["paths"][PATH]["post"]
    named = operation["parameters"]
    own = [one for one in named if one["in"] != "path"]
    document["components"]["parameters"] = {one["name"]: one for one in own}
    shared = [{"$ref": f"{_PARAMETERS}{one['name']}"} for one in own]
    operation["parameters"] = [one for one in named if one["in"] == "path"] + shared
    return {**operation, "parameters": shared}


def _name_untyped(document: dict[str, Any], catalogue: Catalogue) -> None:
    """Say in *document* of which agents it has no path, as these would make it too large."""
    left_out = [
        card.agent_id
        for card in catalogue.cards.values()
        if any(
            PATH.format(agent_id=card.agent_id, task=task.name) not in document["paths"]
            for task in card.tasks[:1]
        )
    ]
    if left_out:
        more = len(left_out) - _MOST_NAMED
        named = ", ".join(left_out[:_MOST_NAMED]) + (
            f" and {more} more" if more > 0 else ""
        )
        document["info"]["description"] += (
            f"\n\nToo large for a path a task: {named}; their tasks are at `{PATH}` all the same."
        )


def routes(document: TypedDocument) -> APIRouter:
    """Return the route of *document*."""
    router = APIRouter(prefix="/v1", tags=["agents"])

    @router.get(
        "/openapi.json",
        operation_id="agents_describe",
        summary="Describe the API with a path for each task of each agent",
        dependencies=[Depends(require_role("ask", "read"))],
        response_class=Response,
        responses={
            200: {
                "description": "An OpenAPI document; `ETag` changes with the cards of agents.",
                "headers": {
                    "ETag": {
                        "description": "Send it as `If-None-Match`.",
                        "schema": {"type": "string"},
                    }
                },
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            304: {"description": "It is still the one that `If-None-Match` names."},
            **answers(),
        },
    )
    async def describe(
        if_none_match: Annotated[
            str | None,
            Header(description="An `ETag`: 304 while the document is still that one."),
        ] = None,
    ) -> Response:
        body, etag = await document.read()
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        if if_none_match is not None and etag in (
            one.strip() for one in if_none_match.split(",")
        ):
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    return router
