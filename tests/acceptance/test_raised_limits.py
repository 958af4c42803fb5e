"""Tasks that wait for room under a limit go on once there is some, by whatever door it was raised."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from redis.asyncio import Redis

from deploy.privileges.roles import Cast
from tasklore.contracts.admission.limits import read_limits
from tasklore.contracts.messages import CompletionReport
from tasklore.memory import keys
from tasklore.memory.budgets.overview import read_overview
from tasklore.memory.budgets.store import Budgets
from tasklore.supervisor.program_client import Asker
from tests.acceptance.command import environment, tasklore
from tests.acceptance.guarded import Guarded, guarded
from tests.acceptance.system import Served, System
from tests.acceptance.test_budgets import (
    ASKER,
    MODEL,
    Provider,
    ask,
    governed,
    program,
    settings,
)
from tests.http_client import ask as http

#: Seconds for what happens within one on a machine that is idle; a task that nobody
#: wakes looks by itself after 300.
WOKEN_S = 60.0
DAY = {"name": "acme", "tenant": "acme", "requests": 2, "every": "day"}


class Stage(NamedTuple):
    """A system whose tenant has spent its budget, with tasks that wait for more."""

    system: System
    redis: Redis
    provider: Provider
    supervisor: Served
    asker: Asker
    asked: list[asyncio.Task[CompletionReport]]

    @property
    def done(self) -> int:
        """How many tasks have a report."""
        return sum(one.done() for one in self.asked)

    async def wait_until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Return once *is_so*, within `WOKEN_S`."""
        async with asyncio.timeout(WOKEN_S):
            while not await is_so():  # noqa: ASYNC110 - servers are asked
                await asyncio.sleep(0.05)

    async def waiting(self) -> int:
        """Return how many tasks wait for the budget, as everybody sees it."""
        overview = await read_overview(Budgets(self.redis), datetime.now(UTC))
        return sum(account.waiting for account in overview.accounts)

    async def await_stand(self, done: int, waiting: int) -> None:
        """Return once so many tasks are done, and so many wait."""

        async def stands() -> bool:
            return (self.done, await self.waiting()) == (done, waiting)

        await self.wait_until(stands)


@asynccontextmanager
async def spent_budget(system: System, tasks: int) -> AsyncIterator[Stage]:
    """Run a system in which all but two of *tasks* wait for the budget of the day."""
    provider = Provider()
    async with governed(system, provider, DAY) as redis:
        supervisor = system.supervisor()
        with supervisor, system.worker(ASKER, **settings(provider)) as worker:
            await asyncio.to_thread(supervisor.ready)
            await asyncio.to_thread(worker.ready)
            async with program(system) as asker:
                asked = [
                    asyncio.create_task(ask(asker, number, tenant="acme"))
                    for number in range(tasks)
                ]
                stage = Stage(system, redis, provider, supervisor, asker, asked)
                await stage.await_stand(2, tasks - 2)
                yield stage
                for one in asked:
                    one.cancel()


async def by_command(stage: Stage, requests: int | None) -> None:
    """Set or remove the limit by the command."""
    words = (
        ("remove", "acme")
        if requests is None
        else ("set", "acme", "--requests", f"{requests}")
    )
    ran = await asyncio.to_thread(stage.system.command, "--direct", "limits", *words)
    assert ran.returncode == 0, ran.stderr


async def by_http(stage: Stage, requests: int | None) -> None:
    """Set or remove the limit over HTTP."""
    api = stage.supervisor.api
    version = (await http(api, "GET", "/v1/limits")).body["version"]
    limits = [] if requests is None else [DAY | {"requests": requests}]
    body = {"version": version, "limits": {"limits": limits}}
    assert (await http(api, "PUT", "/v1/limits", body)).status == 200


async def by_store(stage: Stage, requests: int | None) -> None:
    """Set or remove the limit as a supervisor does that reads its file."""
    limits = [] if requests is None else [DAY | {"requests": requests}]
    await Budgets(stage.redis).change(read_limits({"limits": limits}), "file:limits")


