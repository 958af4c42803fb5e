"""One sentence that asks for two tasks: over the command, NATS and HTTP, cancelled, and with a kill in its middle."""

import asyncio
import json
from uuid import uuid4

from tasklore.contracts import subjects
from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import BUDGET, NAPPER, System
from tests.http_client import ask as over_http

REQUESTS = "requests.SupervisorAgent"


async def knows(program: Outside, system: System, text: str) -> Json:
    """Return the supervisor's reply to *text* once it knows the agents that are asked for."""
    found: Json = {}

    async def is_understood() -> bool:
        found.update(await say(program, text, conversation_id=uuid4().hex))
        return found["kind"] == "answer"

    await program.eventually(is_understood)
    return found


async def say(program: Outside, text: str, **fields: object) -> Json:
    """Return the supervisor's reply to *text*."""
    body = json.dumps({"text": text} | fields).encode()
    return dict(
        json.loads((await program.client.request(REQUESTS, body, timeout=60)).data)
    )


async def test_two_tasks_are_answered_together_and_one_of_them_from_memory(
    standing: Standing, program: Outside
) -> None:
    """The command shows both, in the order in which they were asked for; the next sentence refers to the last."""
    budget = f"check my budget of {uuid4().int % 10**6 + 60_000} with 42k spent"
    await knows(program, standing.system, budget)
    conversation = uuid4().hex
    nap = uuid4().int % 900 + 20

    async def asked(text: str) -> tuple[int, str]:
        done = await asyncio.to_thread(
            standing.system.command, "ask", "--conversation", conversation, text
        )
        return done.returncode, done.stdout

    code, shown = await asked(f"{budget} and take a nap of {nap}")
    first, second = shown.split("\n\n")
    assert code == 0
    assert first.startswith("1. Analyze budget")
    assert "From the cache" in first
    assert second.startswith(f"2. Take nap (ms {nap})")
    assert "Computed in" in second

    code, shown = await asked("double that")
    assert (code, shown.partition(":")[0]) == (
        0,
        f"Take nap (ms {nap * 2:,} (double {nap:,}))",
    )


async def test_cancelling_a_request_cancels_all_of_its_tasks(
    standing: Standing, program: Outside
) -> None:
    await knows(program, standing.system, "take a nap of 7")
    url = standing.supervisor.api
    key = {"Idempotency-Key": f"cut-{uuid4().hex[:8]}"}
    body = {
        "text": "take a nap of 60001 and then take a nap of 60002",
        "wait_seconds": 0,
    }
    path = (await over_http(url, "POST", "/v1/requests", body, key)).headers["location"]

    async def both_run() -> bool:
        return len((await over_http(url, "GET", path)).body.get("parts", ())) == 2

    await program.eventually(both_run)
    assert (await over_http(url, "DELETE", path)).body["outcome"] == "cancelled"

    async def is_done() -> bool:
        return (await over_http(url, "GET", path)).body["state"] == "done"

    await program.eventually(is_done)
    reply = (await over_http(url, "GET", path)).body["reply"]
    assert [part["report"]["status"] for part in reply["parts"]] == [
        "cancelled",
        "cancelled",
    ]


async def test_a_supervisor_killed_in_the_middle_loses_and_doubles_nothing(
    own_system: System,
) -> None:
    """The next one finds both tasks under the same request id: one report each, and one turn each."""
    worker = own_system.worker(BUDGET, NAPPER)
    supervisor = own_system.supervisor()
    worker.ready()
    supervisor.ready()
    text = "check my budget of 50k with 42k spent and take a nap of 2001"
    fields = {"request_id": uuid4().hex, "conversation_id": "two", "user_id": "ann"}
    async with outside(own_system.servers.nats_url) as program:
        await knows(program, own_system, "take a nap of 7")
        before = await program.reports()
        asking = asyncio.create_task(say(program, text, **fields))

        async def first_done() -> bool:
            return len(await program.counts("REPORTS")) > len(before) + 1

        await program.eventually(first_done)
        supervisor.kill()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        own_system.supervisor().ready()
        reply = await say(program, text, **fields)
        again = await say(program, text, **fields)
        stored = await program.counts("REPORTS")

        async def all_said() -> bool:
            # What the assistant says is published when it is answered, a moment after we are.
            return (await program.counts("TURNS")).get(subjects.turns("ann"), 0) >= 3

        await program.eventually(all_said)
        turns = await program.counts("TURNS")
    assert [part["kind"] for part in reply["parts"]] == ["answer", "answer"]
    assert [part["report"] for part in again["parts"]] == [
        part["report"] for part in reply["parts"]
    ]
    assert [part["report"]["memory"]["outcome"] for part in reply["parts"]] == [
        "miss",
        "off",
    ]
    own = [
        subject
        for subject in stored
        if any(part["task_id"] in subject for part in reply["parts"])
    ]
    assert (len(own), {stored[subject] for subject in own}) == (2, {1})
    assert turns[subjects.turns("ann")] == 3
