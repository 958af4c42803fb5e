"""Questions of tasks reach people: notices, reminders and escalation, answers over NATS, and the list over HTTP."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory.ledger.waits import Waits
from tasklore.supervisor.approvals.questions import list_questions
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System
from tests.acceptance.test_waits import PAYER, YES, Doors, keys_in

#: Seconds between two reminders, until the escalation, and by which a notice may be late
#: on a busy machine.
_REMIND_S = 4.0
_ESCALATE_S = 6.0
_LATE_S = 20.0
#: Seconds without a notice after which none is coming any more.
_NO_MORE_S = _REMIND_S + 1.9


@pytest.fixture
def keys(own_system: System) -> dict[str, str]:
    return keys_in(own_system.folder)


@pytest.fixture
def supervisor(own_system: System, keys: dict[str, str]) -> Served:
    """Start two, of which either may send a notice; return one."""
    own_system.supervisor().ready()
    return own_system.supervisor(
        api_keys_file=own_system.folder / "keys.json", api_rate=10_000, api_burst=10_000
    ).ready()


@pytest.fixture
async def doors(supervisor: Served, keys: dict[str, str]) -> Doors:
    return Doors(supervisor.api, keys)


@pytest.fixture
async def program(own_system: System) -> AsyncIterator[Outside]:
    async with outside(own_system.servers.nats_url) as connected:
        yield connected


async def test_reminders_and_the_escalation_are_noticed_once_each_in_time_by_those_who_are_asked(
    own_system: System, doors: Doors, program: Outside
) -> None:
    """Two supervisors send one notice each time; after the answer there is none."""
    own_system.worker(PAYER).ready()
    notices: list[tuple[float, dict[str, Any]]] = []

    async def hear(message: Msg) -> None:
        notices.append((time.time(), json.loads(message.data)))

    await program.client.subscribe("questions.*", cb=hear)
    task_id = await program.assign("PayerAgent", "urge", {"label": f"L{uuid4().hex}"})
    question = await doors.find("finance", task_id)
    path = f"/v1/approvals/{question['id']}"
    early = await answer_over_nats(program, "role:board", question["id"])
    assert (early["counts"], early["why"]) == (False, "person")
    async with asyncio.timeout(60):
        while len(notices) < 4:  # noqa: ASYNC110 - a server is listened to
            await asyncio.sleep(0.05)
    assert (await doors.call("ana", "GET", path))[0] == 404
    assert [notice["number"] for _, notice in notices[:4]] == [1, 2, 3, 4]
    assert [notice["who"] for _, notice in notices[:4]] == [["role:finance"]] * 2 + [
        ["role:finance", "role:board"]
    ] * 2
    assert {notice["approval_id"] for _, notice in notices} == {question["id"]}
    asked_at = datetime.fromisoformat(question["asked_at"]).timestamp()
    due = [0.0, _REMIND_S, _ESCALATE_S, 2 * _REMIND_S]
    assert all(
        -0.5 < at - asked_at - after < _LATE_S
        for (at, _), after in zip(notices, due, strict=False)
    )
    assert (await answer_over_nats(program, "role:board", question["id"]))["counts"]
    assert (await program.report_of(task_id))["result"] == "role:board"
    noticed = len(notices)
    await asyncio.sleep(_NO_MORE_S)
    assert [notice["number"] for _, notice in notices] == list(range(1, noticed + 1))


async def answer_over_nats(
    program: Outside, who: str, approval_id: str, **fields: Any
) -> dict[str, Any]:
    """Answer yes as *who*."""
    body = json.dumps(
        {"approval_id": approval_id, "answer": YES["answer"], **fields}
    ).encode()
    subject = f"approvals.SupervisorAgent.{user_token(who)}"
    reply = await program.client.request(subject, body, timeout=30)
    return dict(json.loads(reply.data))


async def test_a_program_answers_over_nats_as_the_person_of_its_subject(
    own_system: System, doors: Doors, program: Outside
) -> None:
    """Another person, another question, another shape and a second answer are refused, and audited."""
    own_system.worker(PAYER).ready()
    task_id = await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    question = await doors.find("finance", task_id)
    ask = question["id"]
    refused = [
        await answer_over_nats(program, "user:eve", ask),
        await answer_over_nats(program, "eve", ask),
        await answer_over_nats(program, "role:finance", ask, digest="0" * 32),
        await answer_over_nats(program, "role:finance", ask, answer="yes"),
        await answer_over_nats(program, "role:finance", f"{task_id}.99"),
        await answer_over_nats(program, "role:finance", "nothing"),
        await answer_over_nats(program, "role:finance", 7),  # type: ignore[arg-type]  # as any program may
    ]
    assert [one["why"] for one in refused] == [
        *(
            "person",
            "unreadable",
            "changed",
            "unreadable",
            "unknown",
            "unreadable",
            "unreadable",
        )
    ]
    assert (
        await answer_over_nats(program, "role:finance", ask, digest=question["digest"])
    )["counts"]
    late = await answer_over_nats(program, "role:finance", ask)
    assert (late["why"], "role:finance answered at" in late["text"]) == (
        "answered",
        True,
    )
    assert (await program.report_of(task_id))["result"] == {
        "approved": True,
        "by": "role:finance",
        "note": "fine",
    }
    audit = (await doors.call("finance", "GET", f"/v1/approvals/{ask}"))[1]
    assert (audit["answer"]["door"], {one["door"] for one in audit["refused"]}) == (
        "nats",
        {"nats"},
    )


async def test_the_open_questions_are_read_in_one_round_trip_and_waiting_tasks_are_counted(
    own_system: System, supervisor: Served, doors: Doors, program: Outside
) -> None:
    own_system.worker(PAYER).ready()
    ids = [
        await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
        for _ in range(40)
    ]
    for task_id in ids:
        await doors.find("finance", task_id)
    async with Redis.from_url(own_system.servers.redis_url) as redis:
        waits = Waits(redis, deadline_s=60)
        # In which layout the ledger is, is asked at first alone.
        await list_questions(waits, 1, lambda _: True)
        trips = 0
        inner = waits._batch.run

        async def run(commands: Any) -> Any:
            nonlocal trips
            trips += 1
            return await inner(commands)

        waits._batch.run = run  # type: ignore[method-assign]  # to count
        found = await list_questions(waits, 1_000, lambda _: True)
        # One for their names, one for all of them.
        assert ({one.task_id for one in found}, trips) == (set(ids), 2)
        assert len(await list_questions(waits, 7, lambda _: True)) == 7
    assert all(one.question == "Pay 12?" and one.state == "open" for one in found)
    await asyncio.to_thread(supervisor.await_metric, "tasklore_tasks_waiting", 40)