@pytest.mark.parametrize("door", [by_command, by_http, by_store])
async def test_a_raised_budget_lets_as_many_go_on_as_it_has_room_for(
    own_system: System, door: Callable[[Stage, int | None], Awaitable[None]]
) -> None:
    """The others wait on, and are counted; once it is gone all go on, each at its first attempt."""
    async with spent_budget(own_system, 8) as stage:
        await door(stage, 5)
        await stage.await_stand(5, 3)
        assert stage.provider.calls == 5
        await door(stage, None)
        await stage.await_stand(8, 0)
        reports = await asyncio.gather(*stage.asked)
    assert {(one.status, one.attempt) for one in reports} == {("completed", 1)}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Guarded]:
    """Run servers that enforce the role of a worker of the agent."""
    with guarded(tmp_path, Cast(workers={"asker": ("AskerAgent",)})) as pair:
        yield pair


async def test_where_roles_are_enforced_they_go_on_too(
    pair: Guarded, tmp_path: Path
) -> None:
    """Workers may not schedule anything there: their tasks wait in the queue, and the supervisor wakes them."""
    provider = Provider()
    with System(pair, tmp_path) as system:  # type: ignore[arg-type]  # of its servers it asks the addresses alone

        async def run(role: str, *words: str) -> None:
            env = environment(**pair.environment(role))
            ran = await asyncio.to_thread(tasklore, *words, cwd=tmp_path, env=env)
            assert ran.returncode == 0, ran.stderr

        await run("bootstrap", "bootstrap", "--agent-id", "AskerAgent")
        words = ("set", "d", "--requests", "2", "--every", "day")
        await run("operator", "--direct", "limits", *words)
        supervisor = system.supervisor(**pair.settings("supervisor"))
        async with provider.llm:
            given = settings(provider, retry_schedule_s=86_400)
            worker = system.worker(ASKER, **pair.settings("worker-asker"), **given)
            await asyncio.to_thread(supervisor.ready)
            await asyncio.to_thread(worker.ready)
            await asyncio.to_thread(supervisor.await_agents, 1)
            sent = [
                await http(
                    supervisor.api,
                    "POST",
                    "/v1/tasks",
                    {
                        "agent_id": "AskerAgent",
                        "task": "colour",
                        "parameters": {"number": number},
                        "wait_seconds": 0,
                    },
                )
                for number in range(6)
            ]
            ids = [one.body["task_id"] for one in sent]

            async def await_done(number: int) -> None:
                async with asyncio.timeout(WOKEN_S):
                    while True:
                        seen = [
                            await http(supervisor.api, "GET", f"/v1/tasks/{one}")
                            for one in ids
                        ]
                        states = [one.body["state"] for one in seen]
                        if states.count("done") == number:
                            return
                        await asyncio.sleep(0.1)

            await await_done(2)
            words = ("set", "d", "--requests", "5")
            await run("operator", "--direct", "limits", *words)
            await await_done(5)
            assert provider.calls == 5
            await run("operator", "--direct", "limits", "remove", "d")
            await await_done(6)


async def test_it_is_seen_what_a_task_waits_for(own_system: System) -> None:
    """By its state over HTTP, by its trace, and by whoever asked for it: what for, since when and until when."""
    async with spent_budget(own_system, 3) as stage:
        [queued] = await stage.redis.zrange(
            keys.budget("account", "acme") + ":queue", 0, -1
        )
        task_id = queued.decode().rpartition(":")[0]
        words = "waits for the budget of tenant acme (2 requests a day), until "
        seen: dict[str, Any] = {}

        async def is_seen() -> bool:
            reply = await http(stage.supervisor.api, "GET", f"/v1/tasks/{task_id}")
            seen.update(reply.body)
            return "waits_for" in seen

        await stage.wait_until(is_seen)
        assert seen["state"] == "accepted"
        wait = seen["waits_for"]
        assert (wait["kind"], wait["name"], wait["model"]) == ("limit", "acme", MODEL)
        assert wait["text"] == "the budget of tenant acme (2 requests a day)"
        assert datetime.fromisoformat(wait["until"]) > datetime.now(UTC)
        trace = await asyncio.to_thread(stage.system.command, "trace", task_id)
        assert words in trace.stdout, trace
        traced = await http(stage.supervisor.api, "GET", f"/v1/tasks/{task_id}/trace")
        assert traced.body["root"]["waits_for"] == wait
