"""Webhooks of a whole system: supervisors are killed and servers restarted, and every event arrives under one id."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.acceptance.system import PROBE, Served, System
from tests.acceptance.test_waits import PAYER, YES, Doors, keys_in
from tests.receiver import SECRET, Heard, Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as opened:
        yield opened


def serve(system: System, **settings: Any) -> Served:
    """Start a supervisor that sends webhooks to this machine."""
    allowed = {
        "webhook_secret": SECRET,
        "webhook_networks": "127.0.0.1/32",
        "api_rate": 10_000,
        "api_burst": 10_000,
    }
    return system.supervisor(**(allowed | settings)).ready()


async def send(
    supervisor: Served,
    url: str,
    label: str,
    task: str = "fresh",
    agent: str = "ProbeAgent",
) -> str:
    """Send a task that calls back, and return its id."""
    body = {
        "agent_id": agent,
        "task": task,
        "parameters": {"label": label},
        "callback_url": url,
        "wait_seconds": 0,
    }
    async with httpx2.AsyncClient(base_url=supervisor.api, timeout=60) as client:
        answer = await client.post("/v1/tasks", json=body)
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["task_id"])


async def hears_of(receiver: Receiver, ids: set[str]) -> list[Heard]:
    """Return what was heard once each of the tasks was among it."""
    async with asyncio.timeout(120):
        while not ids <= {one.event["data"]["task_id"] for one in receiver.heard}:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return list(receiver.heard)


@pytest.mark.parametrize(
    ("tasks", "kills"), [(20, 2), pytest.param(60, 4, marks=pytest.mark.long)]
)
async def test_the_end_of_each_task_arrives_under_one_id_although_supervisors_are_killed(
    own_system: System, receiver: Receiver, tasks: int, kills: int
) -> None:
    """Of two supervisors one is killed again and again, while the receiver takes what it gets half of the time."""
    own_system.worker(PROBE).ready()
    running = [serve(own_system) for _ in range(2)]
    await asyncio.to_thread(running[0].await_agents, 1)
    await asyncio.to_thread(running[1].await_agents, 1)
    receiver.statuses += [200, 503] * (tasks // 2)
    between = tasks // kills
    ids: set[str] = set()
    for number in range(tasks):
        ids.add(
            await send(running[number % 2], receiver.url(f"/{number}"), f"w{number}")
        )
        if number % between == between - 1:
            victim = number // between % 2
            running[victim].kill()
            running[victim] = await asyncio.to_thread(serve, own_system)
            await asyncio.to_thread(running[victim].await_agents, 1)
    heard = await hears_of(receiver, ids)
    by_task: dict[str, set[str]] = {}
    for one in heard:
        assert one.is_signed()
        assert one.event["type"] == "task.completed"
        by_task.setdefault(one.event["data"]["task_id"], set()).add(one.id)
    assert set(by_task) == ids
    assert all(len(names) == 1 for names in by_task.values())
    await asyncio.to_thread(running[0].await_metric, "tasklore_webhooks_waiting", 0)


async def test_a_webhook_whose_supervisor_dies_before_the_answer_comes_again_under_its_id(
    own_system: System, receiver: Receiver
) -> None:
    """The lease of the dead one lapses, and the other supervisor sends it."""
    own_system.worker(PROBE).ready()
    first = serve(own_system)
    await asyncio.to_thread(first.await_agents, 1)
    task_id = await send(first, receiver.url("/hang"), "hang")
    await receiver.hears(1)
    first.kill()
    await asyncio.to_thread(serve, own_system)
    heard = await receiver.hears(2, within_s=120)
    assert {one.id for one in heard} == {heard[0].id}
    assert {one.event["data"]["task_id"] for one in heard} == {task_id}


async def test_webhooks_outlive_a_restart_of_both_servers_and_of_every_supervisor(
    own_system: System, receiver: Receiver
) -> None:
    own_system.worker(PROBE).ready()
    first = serve(own_system)
    await asyncio.to_thread(first.await_agents, 1)
    receiver.statuses += [503] * 20
    ids = {
        await send(first, receiver.url(f"/{number}"), f"s{number}")
        for number in range(20)
    }
    await receiver.hears(20)
    first.kill()
    await own_system.servers.valkey.stop()
    await own_system.servers.nats.stop()
    await own_system.servers.valkey.start()
    await own_system.servers.nats.start()
    await asyncio.to_thread(serve, own_system)
    heard = await receiver.hears(40, within_s=120)
    names = {one.event["data"]["task_id"]: one.id for one in heard}
    assert (set(names), len({one.id for one in heard})) == (ids, 20)


async def test_questions_are_told_of_to_the_address_of_the_task_and_of_the_deployment(
    own_system: System, receiver: Receiver
) -> None:
    """Asked, and answered or expired; the end of the task goes to its own address alone."""
    keys = keys_in(own_system.folder)
    own_system.worker(PAYER).ready()
    supervisor = serve(
        own_system,
        webhook_url=receiver.url("/all"),
        api_keys_file=own_system.folder / "keys.json",
    )
    await asyncio.to_thread(supervisor.await_agents, 1)
    doors = Doors(supervisor.api, keys)
    body = {
        "agent_id": "PayerAgent",
        "task": "pay",
        "wait_seconds": 0,
        "callback_url": receiver.url("/own"),
    }
    label = f"L{uuid4().hex}"
    status, sent = await doors.call(
        "shop", "POST", "/v1/tasks", {**body, "parameters": {"label": label}}
    )
    assert status == 202
    question = await doors.find("finance", sent["task_id"])
    await receiver.hears(2)
    assert (
        await doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    )[0] == 200
    heard = await receiver.hears(5)
    assert sorted((one.path, one.event["type"]) for one in heard) == [
        ("/all", "approval.answered"),
        ("/all", "approval.asked"),
        ("/own", "approval.answered"),
        ("/own", "approval.asked"),
        ("/own", "task.completed"),
    ]
    assert len({one.id for one in heard}) == 5
    asked, answered = (
        next(
            one.event["data"]
            for one in heard
            if one.event["type"] == f"approval.{what}"
        )
        for what in ("asked", "answered")
    )
    assert (asked["id"], asked["question"], asked["who"], asked["number"]) == (
        question["id"],
        "Pay 12?",
        ["role:finance"],
        1,
    )
    assert (answered["state"], answered["answer"]["by"]) == ("answered", "user:fay")
    assert SECRET not in json.dumps([one.event for one in heard])
    receiver.heard.clear()
    body["parameters"] = {"label": f"L{uuid4().hex}", "seconds": 3}
    assert (await doors.call("shop", "POST", "/v1/tasks", body))[0] == 202
    heard = await receiver.hears(5)
    assert sorted(one.event["type"] for one in heard if one.path == "/own") == [
        *("approval.asked", "approval.expired", "task.completed")
    ]
