"""A worker and a program of 0.1 beside processes of today, scripted by what 0.1.0 wrote (`contracts/golden/0.1.0`)."""

import asyncio
import json
import uuid
from typing import Any

import pytest
from nats.js.api import ConsumerConfig

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.http_client import ask
from tests.unit.contracts.test_messages_of_0_1 import old_message, refusals

BUDGET = {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000, 6000]}


async def test_a_program_of_0_1_is_answered_by_a_worker_of_today(
    program: Outside,
) -> None:
    """It sends every field that 0.1 sent and no other; report, card and presence fit the schemas of 0.1."""
    task_id = str(uuid.uuid4())
    assignment = old_message("TaskAssignment") | {
        "task_id": task_id,
        "agent_id": "BudgetTrackerAgent",
        "supervisor_id": program.supervisor_id,
        "task": {"name": "analyze_budget", "parameters": BUDGET},
        "created_at": program.assignment("A", "t", {})["created_at"],
        "deadline": None,
        **dict.fromkeys(
            (
                "request_id",
                "parent_id",
                "user_id",
                "conversation_id",
                "session_id",
                "phase",
            ),
            None,
        ),
        **dict.fromkeys(("writes", "keep_ms", "story_id", "response_number"), None),
    }
    headers = {
        "Nats-Msg-Id": f"{task_id}:1",
        "Tasklore-Generation": "1",
        "Tasklore-Attempt": "1",
    }
    await program.publish(
        "tasks.BudgetTrackerAgent.analyze_budget",
        json.dumps(assignment).encode(),
        headers,
    )
    report = await program.report_of(task_id)
    assert (report["status"], report["result"]["remaining"]) == ("completed", 8000)
    assert refusals("CompletionReport", report) == []
    assert (
        refusals(
            "AgentCard",
            await program.last("KV_agents", "$KV.agents.BudgetTrackerAgent"),
        )
        == []
    )
    keys = await program.counts("KV_workers", "$KV.workers.BudgetTrackerAgent.>")
    assert (
        refusals("WorkerPresence", await program.last("KV_workers", next(iter(keys))))
        == []
    )


async def test_a_person_who_asks_by_0_1_is_answered_by_a_supervisor_of_today(
    program: Outside,
) -> None:
    asked = old_message("PersonRequest") | {
        "request_id": str(uuid.uuid4()),
        "text": "limit 50k, spent 42,000: how is it?",
    }
    asked |= dict.fromkeys(("conversation_id", "user_id"), None)
    answer = await program.client.request(
        "requests.SupervisorAgent", json.dumps(asked).encode(), timeout=PATIENCE_S
    )
    reply = json.loads(answer.data)
    assert refusals("PersonReply", reply) == []
    assert (reply["kind"], reply["report"]["result"]["remaining"]) == ("answer", 8000)


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_worker_of_0_1_answers_a_supervisor_of_today(
    standing: Standing, status: str
) -> None:
    """It shows its card, takes what the supervisor assigns, and its report becomes the answer over HTTP."""
    agent_id = f"OldAgent{status.title()}"
    async with outside(standing.system.servers.nats_url, "OldWorker") as program:
        await _show_card(program, agent_id)

        async def is_known() -> bool:
            return (
                await ask(standing.supervisor.api, "GET", f"/v1/agents/{agent_id}")
            ).status == 200

        await program.eventually(is_known)
        working = asyncio.create_task(_work_once(program, agent_id, status))
        wish = {
            "agent_id": agent_id,
            "task": "share_trip",
            "parameters": {},
            "wait_seconds": 60,
        }
        answer = await ask(standing.supervisor.api, "POST", "/v1/tasks", wish)
        assert answer.status in (200, 202), answer.body
        assignment = await working
    assert refusals("TaskAssignment", assignment) == []
    body = answer.body
    assert (body["report"]["status"], body["report"]["worker_id"]) == (
        status,
        "host-4711-0a1b2c",
    )


async def _show_card(program: Outside, agent_id: str) -> None:
    card = old_message("AgentCard") | {"agent_id": agent_id}
    presence = old_message("WorkerPresence") | {
        "agent_id": agent_id,
        "worker_id": "old-1",
    }
    await program.publish(f"$KV.agents.{agent_id}", json.dumps(card).encode())
    await program.publish(
        f"$KV.workers.{agent_id}.old-1", json.dumps(presence).encode()
    )


async def _work_once(program: Outside, agent_id: str, status: str) -> dict[str, Any]:
    """Take one task as a worker of 0.1 did, report on it with *status*, acknowledge it, and return the assignment."""
    stream = program.client.jetstream()
    consumer = ConsumerConfig(
        durable_name=agent_id, ack_wait=30, filter_subject=f"tasks.{agent_id}.>"
    )
    tasks = await stream.pull_subscribe(
        f"tasks.{agent_id}.>", durable=agent_id, stream="TASKS", config=consumer
    )
    (message,) = await tasks.fetch(1, timeout=PATIENCE_S)
    assignment: dict[str, Any] = json.loads(message.data)
    report = old_message("CompletionReport") | {
        "task_id": assignment["task_id"],
        "agent_id": agent_id,
        "supervisor_id": assignment["supervisor_id"],
        "task_name": assignment["task"]["name"],
        "status": status,
        "result": {"remaining": 8000} if status == "completed" else None,
        "error": None
        if status == "completed"
        else {"type": "ValueError", "message": "no", "retryable": False},
    }
    subject = f"reports.{assignment['supervisor_id']}.{assignment['task_id']}.1"
    await program.publish(
        subject,
        json.dumps(report).encode(),
        {"Nats-Msg-Id": f"{assignment['task_id']}:1:report"},
    )
    await message.ack()
    return assignment
