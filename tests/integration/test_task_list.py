"""The list of tasks over HTTP: every filter, and that nobody is shown a task of another user or tenant."""

import itertools
import json
import random
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from redis.asyncio import Redis

from tasklore.client import AsyncClient
from tasklore.contracts.callers import Role
from tasklore.contracts.identifiers import user_token
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tests.http_client import ask
from tests.integration.http_stand import CARD, Stand, http_stand
from tests.servers import PATIENCE_S

NOW_MS = time.time_ns() // 1_000_000
#: Keys by name: role, user and tenant.
KEYS: dict[str, tuple[Role, str | None, str | None]] = {
    "anybody": ("ask", None, None),
    "reader": ("read", None, None),
    "approver": ("approve", None, None),
    "ana": ("ask", "ana", None),
    "acme": ("ask", None, "acme"),
    "ana-of-acme": ("ask", "ana", "acme"),
}


class Listed:
    """The API with its keys and some tasks."""

    def __init__(self, stand: Stand, keys: dict[str, str], rows: list[TaskRow]) -> None:
        self.stand = stand
        self.keys = keys
        self.rows = rows

    async def page(self, key: str, **query: object) -> Any:
        """Return the answer to one question."""
        words = urlencode({name: value for name, value in query.items() if value})
        return await ask(
            self.stand.url,
            "GET",
            f"/v1/tasks?{words}",
            headers={"Authorization": f"Bearer {self.keys[key]}"},
        )

    async def ids(self, key: str, **query: object) -> list[str]:
        """Return the ids of all pages."""
        found: list[str] = []
        after = ""
        while True:
            answer = await self.page(key, after=after, **query)
            assert answer.status == 200, answer.body
            found += [one["task_id"] for one in answer.body["tasks"]]
            if (after := answer.body["after"]) is None:
                return found

    def expected(self, **wanted: object) -> set[str]:
        """Return the ids of the rows with these values."""
        return {
            one.task_id
            for one in self.rows
            if all(getattr(one, name) == value for name, value in wanted.items())
        }


@pytest.fixture
async def listed(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Listed]:
    path = tmp_path / "keys.json"
    made = {
        name: make_key(path, name, (role,), user, tenant=tenant)
        for name, (role, user, tenant) in KEYS.items()
    }
    rows = []
    kinds = itertools.product(("ana", "ben", None), ("acme", "other", None), range(12))
    for number, (user, tenant, place) in enumerate(kinds):
        state = ("completed", "failed", "expired")[place % 3]
        made_row = TaskRow(
            task_id=f"t{number}",
            agent_id=CARD.agent_id if place % 2 else "OtherAgent",
            task="echo",
            # Many of one millisecond, of several users.
            created_ms=NOW_MS - 60_000 * (place // 4),
            state=state,
            ended_ms=NOW_MS,
            tenant=tenant,
            user=user_token(user) if user else "",
            parent_id="p1" if place == 5 else None,
            error=None if state == "completed" else "TaskExpired",
        )
        rows.append(made_row)
    await TaskIndex(redis, deadline_s=PATIENCE_S).write(rows)
    async with http_stand(servers, redis, keys=KeyRing(path)) as stand:
        yield Listed(stand, made, rows)


async def test_a_system_without_any_task_has_an_empty_list(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """No agent is listed yet: there is no list to read."""
    async with http_stand(servers, redis) as stand:
        answer = await ask(stand.url, "GET", "/v1/tasks")
        assert (answer.status, answer.body) == (200, {"tasks": [], "after": None})


async def test_each_filter_lists_what_it_says(listed: Listed) -> None:
    """By agent, state, tenant, user, parent, error and time; pages of any size."""
    assert set(await listed.ids("anybody")) == listed.expected()
    for name, field, value in (
        ("agent", "agent_id", "OtherAgent"),
        ("state", "state", "expired"),
        ("tenant", "tenant", "acme"),
        ("parent", "parent_id", "p1"),
        ("error", "error", "TaskExpired"),
    ):
        found = await listed.ids("reader", limit=7, **{name: value})
        assert len(found) == len(set(found))
        assert set(found) == listed.expected(**{field: value})
    assert set(await listed.ids("anybody", user="ana", limit=5)) == listed.expected(
        user=user_token("ana")
    )
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW_MS / 1000 - 30))
    newer = listed.expected(created_ms=NOW_MS)
    assert set(await listed.ids("anybody", created_after=at)) == newer
    older = await listed.ids("anybody", created_before=at)
    assert set(older) == listed.expected() - newer
    # As people write them: so long ago, and in UTC without a zone.
    assert set(await listed.ids("anybody", created_after="1h")) == listed.expected()
    assert await listed.ids("anybody", created_before="1h") == []
    plain = at.removesuffix("Z")
    assert set(await listed.ids("anybody", created_after=plain)) == newer


