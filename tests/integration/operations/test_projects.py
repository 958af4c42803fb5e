"""The operations of projects on a real store: noted, found, shown, exported and imported, and never taken away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted, TaskloreError
from tasklore.memory.projects.project import ProjectMemory
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.forms import Lines
from tasklore.supervisor.operations.projects import (
    OPERATIONS,
    NewProjectRecord,
    NotedRecord,
    ProjectServices,
    export_records,
    import_records,
    list_history,
    list_projects,
    note_decision,
    note_standard,
    search_records,
    show_record,
)
from tasklore.supervisor.operations.refusals import Refused
from tests.integration.operations.doors import Desk, door_of

OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))
GOOD = {
    "record_id": "d1",
    "kind": "decision",
    "text": "x",
    "at": "2026-01-01T00:00:00Z",
}


@pytest.fixture
def memory(redis: Redis) -> ProjectMemory:
    return ProjectMemory(redis, deadline_s=30.0)


@pytest.fixture
def services(memory: ProjectMemory) -> ProjectServices:
    return ProjectServices(memory=memory)


async def note(
    services: ProjectServices, text: str, project: str = "shop", **more: Any
) -> NotedRecord:
    """Note the decision *text*."""
    new = NewProjectRecord(text=text, **more)
    return await note_decision(services, OPERATOR, project, new)


async def ids_of(services: ProjectServices, **wanted: Any) -> list[str]:
    """Return the ids of the records of `shop` that a search finds."""
    page = await search_records(services, OPERATOR, "shop", **wanted)
    return [one.record_id for one in page.records]


async def test_a_noted_record_says_its_project_and_that_it_began_with_it(
    services: ProjectServices,
) -> None:
    """A new project may be a mistyped one."""
    first = await note(services, "tabs")
    second = await note(services, "spaces", supersedes="d1")
    assert (first.record_id, first.project_id, first.is_new) == ("d1", "shop", True)
    assert (second.record_id, second.supersedes, second.is_new) == ("d2", "d1", False)
    new = NewProjectRecord(text="Functions are short", tags=(" size ",), by="ana")
    found = await note_standard(services, OPERATOR, "shop", new)
    told = (found.record_id, found.kind, found.tags, found.by)
    assert told == ("s1", "standard", ("size",), "ana")


async def test_the_same_key_again_notes_nothing_twice(
    services: ProjectServices,
) -> None:
    """Another record under that key is refused; without a key each is a new one."""
    key = "one"

    async def decide(text: str) -> NotedRecord:
        new = NewProjectRecord(text=text)
        return await note_decision(services, OPERATOR, "shop", new, idempotency_key=key)

    made = await asyncio.gather(*[decide("tabs") for _ in range(4)])
    assert {one.record_id for one in made} == {"d1"}
    with pytest.raises(Refused, match="Idempotency-Key 'one'") as refused:
        await decide("spaces")
    assert refused.value.problem.status == 409
    assert (await note(services, "tabs")).record_id == "d2"


async def test_a_long_list_of_records_comes_in_pages(
    services: ProjectServices,
) -> None:
    for number in range(4):
        await note(services, f"number {number}")
    first = await search_records(services, OPERATOR, "shop", text="number", limit=3)
    assert (len(first.records), first.after) == (3, "d2")
    rest = await search_records(
        services, OPERATOR, "shop", text="number", limit=3, after="d2"
    )
    assert ([one.record_id for one in rest.records], rest.after) == (["d1"], None)


async def test_a_search_heeds_every_condition(services: ProjectServices) -> None:
    await note(services, "cents", tags=("money",))
    await note(services, "tenths", supersedes="d1")
    new = NewProjectRecord(text="short")
    await note_standard(services, OPERATOR, "shop", new)
    day = datetime(2020, 1, 1, tzinfo=UTC)
    conditions: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["s1", "d2", "d1"]),
        ({"in_force": True}, ["s1", "d2"]),
        ({"kind": "standard"}, ["s1"]),
        ({"tags": ("MONEY",)}, ["d1"]),
        ({"text": "cent"}, ["d1"]),
        ({"since": timedelta(hours=1)}, ["s1", "d2", "d1"]),
        ({"until": timedelta(hours=1)}, []),
        ({"since": day, "until": day + timedelta(days=1)}, []),
        ({"since": timedelta.max}, ["s1", "d2", "d1"]),
        ({"since": datetime.min.replace(tzinfo=UTC)}, ["s1", "d2", "d1"]),
    ]
    for wanted, ids in conditions:
        assert await ids_of(services, **wanted) == ids, wanted


async def test_the_history_has_runs_alone(
    services: ProjectServices, memory: ProjectMemory
) -> None:
    await note(services, "tabs")
    await memory.append("shop", "history", "it ran", tags=["nightly"])
    await memory.append("shop", "history", "it ran again")
    page = await list_history(services, OPERATOR, "shop")
    assert [one.record_id for one in page.records] == ["h2", "h1"]
    tagged = await list_history(services, OPERATOR, "shop", tags=("Nightly",))
    assert [one.record_id for one in tagged.records] == ["h1"]


Work = Callable[[ProjectServices], Awaitable[object]]


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        (
            lambda services: ids_of(services, text="?!"),
            Refused,
            "text: '\\?!' has no word to look for",
        ),
        (
            lambda services: ids_of(services, after="d9"),
            Refused,
            "after: 'd9' is not a record of project 'shop'",
        ),
        (
            lambda services: ids_of(services, tags=("\n",)),
            InvalidInput,
            "must be 1 to 64 printable characters",
        ),
        (
            lambda services: show_record(services, OPERATOR, "shop", "d7"),
            Refused,
            "project 'shop' has no record 'd7'",
        ),
        (
            lambda services: show_record(services, OPERATOR, "shop", "7"),
            InvalidInput,
            "record id '7' must be a letter and a number",
        ),
        (lambda services: note(services, " "), InvalidInput, "text must not be empty"),
        (
            lambda services: note(services, "y", supersedes="d9"),
            InvalidInput,
            "supersedes 'd9' is not a record",
        ),
    ],
)
async def test_a_wrong_value_is_refused_with_the_cure(
    work: Work,
    error: type[TaskloreError | Refused],
    words: str,
    services: ProjectServices,
) -> None:
    await note(services, "x")
    with pytest.raises(error, match=words):
        await work(services)
    assert await ids_of(services) == ["d1"]


async def test_an_unknown_project_is_refused_with_the_known_ones(
    services: ProjectServices,
) -> None:
    works: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: search_records(services, OPERATOR, "shpo"),
        lambda: search_records(services, OPERATOR, "shpo", after="d1"),
        lambda: list_history(services, OPERATOR, "shpo"),
        lambda: show_record(services, OPERATOR, "shpo", "d1"),
        lambda: export_records(services, OPERATOR, "shpo"),
    )

    async def demand_refused(words: str) -> None:
        for work in works:
            with pytest.raises(Refused, match=f"'shpo' has no records; .*{words}"):
                await work()

    await demand_refused("there is no project yet: POST")
    await note(services, "x")
    await demand_refused("there is shop$")
    for number in range(8):
        await note(services, "x", f"other-{number}")
    # Two of the same millisecond may stand either way round; the oldest is not named.
    await demand_refused(r"there are (other-\d, ){7}other-\d and 1 more$")


async def test_a_record_is_shown_with_its_chain(
    services: ProjectServices, memory: ProjectMemory
) -> None:
    await note(services, "tabs", by="ana", tags=("style",))
    data = {"why": "diffs", "half": "\ud800", "whole": "\U0001f600"}
    await memory.append(
        "shop", "decision", "spaces", supersedes="d1", data=data, session_id="run-1"
    )
    await note(services, "none", supersedes="d2")
    shown = await show_record(services, OPERATOR, "shop", "d2")
    assert (shown.project_id, shown.superseded_by) == ("shop", "d3")
    assert shown.session_id == "run-1"
    assert shown.data == {"why": "diffs", "half": "\ufffd", "whole": "\U0001f600"}
    assert [one.record_id for one in shown.chain] == ["d1", "d2", "d3"]
    assert shown.model_dump_json()


async def let_a_millisecond_pass(redis: Redis) -> None:
    """Return in another millisecond of the store's clock, by which projects are listed."""
    seconds, microseconds = await redis.time()
    before = (seconds, microseconds // 1000)
    while before == (seconds, microseconds // 1000):
        seconds, microseconds = await redis.time()


async def test_projects_are_listed_in_pages_the_newest_first(
    services: ProjectServices, redis: Redis
) -> None:
    assert (await list_projects(services, OPERATOR)).projects == ()
    for project in ("shop", "other", "third"):
        await note(services, "x", project)
    await let_a_millisecond_pass(redis)
    standard = NewProjectRecord(text="y")
    await note_standard(services, OPERATOR, "shop", standard)
    first = await list_projects(services, OPERATOR, limit=2)
    assert first.after is not None
    rest = await list_projects(services, OPERATOR, limit=2, after=first.after)
    assert rest.after is None
    found = (*first.projects, *rest.projects)
    assert {one.project_id for one in found} == {"shop", "other", "third"}
    assert len(found) == 3
    assert (found[0].project_id, found[0].decisions, found[0].standards) == (
        "shop",
        1,
        1,
    )


async def lines_of(services: ProjectServices, project: str) -> list[Any]:
    """Return the lines of an export, as an import reads them."""
    found = await export_records(services, OPERATOR, project)
    return [json.loads(one.model_dump_json()) async for one in found]


async def test_an_exported_project_is_imported_whole_and_again_without_harm(
    services: ProjectServices, memory: ProjectMemory
) -> None:
    await note(services, "tabs ✓", by="ana", tags=("a b",))
    await memory.append(
        "shop", "decision", "spaces", supersedes="d1", data={"deep": [1, {"é": None}]}
    )
    await memory.append("shop", "history", "gone", by="bo")
    await memory.redact("bo")
    lines = Lines(tuple(await lines_of(services, "shop")))
    assert [one["record_id"] for one in lines.values] == ["d1", "d2", "h1"]
    for added, known in ((3, 0), (0, 3)):
        loaded = await import_records(services, OPERATOR, "copy", lines)
        assert (loaded.project_id, loaded.added, loaded.known) == ("copy", added, known)
        assert loaded.refused == ()
    projects = [
        [record async for record in memory.export(name)] for name in ("shop", "copy")
    ]
    assert projects[0] == projects[1]


async def test_an_import_names_wrong_lines_and_adds_the_rest(
    services: ProjectServices,
) -> None:
    lines = Lines((GOOD, {"record_id": "d2"}, {**GOOD, "text": "y"}, [], 7))
    for added, known in ((1, 0), (0, 1)):
        loaded = await import_records(services, OPERATOR, "copy", lines)
        assert (loaded.added, loaded.known) == (added, known)
        told = {one.record_id: one.why for one in loaded.refused}
        assert list(told) == ["line 2", "line 4", "line 5", "d1"]
        assert told["line 4"].startswith("must be a JSON object")
        assert told["d1"] == (
            "another record is stored as 'd1'; load it into another project"
        )


async def test_a_key_of_one_user_or_tenant_sees_no_project(
    services: ProjectServices, memory: ProjectMemory
) -> None:
    """Projects are of the whole deployment: nothing says whose a record is."""
    await note(services, "x", by="ann")
    new = NewProjectRecord(text="y")
    before = [record async for record in memory.export("shop")]
    for change in ({"user": "ann"}, {"tenant": "acme"}):
        caller = OPERATOR.model_copy(update=change)
        for work in (
            list_projects(services, caller),
            note_decision(services, caller, "shop", new),
            note_standard(services, caller, "shop", new),
            list_history(services, caller, "shop"),
            search_records(services, caller, "shop"),
            show_record(services, caller, "shop", "d1"),
            export_records(services, caller, "shop"),
            import_records(services, caller, "shop", Lines((GOOD,))),
        ):
            with pytest.raises(NotPermitted, match="one user or tenant"):
                await work
    assert [record async for record in memory.export("shop")] == before


async def test_projects_are_served_over_http(
    servers: EmbeddedServers, redis: Redis, services: ProjectServices, tmp_path: Path
) -> None:
    """To keys that may: one that reads notes nothing, one that asks sees none."""
    async with door_of(
        servers,
        redis,
        tmp_path,
        services,
        OPERATIONS,
        ops=("operate",),
        reader=("read",),
        guest=("ask", "approve"),
    ) as desks:
        await _demand_served(desks["ops"], desks["reader"], desks["guest"])


async def _demand_served(ops: Desk, reader: Desk, guest: Desk) -> None:
    path = "/v1/projects/shop"
    body = {"text": "Prices are in cents", "tags": ["money", "code"]}
    made = await ops.ask("POST", f"{path}/decisions", json=body)
    assert (made.status_code, made.json()["record_id"]) == (201, "d1")
    for who, status in ((reader, 403), (guest, 403)):
        refused = await who.ask("POST", f"{path}/standards", json=body)
        assert refused.status_code == status
    query = "text=price&tags=Money&tags=code&since=1h&in_force=true"
    found = await reader.ask("GET", f"{path}/records?{query}")
    assert [one["record_id"] for one in found.json()["records"]] == ["d1"]
    assert (await guest.ask("GET", f"{path}/records")).status_code == 403
    wrong = await reader.ask("GET", f"{path}/records?since=yesterday")
    assert (wrong.status_code, "since" in wrong.text) == (422, True)
    lines = await reader.ask("GET", f"{path}/export")
    assert [json.loads(one)["record_id"] for one in lines.text.splitlines()] == ["d1"]
    copied = await ops.ask(
        "POST", "/v1/projects/copy/import", content=lines.content, lines=True
    )
    assert (copied.status_code, copied.json()["added"]) == (200, 1)
    missing = await reader.ask("GET", "/v1/projects/nosuch/history")
    assert (missing.status_code, "there are" in missing.json()["detail"]) == (404, True)
