"""Tasks that were found in words and need another person's yes: they wait for it, hold nothing, and start once."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import System
from tests.acceptance.test_waits import PAYER, YES, Doors, holds_nothing, keys_in

NO = {"answer": {"approved": False, "note": "too much"}}


class Desk:
    """A supervisor and its doors, a worker, and a program that hears of its tasks."""

    def __init__(
        self, system: System, doors: Doors, program: Outside, url: str, key: str
    ) -> None:
        self.system = system
        self.doors = doors
        self.program = program
        self._http = httpx2.AsyncClient(
            base_url=url, timeout=60, headers={"Authorization": f"Bearer {key}"}
        )

    async def ask(self, text: str, **fields: Any) -> dict[str, Any]:
        """Ask in words over NATS; the person waits for half a minute."""
        body = {
            "schema_version": 1,
            "text": text,
            "request_id": uuid4().hex,
            "user_id": "ana",
            "wait_ms": 30_000,
        }
        reply = await self.program.client.request(
            "requests.SupervisorAgent", json.dumps(body | fields).encode(), timeout=60
        )
        return dict(json.loads(reply.data))

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask over HTTP."""
        answer = await self._http.post(path, json=body)
        assert answer.status_code in (200, 202), answer.text
        return dict(answer.json())

    async def answer(self, caller: str, approval_id: str, body: dict[str, Any]) -> int:
        """Answer once the question is there, and return the status."""
        await self.doors.find("finance", approval_id.partition(".")[0])
        return (
            await self.doors.call(caller, "POST", f"/v1/approvals/{approval_id}", body)
        )[0]

    def paid(self, label: str, amount: int = 12) -> int:
        """Return how often the body did its work with that amount."""
        return len(self.system.runs(f"{label}-{amount}"))

    async def report(self, task_id: str) -> dict[str, Any]:
        """Return the report of a task of the supervisor."""

        async def is_there() -> bool:
            return bool(await self.program.counts("REPORTS", f"reports.*.{task_id}.>"))

        await self.program.eventually(is_there)
        (subject,) = await self.program.counts("REPORTS", f"reports.*.{task_id}.>")
        return dict(await self.program.last("REPORTS", subject))


@pytest.fixture
async def desk(own_system: System) -> AsyncIterator[Desk]:
    keys = keys_in(own_system.folder)
    supervisor = own_system.supervisor(
        api_keys_file=own_system.folder / "keys.json",
        api_rate=10_000,
        api_burst=10_000,
        llm_base_url="",
        llm_api_key="",
    ).ready()
    async with outside(own_system.servers.nats_url) as program:
        desk = Desk(
            own_system,
            Doors(supervisor.api, keys),
            program,
            supervisor.api,
            keys["shop"],
        )
        own_system.worker(PAYER, ack_wait_s=2).ready()
        await asyncio.to_thread(supervisor.await_agents, 1)
        yield desk


def words(label: str, amount: int = 12, task: str = "transfer") -> str:
    return f'{task}: label "{label}", amount {amount}'