async def test_a_task_says_what_a_trace_of_it_says(listed: Listed) -> None:
    """Each field by its name there; what is not known is left out."""
    answer = await listed.page(
        "anybody", user="ana", tenant="acme", agent="OtherAgent", state="expired"
    )
    [one, *_] = answer.body["tasks"]
    assert one.keys() == {
        *("task_id", "agent_id", "task", "state", "generation"),
        *("began_ms", "ended_ms", "error", "tenant", "user"),
    }
    assert (one["state"], one["user"], one["tenant"]) == ("expired", "ana", "acme")


@pytest.mark.parametrize("key", ["ana", "acme", "ana-of-acme"])
async def test_a_bound_key_sees_its_own_alone_whatever_it_asks(
    listed: Listed, key: str
) -> None:
    """Any filter, and any place in the list: made up, of another key, or of another filter."""
    _, user, tenant = KEYS[key]
    own: dict[str, object] = {}
    if user is not None:
        own["user"] = user_token(user)
    if tenant is not None:
        own["tenant"] = tenant
    mine = listed.expected(**own)
    assert set(await listed.ids(key)) == mine
    whole = await listed.page("anybody", limit=40)
    chance = random.Random(key)
    places = ["", whole.body["after"], f"{NOW_MS}.0.OtherAgent", "0.0.A"]
    places += [f"{2**49}.0.{CARD.agent_id}", f"{NOW_MS}.999999.EchoAgent"]
    for _ in range(150):
        query = {
            "agent": chance.choice([None, CARD.agent_id, "OtherAgent", "index"]),
            "state": chance.choice([None, "completed", "failed", "accepted"]),
            "tenant": chance.choice([None, None, "acme", "other"]),
            "user": chance.choice([None, None, "ana", "ben"]),
            "parent": chance.choice([None, None, "p1"]),
            "error": chance.choice([None, None, "TaskExpired"]),
            "limit": chance.choice([1, 10, 200]),
            "after": chance.choice(places),
        }
        answer = await listed.page(key, **query)
        if answer.status == 403:
            refused = answer.body["type"].rpartition(":")[2]
            assert refused in ("other-user", "other-tenant")
            assert query["user"] == "ben" or query["tenant"] not in (None, tenant)
            continue
        assert answer.status == 200, answer.body
        assert {one["task_id"] for one in answer.body["tasks"]} <= mine
        if answer.body["after"] is not None:
            places.append(answer.body["after"])
        words = json.dumps(answer.body)
        assert user is None or '"ben"' not in words
        assert tenant is None or '"other"' not in words


async def test_the_pages_of_a_user_say_nothing_of_others(
    listed: Listed, redis: Redis
) -> None:
    """Answers to a key for one user are byte for byte the same, however much others have."""

    async def pages() -> list[Any]:
        found = []
        after = ""
        while after is not None:
            answer = await listed.page("ana", limit=3, after=after)
            found.append(answer.body)
            after = answer.body["after"]
        return found

    before = await pages()
    theirs = [
        TaskRow(
            task_id=f"more{number}",
            agent_id=CARD.agent_id,
            task="echo",
            created_ms=NOW_MS - number,
            user=user_token("ben"),
        )
        for number in range(3_000)
    ]
    await TaskIndex(redis, deadline_s=PATIENCE_S).write(theirs)
    assert await pages() == before


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"stat": "failed"}, "stat"),
        ({"state": "queued"}, "state"),
        ({"agent": "a b"}, "agent"),
        ({"limit": 201}, "limit"),
        ({"created_after": "2026"}, "created_after"),
        ({"created_before": "soon"}, "created_before"),
        ({"error": "E" * 65}, "error"),
        ({"parent": "{x}"}, "parent"),
        ({"after": "1.2.{A}"}, "after"),
    ],
)
async def test_a_filter_that_is_none_is_refused_by_its_name(
    listed: Listed, query: dict[str, object], where: str
) -> None:
    """Also one that is misspelled: it would list everything."""
    answer = await listed.page("anybody", **query)
    assert answer.status == 422
    assert where in json.dumps([answer.body.get("problems"), answer.body["detail"]])


async def test_a_program_lists_tasks_by_the_client(listed: Listed) -> None:
    """Each filter that the client has is one that the server knows."""
    at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    async with AsyncClient(listed.stand.url, listed.keys["anybody"]) as client:
        page = await client.tasks.list(
            agent="OtherAgent",
            state="expired",
            tenant="acme",
            user="ana",
            created_after=at - timedelta(days=1),
            created_before=at + timedelta(days=1),
            error="TaskExpired",
            limit=1,
        )
        assert [(one.state, one.user, one.tenant) for one in page.tasks] == [
            ("expired", "ana", "acme")
        ]
        assert {one.task_id async for one in client.tasks.each()} == listed.expected()
        children = [one async for one in client.tasks.each(parent="p1")]
        assert len(children) == len(listed.expected(parent_id="p1"))


async def test_a_role_that_may_neither_ask_nor_read_lists_nothing(
    listed: Listed,
) -> None:
    """Whoever only approves sees questions, not tasks."""
    answer = await listed.page("approver")
    assert (answer.status, answer.body["type"]) == (403, "urn:tasklore:problem:role")
