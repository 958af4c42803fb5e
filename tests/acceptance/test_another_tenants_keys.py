"""A key of one tenant, at every door that the API declares: what another tenant made stays theirs."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.messages import ChatTurn
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.requests import place_of
from tasklore.memory.schedules.store import Schedule, ScheduleState, ScheduleStore
from tests.acceptance.test_one_users_administrator import (
    STORY,
    make_shared,
    make_things,
    named,
)
from tests.acceptance.test_waits import Doors
from tests.golden.matrix import cases
from tests.golden.seeded import CALLED, Seeded, seeded_system

#: Users are no tenant's: what is remembered of one is reached by a key for them, or by a trusted one.
_OF_USERS = "/v1/memory/{user}"
#: What everybody may see, and what makes a thing of the body that is sent.
_OPEN = {
    "/v1/agents/{agent_id}",
    "/v1/models/{model}",
    "/v1/pipelines/{session_id}/restore",
}
_TAKEN = {"task": "take_nap", "parameters": {"ms": 1}}
_WORDS = {"text": "my limit is 500 euros and I spent 400"}
_LINES = "application/x-ndjson"
#: Seconds for a task that takes a millisecond.
_PATIENCE_S = 60
_NAP = {"agent_id": "NapAgent", "task": "take_nap", "parameters": {"ms": 1}}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    """Run the system with keys of two tenants."""
    with seeded_system(tmp_path_factory.mktemp("tenants"), *CALLED) as running:
        yield running


@pytest.fixture
def doors(system: Seeded) -> Doors:
    """Return the doors for `maker`, of the tenant acme, `rival`, of another one, and `admin`, of none."""
    return Doors(system.api, system.keys)


@pytest.fixture
async def things(system: Seeded) -> Mapping[str, str]:
    """Make one thing of each kind with a key of acme, and what is of no tenant with an operator's."""
    made = await make_things(Doors(system.api, {"admin": system.keys["maker"]}))
    return {**made, **await make_shared(Doors(system.api, system.keys))}


@pytest.mark.timeout(300)
async def test_another_tenants_things_are_neither_seen_nor_changed(
    doors: Doors, things: Mapping[str, str]
) -> None:
    _, document = await doors.call("rival", "GET", "/openapi.json")
    tried = 0
    for case in cases(document, things):
        declared = case.operation.partition(" ")[2]
        if case.name != "other tenant" or declared.startswith(_OF_USERS):
            continue
        if declared in _OPEN:
            continue
        tried += 1
        status, told = await doors.send("rival", case.method, case.path, case.body)
        # Nouns that are of the whole deployment take no key of one tenant, whatever it asks there.
        is_hidden = status == 404 or (status, "bound-key" in told) == (403, True)
        assert is_hidden, f"{case.operation}: {status} {told}"
        assert "Secret" not in told, case.operation
    assert tried > 20
    for kind, name in (
        ("tasks/{task_id}/output", "task_id"),
        ("requests/{request_id}/events", "request_id"),
        ("pipelines/{session_id}/events", "session_id"),
    ):
        path = f"/v1/{kind}".format(**{name: things[name]})
        status, told = await doors.call(
            "rival", "POST", "/v1/stream-tokens", {"path": path}
        )
        assert status == 404, f"{path}: {told}"
    line = b'{"key": "nap:value", "entry": {"value": 1}}\n'
    path = f"/v1/pipelines/{things['session_id']}/restore"
    status, told = await doors.send("rival", "POST", path, line, kind=_LINES)
    assert status == 404, told
    # It stands as it was, for its own tenant and for the deployment.
    for who in ("maker", "admin"):
        stands = [
            (await doors.call(who, "GET", path))[1]
            for path in (
                f"/v1/tasks/{things['task_id']}",
                f"/v1/pipelines/{things['session_id']}",
                f"/v1/schedules/{things['schedule_id']}",
                f"/v1/approvals/{things['approval_id']}",
                f"/v1/requests/{things['request_id']}",
                f"/v1/conversations/{things['conversation_id']}",
            )
        ]
        assert stands[0]["state"] == "accepted"
        assert stands[1]["state"] == "running"
        assert (stands[2]["paused"], stands[2]["last"]) == (False, None)
        assert (stands[3]["state"], stands[3].get("refused")) == ("open", [])
        assert stands[4]["state"] in ("running", "done")
        assert stands[5]["messages"]
    _, story = await doors.call("admin", "GET", f"/v1/stories/{STORY}")
    assert story["title"] == "Secret of the quay"


@pytest.mark.timeout(300)
async def test_no_list_shows_a_row_of_another_tenant(
    doors: Doors, things: Mapping[str, str]
) -> None:
    _, document = await doors.call("rival", "GET", "/openapi.json")
    shown: dict[str, set[str]] = {"rival": set(), "maker": set()}
    for path, operations in document["paths"].items():
        asked = {one["name"] for one in operations.get("get", {}).get("parameters", ())}
        if "get" not in operations or "{" in path:
            continue
        wanted = [path, *([f"{path}?user=bob"] if "user" in asked else [])]
        for place in wanted:
            for who, seen in shown.items():
                status, told = await doors.send(who, "GET", place)
                if status == 200:
                    seen |= {one for one in named(things) if f'"{one}"' in told}
    assert shown["rival"] == set()
    kinds = ("task_id", "session_id", "schedule_id", "approval_id", "conversation_id")
    assert shown["maker"] >= {things[one] for one in kinds}


