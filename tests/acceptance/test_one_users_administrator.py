"""A key of role `admin` for one user, at every door that the API declares: what is another user's stays theirs."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.acceptance.system import AGENTS, BUDGET, NAPPER, System
from tests.acceptance.test_waits import SECRET, Doors, keys_in
from tests.golden.matrix import good_body

PAYER = str(AGENTS / "payer.py")
#: Lists, which show the caller's own, and what everybody may see.
_OPEN = {
    "/v1/agents",
    "/v1/agents/{agent_id}",
    "/v1/approvals",
    "/v1/conversations",
    "/v1/models",
    "/v1/openapi.json",
    "/v1/pipelines",
    "/v1/schedules",
    "/v1/task-counts",
    "/v1/tasks",
}
#: What is of the caller alone: a link that signs in who asked for it.
_OF_ONESELF = {"/v1/console/links"}
#: Bodies that are refused for what they lack, before anybody's things are looked for.
_BODIES: tuple[Any, ...] = ({}, {"user": "bob"})
#: What no call for one user makes: deliveries that failed, and what `make_shared` makes.
_NEVER_MADE = frozenset({"webhook_id", "project_id", "record_id", "story_id"})
_NAP = {"agent_id": "NapAgent", "task": "take_nap", "parameters": {"ms": 600_000}}


#: A story of the whole deployment, which `make_shared` loads.
STORY = "bobs-quay"


async def make_things(doors: Doors) -> Mapping[str, str]:
    """Make one thing of each kind for bob, and return what stands for each in a path."""

    async def make(path: str, **body: Any) -> dict[str, Any]:
        status, made = await doors.call("admin", "POST", path, {**body, "user": "bob"})
        assert status in (200, 201, 202), made
        return dict(made)

    phase = {
        "name": "nap",
        "agent": "NapAgent",
        "task": "take_nap",
        "parameters": {"ms": 600_000},
    }
    task = await make(
        "/v1/tasks",
        agent_id="PayerAgent",
        task="pay",
        parameters={"label": "bobs", "who": "user:bob"},
        wait_seconds=0,
    )
    words = "my limit is 500 euros and I spent 400"
    asked = await make("/v1/requests", text=words, conversation="bobs")
    run = await make("/v1/pipelines", pipeline={"name": "p", "phases": [phase]})
    schedule = await make("/v1/schedules", **_NAP, every=86_400)
    question = await doors.find("admin", task["task_id"])
    things = {
        # A number, as the path of a version of the limits takes no other word.
        "earlier": "1",
        "task_id": task["task_id"],
        "request_id": asked["request_id"],
        "session_id": run["session_id"],
        "schedule_id": schedule["id"],
        "approval_id": question["id"],
        "conversation_id": "bobs",
        "name": "bob",
        "user": "bob",
        "agent_id": "NapAgent",
    }
    _, document = await doors.call("admin", "GET", "/openapi.json")
    for name, collection in _unmade(document["paths"], things):
        body = good_body(document, "POST", collection)
        things[name] = (await make(collection, **body))["id"]
    return things


def _unmade(
    paths: Mapping[str, Any], things: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each parameter of *paths* that nothing of *things* stands for, and the path that makes one by POST."""
    for path in paths:
        collection, _, last = path.rpartition("/")
        name = last.strip("{}")
        if f"{{{name}}}" != last or not name.endswith("_id") or name in things:
            continue
        if name in _NEVER_MADE:
            continue
        assert "post" in paths.get(collection, {}), (
            f"nothing stands for {last} of {path}, and no POST {collection} makes one: make one in make_things of "
            "tests/acceptance/test_one_users_administrator.py, or say in _NEVER_MADE who else does"
        )
        yield name, collection


