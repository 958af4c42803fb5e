"""Lists of more than a page: the next page is there, each row once, and the filter holds on the way."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import read_limits
from tasklore.contracts.analysis.stories import StoryBase, StorySettings
from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import AgentCard
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.console import dead_letters
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.http.console.pages import Paging, Visit
from tasklore.supervisor.operations.console import ConsoleServices
from tasklore.supervisor.operations.dead_letters import (
    DeadLetterServices,
    group_dead_letters,
    list_dead_letters,
    redrive_dead_letters,
)
from tasklore.supervisor.operations.table import bind
from tests.integration.console.browsing import (
    ConsoleStand,
    Tab,
    console_stand,
    list_runs,
    row,
)
from tests.integration.dead_letters import Morgue, morgue_of
from tests.integration.documents import commit, like, plan, store_on
from tests.integration.http_stand import CARD
from tests.integration.stories import shelf_on
from tests.servers import PATIENCE_S
from tests.unit.supervisor.pipelines.fake_system import a_chain

#: Rows of a list: two pages and a part of a third where a page has 50, and more than one where it has 100.
ROWS = 120
NAMES = [f"one-{number:03}" for number in range(ROWS)]


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    cards = [
        AgentCard(agent_id=f"Agent{number:03}", tasks=(), digest="00112233")
        for number in range(ROWS)
    ]
    catalogue = Catalogue([CARD, *cards])
    async with console_stand(
        servers, redis, tmp_path, catalogue=lambda: catalogue
    ) as found:
        yield found


async def walk(tab: Tab, path: str, row_pattern: str) -> list[str]:
    """Return what *row_pattern* finds on each page from *path* on, by the links to the next ones.

    Every page but the first leads back to that one, and each has what the address of the first one filters by.
    """
    first: str | None = None
    wanted = set(parse_qsl(urlsplit(path).query))
    seen: list[str] = []
    while path:
        text = await tab.open(path)
        found = re.findall(row_pattern, text)
        assert found, path
        assert set(parse_qsl(urlsplit(path).query)) >= wanted
        if first is not None:
            assert f'href="{first}"' in text.replace("&amp;", "&")
        first = first or path
        seen += found
        links = re.findall(r'rel="next" href="([^"]+)"', text)
        assert len(links) <= 1
        path = unescape(links[0]) if links else ""
    return seen


async def test_runs(console: ConsoleStand, redis: Redis) -> None:
    """Of one agent and user, also where many were sent in one millisecond."""
    rows = [row(one, "ana", created_ms=1_800_000_000_000) for one in NAMES]
    others = [row(f"other-{one}", "ben") for one in NAMES]
    await list_runs(redis, *rows, *others)
    async with console.tab("admin") as tab:
        pattern = r'href="/console/runs/([^"?/]+)"'
        seen = await walk(tab, "/console/runs?agent=EchoAgent&user=ana", pattern)
        assert sorted(seen) == NAMES


async def test_pipelines(console: ConsoleStand, redis: Redis) -> None:
    """Those that failed, beside as many that were cancelled."""
    for name in NAMES:
        for state in ("failed", "cancelled"):
            new: dict[str, Any] = {
                "session_id": f"{state}-{name}",
                "pipeline": a_chain("read", name="papers"),
                "supervisor_id": "S",
                "dependencies": {"read": ()},
                "inputs": {},
                "state": state,
                "phases": {},
            }
            runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
            assert await runs.create(NewRun(**new))
    async with console.tab("admin") as tab:
        pattern = r'<a class="run" href="/console/pipelines/([^"]+)"'
        seen = await walk(tab, "/console/pipelines?state=failed", pattern)
        assert sorted(seen) == [f"failed-{name}" for name in NAMES]


async def test_schedules(console: ConsoleStand) -> None:
    """Of one user, who has 100 at most."""
    names = NAMES[:90]
    async with console.tab("admin") as tab:
        headers = {"Authorization": f"Bearer {console.keys['admin']}"}
        for user in ("ana", "ben"):
            for name in names:
                new = {
                    "id": f"{user}-{name}",
                    "user": user,
                    "agent_id": "EchoAgent",
                    "task": "echo",
                    "parameters": {"word": "tick"},
                    "every": "6h",
                }
                made = await tab.client.post("/v1/schedules", json=new, headers=headers)
                assert made.status_code == 201, made.text
        seen = await walk(tab, "/console/schedules?user=ana", r'id="schedule-([^"]+)"')
        assert sorted(seen) == [f"ana-{name}" for name in names]


async def test_versions_of_limits(console: ConsoleStand, redis: Redis) -> None:
    """Of which the last 100 are kept."""
    budgets = Budgets(redis, deadline_s=PATIENCE_S)
    for number in range(ROWS):
        limit = {"name": "all", "usd": number + 1, "every": "day"}
        await budgets.change(read_limits({"limits": [limit]}), "ann")
    async with console.tab("admin") as tab:
        seen = await walk(tab, "/console/money/limits", r"<b>Version (\d+)</b>")
        assert seen == [f"{number}" for number in range(ROWS, ROWS - 100, -1)]


async def test_stories(console: ConsoleStand, redis: Redis) -> None:
    shelf = shelf_on(redis)
    for name in NAMES:
        await shelf.stories.load(
            StoryBase(settings=StorySettings(story_id=name, title="The lamp"))
        )
    async with console.tab("admin") as tab:
        pattern = r'<a class="run" href="/console/stories/([^"]+)"'
        seen = await walk(tab, "/console/stories", pattern)
        assert sorted(seen) == NAMES


async def test_agents(console: ConsoleStand) -> None:
    async with console.tab("admin") as tab:
        seen = await walk(
            tab, "/console/agents", r'<a class="run" href="/console/agents/(Agent\d+)"'
        )
        assert seen == [f"Agent{number:03}" for number in range(ROWS)]


async def test_edits_of_a_memory(console: ConsoleStand, redis: Redis) -> None:
    """Of one person, and in the part that was opened."""
    store = store_on(redis)
    for number in range(45):
        await commit(store, plan(f"plan-{number}", like(f"Dish{number}")), user="ana")
        await commit(store, plan(f"other-{number}", like("Soup")), user="ben")
    async with console.tab("admin") as tab:
        seen = await walk(
            tab, "/console/people?user=ana&view=history", r'class="what">([^<]*Dish\d+)'
        )
        assert [re.sub(r"\D", "", one) for one in seen] == [
            f"{number}" for number in range(44, -1, -1)
        ]


@pytest.fixture
async def morgue(own_servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    async with morgue_of(own_servers) as opened:
        yield opened


async def test_dead_letters(morgue: Morgue, redis: Redis) -> None:
    """Of one agent, beside as many of another."""
    buried = await morgue.bury_many(ROWS)
    await morgue.bury_many(ROWS, agent="OtherAgent")
    served = (list_dead_letters, group_dead_letters, redrive_dead_letters)
    own = bind(DeadLetterServices(letters=morgue.letters), served)
    services = ConsoleServices(links=None, records=RequestRecords(redis))
    calls = OperationCalls(own, console=services)
    boss = Caller(name="boss", roles=frozenset({"admin"}))
    seen: list[str] = []
    query = {"agent": "TripAgent"}
    while query:
        visit = Visit(caller=boss, calls=calls, path={}, query=query)
        values = (await dead_letters.show(visit)).values
        letters: Any = values["letters"]
        assert letters.letters
        seen += [one.task_id for one in letters.letters]
        paging = values["paging"]
        assert isinstance(paging, Paging)
        query = dict(parse_qsl(urlsplit(paging.next).query))
        assert query.get("agent", "TripAgent") == "TripAgent"
    assert seen == buried[::-1]