async def test_what_has_ended_is_of_its_tenant_still(
    doors: Doors, things: Mapping[str, str]
) -> None:
    status, sent = await doors.call("maker", "POST", "/v1/tasks", _NAP)
    assert (status, sent["state"]) == (200, "done"), sent
    at = f"/v1/schedules/{things['schedule_id']}"
    short = {**_NAP, "every": 86_400}
    _, made = await doors.call("maker", "POST", "/v1/schedules", short)
    _, ran = await doors.call("maker", "POST", f"/v1/schedules/{made['id']}/run", {})
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            _, found = await doors.call("maker", "GET", f"/v1/tasks/{ran['task_id']}")
            if found.get("state") == "done":
                break
            await asyncio.sleep(0.05)
    pipeline = {"name": "p", "phases": [{"name": "nap", "agent": "NapAgent", **_TAKEN}]}
    body = {"pipeline": pipeline}
    _, run = await doors.call("maker", "POST", "/v1/pipelines", body)
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            place = f"/v1/pipelines/{run['session_id']}"
            _, found = await doors.call("maker", "GET", place)
            if found.get("state") == "completed":
                break
            await asyncio.sleep(0.05)
    _, asked = await doors.call("maker", "POST", "/v1/requests", _WORDS)
    assert asked["state"] == "done", asked
    for path in (
        f"/v1/tasks/{sent['task_id']}",
        f"/v1/tasks/{ran['task_id']}",
        f"/v1/tasks/{ran['task_id']}/trace",
        f"/v1/pipelines/{run['session_id']}",
        f"/v1/requests/{asked['request_id']}",
        f"/v1/tasks/{asked['task_id']}",
        at,
    ):
        statuses = [
            (await doors.call(who, "GET", path))[0] for who in ("maker", "rival")
        ]
        assert statuses == [200, 404], path


async def test_a_key_of_a_tenant_speaks_in_no_conversation_of_another(
    doors: Doors, things: Mapping[str, str]
) -> None:
    said = {**_WORDS, "conversation": things["conversation_id"]}
    status, told = await doors.call("rival", "POST", "/v1/requests", said)
    assert (status, told.get("type", "")[-18:]) == (403, "other-conversation")
    status, told = await doors.call("maker", "POST", "/v1/requests", said)
    assert status == 200, told


async def test_a_key_without_a_tenant_that_names_one_sees_all(
    doors: Doors, things: Mapping[str, str]
) -> None:
    body: dict[str, Any] = {**_NAP, "tenant": "acme"}
    status, sent = await doors.call("admin", "POST", "/v1/tasks", body)
    assert status == 200, sent
    path = f"/v1/tasks/{sent['task_id']}"
    statuses = [
        (await doors.call(who, "GET", path))[0] for who in ("admin", "maker", "rival")
    ]
    assert statuses == [200, 200, 404]
    assert things


async def test_what_names_no_caller_goes_on_for_who_made_it(
    system: Seeded, doors: Doors, things: Mapping[str, str]
) -> None:
    """0.2 kept schedules and requests without a caller, and turns without a tenant; so do programs at NATS."""
    now = datetime.now(UTC)
    made = {"timing": Timing(every_s=86_400), "anchor": now, "created_at": now}
    made |= {"agent_id": "NapAgent", "task": "take_nap", "changed_at": now}
    old = {"keyed": "maker", "nobodys": ""}
    turn = ChatTurn(
        turn_id="t1", conversation_id="old", speaker="person", text="hello", at=now
    )
    asked = keys.request(place_of("", "request", things["request_id"]))[0]
    async with Redis.from_url(system.processes.servers.redis_url) as client:
        store = ScheduleStore(client, "SupervisorAgent")
        for name, by in old.items():
            schedule = Schedule.model_validate({**made, "id": name, "created_by": by})
            assert await store.put(schedule, ScheduleState(), None) == 1
        body = turn.model_dump_json().encode()
        await Conversations(client).append("old", body, turn.turn_id)
        record = json.loads(await client.get(asked))
        assert record.pop("tenant") == "acme"
        await client.set(asked, json.dumps(record), keepttl=True)
    for path, expected in {
        "/v1/schedules/keyed": [200, 200, 404],
        "/v1/schedules/nobodys": [200, 404, 404],
        f"/v1/requests/{things['request_id']}": [200, 200, 404],
        "/v1/conversations/old": [200, 404, 404],
    }.items():
        callers = ("admin", "maker", "rival")
        assert [(await doors.call(one, "GET", path))[0] for one in callers] == expected
    said = {**_WORDS, "conversation": "old"}
    assert (await doors.call("maker", "POST", "/v1/requests", said))[0] == 200
    assert (await doors.call("rival", "POST", "/v1/requests", said))[0] == 403
    _, page = await doors.call("maker", "GET", "/v1/conversations/old")
    assert page["messages"][0]["speaker"] == "person"
    assert "hello" not in str(page)