async def make_shared(doors: Doors, caller: str = "admin") -> Mapping[str, str]:
    """Make what is of the whole deployment, and return what stands for each in a path; *caller* is of no tenant."""
    body = {"text": "Prices are in cents", "by": "bob"}
    path = "/v1/projects/bobs-shop/decisions"
    status, made = await doors.call(caller, "POST", path, body)
    assert status == 201, made
    story = {"settings": {"story_id": STORY, "title": "Secret of the quay"}}
    status, told = await doors.call(caller, "POST", "/v1/stories", story)
    assert status == 200, told
    return {
        "project_id": made["project_id"],
        "record_id": made["record_id"],
        "story_id": STORY,
    }


def named(things: Mapping[str, str]) -> set[str]:
    """Return the ids of *things* that nobody else uses: that of a record (`d1`) counts within its project."""
    return {
        one
        for name, one in things.items()
        if name.endswith("_id") and name not in ("agent_id", "record_id")
    }


def calls(paths: Mapping[str, Any], things: Mapping[str, str]) -> Iterator[Any]:
    """Yield method, declared path and path of every call about the *things* that *paths* declare."""
    known = defaultdict(lambda: "any", things)
    for declared, operations in paths.items():
        path = declared.format_map(known)
        for method, operation in operations.items():
            asked = {one["name"] for one in operation.get("parameters", ())}
            yield method.upper(), declared, path
            for name in asked & {"user"}:
                yield method.upper(), "", f"{path}?{name}=bob"
            if "scope" in asked:
                yield method.upper(), "", f"{path}?scope=agent"


def is_list(paths: Mapping[str, Any], method: str, declared: str) -> bool:
    """Return whether an operation lists rows: of its caller, as no path names whose."""
    told = paths.get(declared, {}).get(method.lower(), {}).get("x-tasklore", {})
    return method == "GET" and "{" not in declared and bool(told.get("rows"))


@pytest.mark.timeout(300)
async def test_another_users_things_are_neither_seen_nor_changed(
    own_system: System,
) -> None:
    keys = keys_in(own_system.folder)
    own_system.worker(BUDGET, PAYER, NAPPER, "memory")
    supervisor = own_system.supervisor(
        api_keys_file=own_system.folder / "keys.json",
        approval_secret=SECRET,
        api_rate=10_000,
        api_burst=10_000,
        llm_base_url="",
        llm_api_key="",
    ).ready()
    await asyncio.to_thread(supervisor.await_agents, 4)
    doors = Doors(supervisor.api, keys)
    things = {**await make_things(doors), **await make_shared(doors)}
    _, spec = await doors.call("admin", "GET", "/openapi.json")
    tried = 0
    for (method, declared, path), body in itertools.product(
        calls(spec["paths"], things), _BODIES
    ):
        if method == "GET" and body:
            continue
        status, told = await doors.call(
            "alice", method, path, None if method == "GET" else body
        )
        tried += 1
        said = f"{method} {path} {body}: {status} {told}"
        assert "Secret" not in str(told), said
        refused = (400, 403, 404, 422)
        if (method == "GET" and declared in _OPEN) or declared in _OF_ONESELF:
            allowed: tuple[int, ...] = (200,)
        elif is_list(spec["paths"], method, declared):
            allowed = (200, *refused)
        else:
            allowed = refused
        assert status in allowed, said
        seen = {one for one in named(things) if one in str(told)}
        assert all(one in path for one in seen), said
    assert tried > 50
    # Nothing of it was ended or changed meanwhile.
    stands = [
        (await doors.call("admin", "GET", path))[1]
        for path in (
            f"/v1/tasks/{things['task_id']}",
            f"/v1/pipelines/{things['session_id']}",
            f"/v1/schedules/{things['schedule_id']}",
            f"/v1/approvals/{things['approval_id']}",
            f"/v1/stories/{STORY}",
        )
    ]
    assert stands[0]["state"] == "accepted"
    assert stands[1]["state"] == "running"
    assert (stands[2]["paused"], stands[2]["last"]) == (False, None)
    assert stands[3]["state"] == "open"
    assert stands[4]["title"] == "Secret of the quay"
    # A yes and a no take no body: they did not count, and that is kept.
    refused = [(one["by"], one["why"]) for one in stands[3]["refused"]]
    assert refused == [("user:alice", "person")] * 2
