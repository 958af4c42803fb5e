"""The document with a path a task: typed by cards, and whole whatever a card says."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.task_paths import PATH
from tasklore.supervisor.http.typed_document import TypedDocument
from tests.golden.document import make_document

PLAIN = make_document()
#: Names of components that the specification allows.
COMPONENT = re.compile(r"[A-Za-z0-9._-]+")


class Hotel(BaseModel):
    """A hotel, with others near it."""

    name: str
    nights: int = 1
    near: list["Hotel"] = []


class Trip(BaseModel):
    city: str
    hotel: Hotel | None = None


def card(agent_id: str = "TripAgent", **task: Any) -> AgentCard:
    """Return a card of one task, `plan`, with these fields."""
    fields = {"name": "plan", "parameters": Trip.model_json_schema()} | task
    digest = f"{abs(hash(json.dumps(fields, sort_keys=True))):x}"
    return AgentCard(agent_id=agent_id, tasks=(TaskCard(**fields),), digest=digest)


async def read(*cards: AgentCard) -> dict[str, Any]:
    """Return the document for the agents of *cards*, in which nothing is broken."""
    document = await read_unchecked(*cards)
    demand_whole(document)
    return document


async def read_unchecked(*cards: AgentCard) -> dict[str, Any]:
    """Return the document for the agents of *cards*."""
    catalogue = Catalogue(cards)
    body, _ = await TypedDocument(lambda: PLAIN, lambda: catalogue).read()
    document: dict[str, Any] = json.loads(body)
    return document


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in *part*, itself included."""
    if isinstance(part, dict):
        yield part
    if isinstance(part, dict | list):
        for one in part.values() if isinstance(part, dict) else part:
            yield from parts(one)


def demand_whole(document: dict[str, Any]) -> None:
    """Return when each reference leads somewhere, each schema of a card is valid, and the API's own are there."""
    for one in parts(document):
        reference = one.get("$ref")
        if isinstance(reference, str):
            found: Any = document
            for name in reference.removeprefix("#/").split("/"):
                found = found[name]
    for name, schema in document["components"]["schemas"].items():
        if schema == PLAIN["components"]["schemas"].get(name):
            continue
        assert COMPONENT.fullmatch(name), name
        Draft202012Validator.check_schema(schema)
    names = [
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    assert len(set(names)) == len(names)
    for name, path in PLAIN["paths"].items():
        assert name == PATH or document["paths"][name] == path
    assert (
        PLAIN["components"]["schemas"].keys()
        <= document["components"]["schemas"].keys()
    )


def operation_of(
    document: dict[str, Any], agent_id: str = "TripAgent"
) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][f"/v1/agents/{agent_id}/tasks/plan"][
        "post"
    ]
    return found


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = operation["requestBody"]["content"]["application/json"][
        "schema"
    ]
    return schema


async def test_a_task_has_a_path_typed_by_its_card() -> None:
    """Body and answer refer to schemas with the agent's name before theirs, which refer to each other."""
    document = await read(
        card(
            description="Plan a trip.",
            result=Trip.model_json_schema(mode="serialization"),
        )
    )
    plan = operation_of(document)
    assert plan["operationId"] == "TripAgent.plan"
    assert plan["description"] == "Plan a trip."
    assert plan["requestBody"]["required"]
    schemas = document["components"]["schemas"]
    parameters = schemas["TripAgent.plan.Parameters"]
    hotel = parameters["properties"]["hotel"]["anyOf"][0]["$ref"]
    assert hotel == "#/components/schemas/TripAgent.plan.Parameters.Hotel"
    assert schemas[hotel.rpartition("/")[2]]["properties"]["nights"]["default"] == 1
    answer = plan["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/TripAgent.plan.Result"}
    assert plan["responses"]["502"] == {"$ref": "#/components/responses/TaskProblem502"}
    waits = {"$ref": "#/components/parameters/wait_seconds"}
    assert waits in plan["parameters"]


