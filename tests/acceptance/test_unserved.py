"""An agent whose card is known and that no worker serves: who asks is told, and the task waits."""

import asyncio

from tests.acceptance.system import AGENTS, NAPPER, System
from tests.answer_texts import TEXTS
from tests.http_client import ask

LETTERS = str(AGENTS / "letters.py")


async def test_who_asks_an_agent_without_a_worker_is_told_so(
    own_system: System,
) -> None:
    """Long before `--wait` is over, with a status; the answer is fetched once a worker is there."""
    worker = own_system.worker(LETTERS).ready()
    own_system.supervisor().ready()
    await asyncio.to_thread(worker.terminate)
    assert await asyncio.to_thread(worker.wait) == 0

    words = ("write the letter number 3", "--wait", "600")
    done = await asyncio.to_thread(own_system.command, "ask", *words)
    assert done.returncode == 1
    assert "No worker of LetterAgent is running; the task waits for one" in done.stdout
    request = done.stderr.split("--request-id ")[1].split()[0]

    own_system.worker(LETTERS).ready()
    again = await asyncio.to_thread(
        own_system.command, "ask", *words, "--request-id", request
    )
    assert (again.returncode, again.stdout) == (0, f"{TEXTS[3]}\n")


async def test_the_answer_to_a_task_that_is_waited_for_says_how_it_stands(
    own_system: System,
) -> None:
    """It is at work, or no worker has taken it: what a look at it would say, without one."""
    gone = own_system.worker(LETTERS).ready()
    own_system.worker(NAPPER).ready()
    supervisor = own_system.supervisor().ready()
    await asyncio.to_thread(supervisor.await_agents, 2)
    await asyncio.to_thread(gone.terminate)
    assert await asyncio.to_thread(gone.wait) == 0
    unserved = {"agent_id": "LetterAgent", "task": "write", "parameters": {"number": 3}}
    at_work = {
        "agent_id": "NapAgent",
        "task": "take_nap",
        "parameters": {"ms": 60_000},
    }
    told = [
        await ask(supervisor.api, "POST", "/v1/tasks", {**task, "wait_seconds": 3})
        for task in (unserved, at_work)
    ]
    assert [one.status for one in told] == [202, 202]
    assert [one.body["state"] for one in told] == ["accepted", "running"]
    waits_for = told[0].body["waits_for"]
    assert (waits_for["kind"], waits_for["name"]) == ("turn", "LetterAgent")
    assert "no worker of LetterAgent has picked it up yet" in waits_for["text"]
    assert "waits_for" not in told[1].body
