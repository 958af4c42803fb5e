"""What waits is woken by a cancellation and by being sent again, whatever it waits for, with accounts and without."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deploy.privileges.roles import Cast
from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import environment, tasklore
from tests.acceptance.guarded import Guarded, guarded
from tests.acceptance.system import AGENTS, System
from tests.acceptance.test_budgets import Provider, settings
from tests.http_client import ask as http

STALL = str(AGENTS / "stall.py")
#: Seconds for what happens within one on a machine that is idle; whoever is not woken waits for minutes.
WOKEN_S = 30.0
#: Seconds of a lease that no test waits for.
LEASE_S = 60
#: Slots of the worker, and tasks of which some wait for their turn behind as many.
SLOTS = 8
CROWD = 40
#: Seconds for a task to come to wait.
PATIENCE_S = 60.0
#: Limits by name: of one call a day, one a minute and one at once, and of one run at once.
LIMITS = {
    "day": ("--tenant", "day", "--requests", "1", "--every", "day"),
    "rate": ("--tenant", "rate", "--requests", "1", "--every", "minute"),
    "once": ("--tenant", "once", "--at-once", "1"),
    "runs": ("--tenant", "runs", "--at-most", "1"),
}


class Stage:
    """A supervisor and a worker on servers, and what a client and an operator do there."""

    def __init__(
        self,
        system: System,
        folder: Path,
        *,
        provider: Provider,
        operator: Mapping[str, str],
        api: str,
    ) -> None:
        self.system = system
        self.provider = provider
        self.api = api
        self._folder = folder
        self._operator = operator

    async def operate(self, *words: str) -> str:
        """Run a command as an operator, and return what it says."""
        ran = await asyncio.to_thread(
            tasklore, *words, cwd=self._folder, env=self._operator
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    async def send(self, task: str, label: str, **fields: Any) -> str:
        """Send a task, and return its id."""
        ms = fields.pop("ms", 0)
        account = fields.pop("account", label)
        body = {
            "agent_id": "StallAgent",
            "task": task,
            "parameters": {"label": label, "ms": ms, "account": account},
            "wait_seconds": 0,
        }
        sent = await http(self.api, "POST", "/v1/tasks", body | fields)
        assert sent.status in (200, 202), sent.body
        return str(sent.body["task_id"])

    async def find(self, task_id: str) -> dict[str, Any]:
        """Return a task as its sender sees it."""
        return dict((await http(self.api, "GET", f"/v1/tasks/{task_id}")).body)

    async def until(
        self, is_so: Callable[[], Awaitable[bool]], within_s: float = PATIENCE_S
    ) -> float:
        """Return after how many seconds *is_so*."""
        begun = time.monotonic()
        async with asyncio.timeout(within_s):
            while not await is_so():  # noqa: ASYNC110 - servers are asked
                await asyncio.sleep(0.02)
        return time.monotonic() - begun

    async def until_status(self, task_id: str, status: str) -> float:
        """Return after how many seconds the task has ended as *status*."""

        async def has_ended() -> bool:
            report = (await self.find(task_id)).get("report")
            assert report is None or report["status"] == status, report
            return report is not None

        return await self.until(has_ended, WOKEN_S)

    async def until_waiting(self, task_id: str) -> None:
        """Return once the task waits for what the ledger names."""

        async def is_waiting() -> bool:
            return "waits_for" in await self.find(task_id)

        await self.until(is_waiting)

    async def child_of(self, task_id: str) -> str:
        """Return the task that the task called, once it has."""
        path = f"/v1/tasks/{task_id}/trace"
        children: list[dict[str, Any]] = []

        async def has_called() -> bool:
            trace = (await http(self.api, "GET", path)).body
            children[:] = trace.get("root", {}).get("children", [])
            return bool(children)

        await self.until(has_called)
        return str(children[0]["task_id"])

    async def until_run(self, label: str, times: int = 1) -> float:
        """Return after how many seconds *label* has run so often."""

        async def has_run() -> bool:
            return len(self.system.runs(label)) >= times

        return await self.until(has_run, WOKEN_S)

    async def cancel(self, task_id: str) -> float:
        """Cancel a task, and return after how many seconds it has ended so."""
        begun = time.monotonic()
        said = await http(self.api, "DELETE", f"/v1/tasks/{task_id}")
        assert said.body["outcome"] == "cancelled", said.body
        await self.until_status(task_id, "cancelled")
        return time.monotonic() - begun


@pytest.fixture(params=["open", "accounts"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """Run everything on servers that let everybody do everything, and on servers that enforce roles."""
    provider = Provider(delay_s=0.0)
    opener = open_stage if request.param == "open" else guarded_stage
    async with provider.llm, opener(tmp_path, provider) as opened:
        yield opened


async def declare_limits(stage: Stage) -> None:
    """Set all limits, before a worker reads them: it does so once a second."""
    for name, words in LIMITS.items():
        await stage.operate("--direct", "limits", "set", name, *words)


@asynccontextmanager
async def open_stage(folder: Path, provider: Provider) -> AsyncIterator[Stage]:
    """Run a stage on servers of its own without roles."""
    async with EmbeddedServers(folder / "servers") as servers:
        with System(servers, folder) as system:
            supervisor = system.supervisor()
            await asyncio.to_thread(supervisor.ready)
            stage = Stage(
                system,
                folder,
                provider=provider,
                operator=system.environment,
                api=supervisor.api,
            )
            await declare_limits(stage)
            worker = system.worker(
                STALL, **settings(provider), ack_wait_s=LEASE_S, slots=SLOTS
            )
            await asyncio.to_thread(worker.ready)
            await asyncio.to_thread(supervisor.await_agents, 1)
            yield stage


@asynccontextmanager
async def guarded_stage(folder: Path, provider: Provider) -> AsyncIterator[Stage]:
    """Run a stage on servers that enforce roles: there a worker schedules nothing."""
    cast = Cast(workers={"stall": ("StallAgent",)}, calls={"stall": ("StallAgent",)})
    opening = guarded(folder, cast)
    pair: Guarded = await asyncio.to_thread(opening.__enter__)
    try:
        with System(pair, folder) as system:  # type: ignore[arg-type]  # of its servers it asks the addresses alone

            def env(role: str) -> dict[str, str]:
                return environment(**pair.environment(role))

            words = ("bootstrap", "--agent-id", "StallAgent")
            ran = await asyncio.to_thread(
                tasklore, *words, cwd=folder, env=env("bootstrap")
            )
            assert ran.returncode == 0, ran.stderr
            supervisor = system.supervisor(**pair.settings("supervisor"))
            await asyncio.to_thread(supervisor.ready)
            stage = Stage(
                system,
                folder,
                provider=provider,
                operator=env("operator"),
                api=supervisor.api,
            )
            await declare_limits(stage)
            given = settings(
                provider, retry_schedule_s=86_400, ack_wait_s=LEASE_S, slots=SLOTS
            )
            worker = system.worker(STALL, **pair.settings("worker-stall"), **given)
            await asyncio.to_thread(worker.ready)
            await asyncio.to_thread(supervisor.await_agents, 1)
            yield stage
    finally:
        await asyncio.to_thread(opening.__exit__, None, None, None)


async def spend(stage: Stage, tenant: str) -> None:
    """Spend what *tenant* may spend."""
    await stage.until_status(
        await stage.send("modelled", f"spent-{tenant}", tenant=tenant, account="n-1"),
        "completed",
    )


async def test_whatever_a_task_waits_for_it_is_cancelled_at_once(stage: Stage) -> None:
    """It ends as cancelled, runs no more, and those that ran meanwhile are not disturbed."""
    await spend(stage, "day")
    await spend(stage, "rate")
    holder = await stage.send("bounded", "holder", account="a", ms=120_000)
    await stage.until_run("holder")
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    waiting = {
        "place": await stage.send("bounded", "place", account="a"),
        "budget": await stage.send("modelled", "budget", tenant="day", account="n-2"),
        "rate": await stage.send("modelled", "rate", tenant="rate", account="n-3"),
    }
    for task_id in waiting.values():
        await stage.until_waiting(task_id)
    runs = {
        name: await stage.send(task, name)
        for name, task in {
            "retry": "retried",
            "person": "asked",
            "signal": "signalled",
            "time": "asleep",
        }.items()
    }
    for name in runs:
        await stage.until_run(name)
    waiting |= runs
    waiting["call"] = await stage.send("calling", "call", account="a")
    await stage.until_run("call")
    waiting["later"] = await stage.send("free", "later", at=later)
    took = {name: await stage.cancel(task_id) for name, task_id in waiting.items()}
    print({name: f"{seconds:.2f} s" for name, seconds in took.items()})  # noqa: T201 - the figure
    assert max(took.values()) < WOKEN_S
    assert (await stage.find(holder))["state"] == "running"
    for name in waiting:
        assert len(stage.system.runs(name)) == (name in runs or name == "call"), name
    listed = await stage.operate("--direct", "approvals", "list")
    assert "There are no approvals." in listed


async def test_a_task_that_waits_for_its_turn_is_cancelled_at_once(
    stage: Stage,
) -> None:
    """Its agent is busy, and it lies with others that came before it."""
    sent = [
        await stage.send("free", f"crowd-{number}", ms=120_000)
        for number in range(CROWD)
    ]
    await stage.until_run("crowd-0")
    if isinstance(servers := stage.system.servers, EmbeddedServers):
        async with connected(servers.nats_url, "looking") as client:
            info = await ask_jetstream(client, f"STREAM.INFO.{subjects.WAITING}")
        assert info["state"]["messages"] > 1
    took = await stage.cancel(sent[-1])
    print(f"{took:.2f} s")  # noqa: T201 - the figure
    assert took < WOKEN_S
    for task_id in sent[:-1]:
        await stage.cancel(task_id)
    assert stage.system.runs(f"crowd-{CROWD - 1}") == []


async def test_those_behind_a_cancelled_task_go_on_at_once(stage: Stage) -> None:
    """Behind one that held a place, or room for a call, or that kept a place while it waited for another."""
    took: dict[str, float] = {}

    async def send_behind(task: str, name: str, **fields: Any) -> str:
        behind = await stage.send(task, f"{name}-behind", **fields)
        await stage.until_waiting(behind)
        return behind

    async def go_on(name: str, cancelled: str) -> None:
        cancelling = asyncio.create_task(stage.cancel(cancelled))
        took[name] = await stage.until_run(f"{name}-behind")
        await cancelling

    place = await stage.send("bounded", "place", account="a", ms=120_000)
    await stage.until_run("place")
    await send_behind("bounded", "place", account="a")
    await go_on("place", place)

    runs = await stage.send("free", "runs", tenant="runs", ms=120_000)
    await stage.until_run("runs")
    await send_behind("free", "runs", tenant="runs")
    await go_on("runs", runs)

    stage.provider.delay_s = 120
    calls = stage.provider.calls
    once = await stage.send("modelled", "once", tenant="once", account="n-1")

    async def is_called() -> bool:
        return stage.provider.calls > calls

    await stage.until(is_called)
    stage.provider.delay_s = 0
    await send_behind("modelled", "once", tenant="once", account="n-2")
    await go_on("once", once)

    limited = await stage.send("free", "limited", tenant="runs", ms=120_000)
    await stage.until_run("limited")
    kept = await stage.send("bounded", "kept", tenant="runs", account="k")
    await stage.until_waiting(kept)
    await send_behind("bounded", "kept", account="k")
    await go_on("kept", kept)
    assert (await stage.find(limited))["state"] == "running"

    held = await stage.send("bounded", "held", account="held", ms=120_000)
    await stage.until_run("held")
    parent = await stage.send("calling", "caller", account="held")
    child = await stage.child_of(parent)
    await stage.until_waiting(child)
    cancelling = asyncio.create_task(stage.cancel(child))
    took["caller"] = await stage.until_status(parent, "failed")
    await cancelling
    assert (await stage.find(held))["state"] == "running"

    leader = await stage.send("known", "known", ms=120_000)
    await stage.until_run("known")
    follower = await stage.send("known", "known", ms=120_000)
    cancelling = asyncio.create_task(stage.cancel(leader))
    took["known"] = await stage.until_run("known", 2)
    await cancelling
    assert (await stage.find(follower))["state"] == "running"

    print({name: f"{seconds:.2f} s" for name, seconds in took.items()})  # noqa: T201 - the figure
    assert max(took.values()) < WOKEN_S


async def test_whatever_a_task_may_wait_for_it_begins_at_once_when_it_is_sent_again(
    stage: Stage,
) -> None:
    """Each that died runs as its next generation; one that died of a wait beyond its deadline, too."""
    tasks = {
        "free": "free",
        "place": "bounded",
        "call": "calling",
        "model": "modelled",
        "person": "asked",
        "signal": "signalled",
        "time": "asleep",
    }
    sent = {}
    for name, task in tasks.items():
        (stage.system.folder / "runs" / f"{name}.ill").touch()
        sent[name] = await stage.send(task, name, account=f"{name}-1")
    sent["late"] = await stage.send("retried", "late", within_seconds=500)
    for task_id in sent.values():
        await stage.until_status(task_id, "failed")
    preview = await stage.operate(
        "--direct", "dead-letters", "redrive", "--all", "--dry-run"
    )
    assert f"Would send {len(sent)} dead letters again." in preview
    for name in tasks:
        (stage.system.folder / "runs" / f"{name}.ill").unlink()
    done = await stage.operate("--direct", "dead-letters", "redrive", "--all", "--yes")
    assert f"Sent {len(sent)} dead letters again." in done
    took = {name: await stage.until_run(name, 2) for name in sent}
    print({name: f"{seconds:.2f} s" for name, seconds in took.items()})  # noqa: T201 - the figure
    assert max(took.values()) < WOKEN_S
    for name in ("free", "place", "model"):
        await stage.until_status(sent[name], "completed")