async def test_keywords_of_ours_stay_out() -> None:
    """Linters refuse those that no specification has."""
    field = {"type": "string", "aliases": ["town"], "cues": ["to"], "title": "City"}
    document = await read(
        card(parameters={"type": "object", "properties": {"city": field}})
    )
    shown = document["components"]["schemas"]["TripAgent.plan.Parameters"]
    assert shown == {"type": "object", "properties": {"city": {"type": "string"}}}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE: dict[str, dict[str, Any]] = {
    "elsewhere": {"$ref": "https://evil.example/schema.json"},
    "another agent's": {"$ref": "#/components/schemas/TripAgent.plan.Parameters"},
    "a file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "undefined": {"$ref": "#/$defs/Nothing"},
    "a part of itself": {"$ref": "#/properties/a"},
    "base": {"$id": "https://evil.example/", "properties": {"a": {"$ref": "#"}}},
    "anchor": {"properties": {"a": {"$anchor": "x"}, "b": {"$ref": "#x"}}},
    "circle": {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "choice of itself": {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
    "large": {"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
    "long": {"description": "x" * 1_000_000},
    "deep": deep(40),
    "deep value": {"default": json.loads("[" * 200 + "]" * 200)},
    "many": {
        "properties": {f"p{n}": {"$ref": f"#/$defs/D{n}"} for n in range(500)},
        "$defs": {f"D{n}": {"type": "string"} for n in range(500)},
    },
    "prototype": {"properties": {"__proto__": {"type": "string"}}},
    "constructor": {"properties": {"constructor": {"enum": ["Ferrari"]}}},
    "prototype of a value": {
        "default": json.loads('{"__proto__": {"polluted": true}}')
    },
    "no type": {"type": "text"},
    "no schema": {"properties": {"a": "string"}},
    "no list": {"required": "a"},
    "no names": {"required": [1]},
    "no choice": {"anyOf": []},
    "no flag": {"uniqueItems": "yes"},
    "no number": {"minimum": "0"},
    "no count": {"minLength": -1},
    "endless number": {"maximum": 10**400},
    "no reference": {"$ref": 5},
    "no definitions": {"$ref": "#/$defs/A", "$defs": 5},
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_schema_is_left_out_and_costs_no_other_agent_anything(
    kind: str,
) -> None:
    """The task keeps its path, for any object, and says why; the others' are as they were."""
    alone = await read(card())
    beside = await read(card(), card("Evil", parameters=HOSTILE[kind]))
    evil = operation_of(beside, "Evil")
    assert body_of(evil) == {"type": "object", "additionalProperties": True}
    assert "Its parameters cannot be described" in evil["description"]
    assert not [
        name for name in beside["components"]["schemas"] if name.startswith("Evil")
    ]
    del beside["paths"]["/v1/agents/Evil/tasks/plan"]
    assert beside == alone


async def test_names_of_definitions_reach_nobody_else() -> None:
    """Whatever a card calls them: that of another agent's component, of the API's own, or no name at all."""
    names = ("Problem", "TripAgent.plan.Parameters", "../x", "é é", "é è", "__proto__")
    parameters = {
        "type": "object",
        "properties": {
            f"p{n}": {"$ref": f"#/$defs/{name.replace('/', '%2F')}"}
            for n, name in enumerate(names)
            if "/" not in name
        },
        "$defs": {name: {"type": "string", "description": name} for name in names},
    }
    alone = await read(card())
    document = await read(card(), card("Evil", parameters=parameters))
    ours = {
        name
        for name in document["components"]["schemas"]
        if name.startswith("Evil.plan.")
    }
    assert set(document["components"]["schemas"]) - ours == set(
        alone["components"]["schemas"]
    )
    assert len(ours) == 6


async def test_a_description_is_text_and_nothing_else() -> None:
    """It ends no comment of generated code, and begins no markup."""
    evil = "*/ process.exit(1) /* <script>alert(1)</script>" + "x" * 10_000
    parameters = {
        "type": "object",
        "description": evil,
        "properties": {"a": {"description": evil}},
    }
    document = await read(card(description=evil, parameters=parameters))
    shown = json.dumps(document)
    assert "*/" not in shown.replace("text/*/", "")
    assert "<script" not in shown
    assert len(operation_of(document)["description"]) < 3_000


async def test_too_large_a_document_gives_up_the_largest_agents() -> None:
    """They are named, and the small ones stay typed."""
    large = {"properties": {f"property_{n}": {"type": "string"} for n in range(2_000)}}
    cards = [card(f"Large{n}", parameters=large) for n in range(80)]
    document = await read_unchecked(card(), *cards)
    assert operation_of(document)
    assert len(json.dumps(document)) < 5 * 1024**2
    assert "Too large for a path a task: Large" in document["info"]["description"]


async def test_an_agent_of_a_thousand_tasks_has_no_path_each() -> None:
    """Such a document would not be read."""
    tasks = tuple(TaskCard(name=f"t{n}", parameters={}) for n in range(1_000))
    document = await read(card(), AgentCard(agent_id="Wide", tasks=tasks, digest="0"))
    assert not [
        path for path in document["paths"] if path.startswith("/v1/agents/Wide/")
    ]
    assert "Wide" in document["info"]["description"]


async def test_the_document_is_made_anew_when_a_card_changes_and_only_then() -> None:
    """The others' parts of it are kept."""
    catalogue = Catalogue([card(), card("Other")])
    document = TypedDocument(lambda: PLAIN, lambda: catalogue)
    first, etag = await document.read()
    assert await document.read() == (first, etag)
    assert (await document.read())[0] is first
    kept = document._known["Other"]
    changed = card(parameters={"type": "object"}).model_copy(update={"version": 2})
    catalogue = catalogue.with_card(changed)
    second, other_etag = await document.read()
    assert (second != first, other_etag != etag) == (True, True)
    assert document._known["Other"] is kept
    catalogue = catalogue.without("Other")
    await document.read()
    assert set(document._known) == {"TripAgent"}


async def test_the_loop_goes_on_while_the_document_is_made() -> None:
    """A hundred of the largest cards take time, and others are served meanwhile."""
    large = {"properties": {f"property_{n}": {"type": "string"} for n in range(3_000)}}
    catalogue = Catalogue([card(f"Large{n}", parameters=large) for n in range(100)])
    document = TypedDocument(lambda: PLAIN, lambda: catalogue)
    reading = asyncio.create_task(document.read())
    turns = 0
    began = time.monotonic()
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    await reading
    assert turns > 10
    assert time.monotonic() - began < 30