async def test_words_wait_for_the_yes_of_the_right_person_and_start_the_task_once(
    desk: Desk,
) -> None:
    """The question shows task, parameters and words; nothing is held, and no other person's yes counts."""
    label = f"L{uuid4().hex}"
    conversation = uuid4().hex
    asked = {"request_id": uuid4().hex, "conversation_id": conversation}
    reply = await desk.ask(words(label), **asked)
    ask = reply["approval_id"]
    # The person would have waited for 30 s.
    assert (reply["kind"], reply["elapsed_ms"] < 25_000, ask in reply["text"]) == (
        "pending",
        True,
        True,
    )
    assert (
        "needs the approval of role:finance before it starts transfer" in reply["text"]
    )
    question = await desk.doors.find("finance", ask.partition(".")[0])
    said = json.dumps(words(label))
    assert question["question"] == (
        f'Start PayerAgent.transfer?\nlabel: "{label}"\namount: 12\nfee: 0\nasked by "ana" in the words {said}'
    )
    assert (question["id"], question["who"]) == (ask, ["role:finance"])
    assert (
        604_000
        < (_time(question["until"]) - datetime.now(UTC)).total_seconds()
        <= 604_800
    )
    await desk.program.eventually(lambda: holds_nothing(desk.program))
    assert (await desk.ask("yes", conversation_id=conversation))["kind"] != "pending"
    assert await desk.answer("ana", ask, YES) == 403
    again = await desk.ask(words(label), **asked)
    assert (again["kind"], again["approval_id"], desk.system.runs(f"{label}-runs")) == (
        "pending",
        ask,
        [],
    )
    await desk.program.eventually(lambda: holds_nothing(desk.program))
    assert await desk.answer("finance", ask, YES) == 200
    report = await desk.report(ask.partition(".")[0])
    assert (report["status"], report["result"], report["task_name"]) == (
        "completed",
        12,
        "transfer",
    )
    assert (desk.paid(label), len(desk.system.runs(f"{label}-runs"))) == (1, 1)
    done = await desk.ask(words(label), **asked)
    assert (done["kind"], done["report"]["result"], "approval_id" in done) == (
        "answer",
        12,
        False,
    )
    audit = (await desk.doors.call("finance", "GET", f"/v1/approvals/{ask}"))[1]
    assert (audit["answer"]["by"], [one["why"] for one in audit["refused"]]) == (
        "user:fay",
        ["person"],
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_no_and_a_time_without_an_answer_end_the_task_unstarted(
    desk: Desk,
) -> None:
    """It is rejected, at no cost of attempts, and lies in no queue of dead letters."""
    label = f"L{uuid4().hex}"
    asked = {"request_id": uuid4().hex}
    ask = (await desk.ask(words(label), **asked))["approval_id"]
    assert await desk.answer("finance", ask, NO) == 200
    report = await desk.report(ask.partition(".")[0])
    assert (report["status"], report["error"]["type"]) == ("rejected", "NotApproved")
    assert (
        report["error"]["message"] == "user:fay said no: too much; nothing was started"
    )
    told = await desk.ask(words(label), **asked)
    assert (told["kind"], told["text"]) == (
        "failed",
        "It was not started: user:fay said no: too much; nothing was started.",
    )
    approval = {
        "who": "role:finance",
        "until": (datetime.now(UTC) + timedelta(seconds=3)).isoformat(),
    }
    late = await desk.program.ask(
        "PayerAgent", "transfer", {"label": label, "amount": 12}, approval=approval
    )
    assert (late["status"], late["error"]["type"]) == ("rejected", "NotApproved")
    assert (
        "role:finance did not say yes: not answered in time" in late["error"]["message"]
    )
    assert (desk.system.runs(f"{label}-runs"), await desk.program.counts("DEAD")) == (
        [],
        {},
    )


async def test_what_was_agreed_to_does_not_start_with_other_parameters(
    desk: Desk,
) -> None:
    label = f"L{uuid4().hex}"
    ask = (await desk.ask(words(label)))["approval_id"]
    await desk.doors.find("finance", ask.partition(".")[0])
    (desk.system.folder / "runs" / "amount-changed").touch()
    assert await desk.answer("finance", ask, YES) == 200
    report = await desk.report(ask.partition(".")[0])
    assert (report["status"], report["error"]["type"]) == ("failed", "ApprovalChanged")
    assert desk.system.runs(f"{label}-runs") == []


async def test_no_remembered_answer_stands_for_a_yes(desk: Desk) -> None:
    """Programs ask by name as before, and are served what an approved run computed."""
    label = f"L{uuid4().hex}"
    by_name = [
        await desk.program.ask("PayerAgent", "appraise", {"label": label, "amount": 12})
        for _ in range(2)
    ]
    assert [one["memory"]["outcome"] for one in by_name] == ["miss", "hit"]
    ask = (await desk.ask(words(label, task="appraise")))["approval_id"]
    await desk.doors.find("finance", ask.partition(".")[0])
    assert len(desk.system.runs(f"{label}-runs")) == 1
    assert await desk.answer("finance", ask, YES) == 200
    report = await desk.report(ask.partition(".")[0])
    assert (report["result"], report["memory"]["outcome"]) == (12, "refreshed")
    assert len(desk.system.runs(f"{label}-runs")) == 2


@pytest.mark.parametrize(
    "point",
    [
        "while it waits",
        "after schedule",
        "before record",
        "after record",
        "in the body",
    ],
)
async def test_a_killed_worker_neither_asks_twice_nor_starts_the_task_twice(
    own_system: System, point: str
) -> None:
    """The answer, also one that came while no worker was there, is found by the next one."""
    keys = keys_in(own_system.folder)
    supervisor = own_system.supervisor(
        api_keys_file=own_system.folder / "keys.json",
        api_rate=10_000,
        api_burst=10_000,
        llm_base_url="",
        llm_api_key="",
    ).ready()
    (own_system.folder / "runs" / "die-at").write_text(point)
    doomed = own_system.worker(PAYER, ack_wait_s=2).ready()
    await asyncio.to_thread(supervisor.await_agents, 1)
    label = f"L{uuid4().hex}"
    async with outside(own_system.servers.nats_url) as program:
        desk = Desk(
            own_system,
            Doors(supervisor.api, keys),
            program,
            supervisor.api,
            keys["shop"],
        )
        ask = (await desk.ask(words(label)))["approval_id"]
        if point == "while it waits":
            await desk.doors.find("finance", ask.partition(".")[0])
            doomed.kill()
        elif point != "in the body":
            await asyncio.to_thread(doomed.wait)
            own_system.worker(PAYER, ack_wait_s=2).ready()
        assert await desk.answer("finance", ask, YES) == 200
        if point in ("while it waits", "in the body"):
            if point == "in the body":
                await asyncio.to_thread(doomed.wait)
            own_system.worker(PAYER, ack_wait_s=2).ready()
        assert (await desk.report(ask.partition(".")[0]))["result"] == 12
        # Beyond the time after which an unacknowledged delivery is offered again.
        await asyncio.sleep(4)
        assert (desk.paid(label), len(own_system.runs(f"{label}-runs"))) == (
            1,
            1 + (point == "in the body"),
        )
        assert (
            len(
                (await desk.doors.call("admin", "GET", "/v1/approvals"))[1]["approvals"]
            )
            == 0
        )


async def test_each_door_says_who_is_asked_and_leaves(desk: Desk) -> None:
    """Over the command line, HTTP and chat completions; of several tasks only the one that needs it waits."""
    first, second, third = (f"L{uuid4().hex}" for _ in range(3))
    said = await asyncio.to_thread(
        desk.system.command, "--direct", "ask", "--json", words(first)
    )
    assert said.returncode == 0, said.stderr
    by_command = json.loads(said.stdout)["reply"]["approval_id"]
    found = await desk.post("/v1/requests", {"text": words(second), "wait_seconds": 1})
    (over_http,) = found["approvals"]
    assert (found["state"], over_http["who"], over_http["id"].partition(".")[0]) == (
        "running",
        "role:finance",
        found["task_id"],
    )
    message = {"role": "user", "content": words(third)}
    told = (
        await desk.post(
            "/v1/chat/completions", {"model": "tasklore", "messages": [message]}
        )
    )["choices"][0]
    assert "needs the approval of role:finance" in told["message"]["content"]
    for ask, label in ((by_command, first), (over_http["id"], second)):
        assert await desk.answer("finance", ask, YES) == 200
        await desk.report(ask.partition(".")[0])
        assert desk.paid(label) == 1
    assert desk.paid(third) == 0


async def test_of_several_tasks_each_waits_for_its_own_yes_and_the_whole_ends_with_the_last(
    desk: Desk,
) -> None:
    """Looking at the request while it waits begins nothing again, and leaves nothing in the queue."""
    first, second = (f"L{uuid4().hex}" for _ in range(2))
    text = f"1. {words(first)}\n2. {words(second, task='appraise')}"
    found = await desk.post("/v1/requests", {"text": text, "wait_seconds": 1})
    path = f"/v1/requests/{found['request_id']}"
    asks = [one["id"] for one in found["approvals"]]
    assert (found["state"], len(set(asks))) == ("running", 2)
    assert await desk.answer("finance", asks[0], YES) == 200
    assert (await desk.report(asks[0].partition(".")[0]))["result"] == 12
    await desk.doors.find("finance", asks[1].partition(".")[0])
    half = (await desk.doors.call("shop", "GET", path))[1]
    assert ["reply" in one for one in half["parts"]] == [True, False]
    assert ([one["id"] for one in half["approvals"]], half["state"]) == (
        asks[1:],
        "running",
    )
    await desk.program.eventually(lambda: holds_nothing(desk.program))
    assert await desk.answer("finance", asks[1], NO) == 200
    await desk.report(asks[1].partition(".")[0])

    async def is_done() -> bool:
        return bool((await desk.doors.call("shop", "GET", path))[1]["state"] == "done")

    await desk.program.eventually(is_done)
    done = (await desk.doors.call("shop", "GET", path))[1]
    assert [one["kind"] for one in done["reply"]["parts"]] == ["answer", "failed"]
    assert (desk.paid(first), desk.system.runs(f"{second}-runs")) == (1, [])


async def test_a_task_that_a_model_calls_waits_for_the_yes_and_its_caller_hears_of_a_no(
    desk: Desk,
) -> None:

    async def is_asked() -> bool:
        return bool(
            (await desk.doors.call("admin", "GET", "/v1/approvals"))[1]["approvals"]
        )

    for body, result, times in ((YES, "12", 1), (NO, "rejected NotApproved", 0)):
        label = f"L{uuid4().hex}"
        task_id = await desk.program.assign(
            "PayerAgent", "delegate", {"label": label, "amount": 12}
        )
        await desk.program.eventually(is_asked)
        ask = (await desk.doors.call("admin", "GET", "/v1/approvals"))[1]["approvals"][
            0
        ]
        assert (ask["who"], 'in the words "pay the bill"' in ask["question"]) == (
            ["role:finance"],
            True,
        )
        assert desk.paid(label) == 0
        assert await desk.answer("finance", ask["id"], body) == 200
        assert (await desk.program.report_of(task_id))["result"] == result
        assert desk.paid(label) == times
