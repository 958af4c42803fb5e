"""Tasks that wait for persons, signals and times: they hold nothing meanwhile, and go on once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from supervisor.http.admission.key_file import make_key
from tests.acceptance.house import AGENTS, House
from tests.acceptance.outside import Outside, outside

PAYER = str(AGENTS / "payer.py")
YES = {"answer": {"approved": True, "note": "fine"}}


class Doors:
    """The HTTP API, with a key for each caller."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        self._client = httpx2.AsyncClient(base_url=url, timeout=60)
        self._keys = keys

    async def call(self, caller: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._keys[caller]}"}
        answer = await self._client.request(method, path, json=body, headers=headers)
        return answer.status_code, answer.json()

    async def find(self, caller: str, task_id: str) -> dict[str, Any]:
        """Return the open question of a task, once there is one."""
        async with asyncio.timeout(60):
            while True:
                found = (await self.call(caller, "GET", "/v1/approvals?limit=1000"))[1]["approvals"]
                if mine := [one for one in found if one["task_id"] == task_id]:
                    return dict(mine[0])
                await asyncio.sleep(0.05)


def keys_in(folder: Path) -> dict[str, str]:
    """Make a key for each caller in *folder*."""
    file = folder / "keys.json"
    return {
        "shop": make_key(file, "shop", ("ask",), None),
        "finance": make_key(file, "finance", ("approve",), "fay", ("finance",)),
        "ana": make_key(file, "ana", ("approve",), "ana"),
    }


@pytest.fixture
async def doors(own_house: House) -> Doors:
    keys = keys_in(own_house.folder)
    supervisor = own_house.supervisor(api_keys_file=own_house.folder / "keys.json").ready()
    return Doors(supervisor.api, keys)


@pytest.fixture
async def program(own_house: House) -> AsyncIterator[Outside]:
    async with outside(own_house.servers.nats_url) as connected:
        yield connected


async def holds_nothing(program: Outside) -> bool:
    """Return whether no task is unacknowledged, and none lies in TASKS."""
    consumer = await program.api("CONSUMER.INFO.TASKS.PayerAgent")
    stream = await program.api("STREAM.INFO.TASKS")
    return (consumer["num_ack_pending"], stream["state"]["messages"]) == (0, 0)


async def test_a_task_waits_for_a_person_holds_nothing_and_goes_on_once(
    own_house: House, doors: Doors, program: Outside
) -> None:
    own_house.worker(PAYER).ready()
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "pay", {"label": label})
    question = await doors.find("finance", task_id)
    assert (question["question"], question["who"], question["state"]) == ("Pay 12?", ["role:finance"], "open")
    await program.eventually(lambda: holds_nothing(program))
    status, refused = await doors.call("ana", "POST", f"/v1/approvals/{question['id']}", YES)
    assert (status, refused["type"].rpartition(":")[2]) == (403, "approval-person")
    status, answered = await doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    assert (status, answered["answer"]["by"]) == (200, "user:fay")
    report = await program.report_of(task_id)
    assert report["result"] == {"approved": True, "by": "user:fay", "note": "fine"}
    assert [len(own_house.runs(f"{label}-{part}")) for part in ("runs", "before", "after")] == [2, 1, 1]
    status, late = await doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    assert status == 409
    assert "user:fay answered at" in late["detail"]
    audit = (await doors.call("finance", "GET", f"/v1/approvals/{question['id']}"))[1]
    assert [one["why"] for one in audit["refused"]] == ["person", "answered"]


async def test_a_question_without_an_answer_ends_at_its_time(own_house: House, doors: Doors, program: Outside) -> None:
    own_house.worker(PAYER).ready()
    report = await program.ask("PayerAgent", "pay", {"label": f"L{uuid4().hex}", "seconds": 3})
    assert report["result"]["approved"] is False
    assert report["attempt"] == 2


async def test_three_waits_of_one_task_follow_one_another(own_house: House, doors: Doors, program: Outside) -> None:
    own_house.worker(PAYER).ready()
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "order", {"label": label})
    await program.eventually(lambda: is_waiting(doors, task_id))
    status, sent = await doors.call("shop", "POST", f"/v1/tasks/{task_id}/signals/paid", {"value": 7})
    assert (status, sent["value"]) == (200, 7)
    assert (await doors.call("shop", "POST", f"/v1/tasks/{task_id}/signals/paid", {"value": 8}))[0] == 409
    question = await doors.find("ana", task_id)
    await doors.call("ana", "POST", f"/v1/approvals/{question['id']}", YES)
    assert (await program.report_of(task_id))["result"] == [7, True]
    assert [len(own_house.runs(f"{label}-{part}")) for part in ("runs", "after")] == [3, 1]


async def is_waiting(doors: Doors, task_id: str) -> bool:
    return (await doors.call("shop", "GET", f"/v1/tasks/{task_id}"))[0] == 200
