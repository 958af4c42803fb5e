"""What is said to agents arrives once, in order and new, whatever is killed on its way."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tasklore.contracts.errors import NotAccepted
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.servers import valkey
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.external_program import PATIENCE_S, outside
from tests.acceptance.system import System, running_system
from tests.llm_double import ScriptedLlm, stalled

DECIDING = "tasklore.workers.agents.decision"
#: Long enough for a worker to start, and for what another one held to be offered again.
PATIENCE = timedelta(seconds=PATIENCE_S)
SENDERS = ("Bob", "Cay", "Dan")
HEARERS = ("coins.Ana", "coins.Eve", "coins.Flo")
MESSAGES = 80


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run a pair of servers on which a test starts what it kills."""
    folder = tmp_path_factory.mktemp("delivering")
    with running_system(folder) as system:
        yield system


@asynccontextmanager
async def speaking(system: System) -> AsyncIterator[Asker]:
    """Connect a world."""
    async with asking(
        "World", nats_url=system.servers.nats_url, redis_url=system.servers.redis_url
    ) as asker:
        yield asker


async def delivered(system: System) -> None:
    """Return once nothing waits for its delivery."""
    async with outside(system.servers.nats_url) as program:

        async def is_empty() -> bool:
            return bool(
                (await program.api("STREAM.INFO.MESSAGES"))["state"]["messages"] == 0
            )

        await program.eventually(is_empty)


def moment(**changes: Any) -> dict[str, Any]:
    """Return what Ana senses at some moment: nothing to do but to answer."""
    told = {
        "name": "Ana",
        "sensory_data": {"position": {"x": 1, "z": 1}},
        "simulation_time": 7,
        "agents": ["Bob"],
    }
    return told | {"allowed": ["text", "wait"], "tell_prompt": True} | changes


async def decide(asker: Asker, conversation_id: str, **changes: Any) -> dict[str, Any]:
    """Return what the agent of a conversation decides."""
    report = await asker.ask(
        "DecisionAgent",
        "decide",
        moment(**changes),
        conversation_id=conversation_id,
        within=PATIENCE,
    )
    assert report.status == "completed", report.error
    return dict(report.result)


async def test_what_was_said_is_new_until_a_decision_stands(system: System) -> None:
    """Also when the worker that took it is killed over it; from then on it is past."""
    supervisor = system.supervisor().ready()
    question = "- Bob said: 'Where are you?'"
    async with ScriptedLlm() as model, speaking(system) as asker:
        model.queue(stalled())
        worker = system.worker(
            DECIDING, llm_base_url=model.base_url, llm_api_key="none"
        ).ready()
        await asker.tell(
            "coins.Ana", "Bob", "Where are you?", time=6, message_id="bob-1"
        )
        await delivered(system)
        asked = asyncio.create_task(decide(asker, "coins.Ana"))
        await model.wait_for_requests(1)
        assert f"New messages:\n{question}" in model.requests[0].user
        worker.kill()
        system.worker(DECIDING, llm_base_url="", llm_api_key="").ready()
        answered = await asked
        later = await decide(asker, "coins.Ana", simulation_time=8)
        await asker.tell("coins.Ana", "Bob", "Thanks!", time=9)
        await delivered(system)
        last = await decide(asker, "coins.Ana", simulation_time=9)

    assert f"New messages:\n{question}" in answered["prompt"]
    assert (answered["action"], answered["target"]) == ("text", {"agent": "Bob"})
    for decision in (later, last):
        assert decision["prompt"].count("Where are you?") == 1
        assert "- At time 6s Bob said: 'Where are you?'" in decision["prompt"]
    assert "New messages:" not in later["prompt"]
    assert later["action"] == "wait"
    assert "New messages:\n- Bob said: 'Thanks!'" in last["prompt"]
    await asyncio.to_thread(
        supervisor.await_metric, 'tasklore_messages_total{outcome="delivered"}', 2
    )


async def test_no_message_is_lost_doubled_or_overtaken_by_another_of_its_sender(
    system: System,
) -> None:
    """Two supervisors deliver; one is killed, and both servers are, one after the other, while everybody speaks."""
    supervisors = [system.supervisor(), system.supervisor()]
    first, _ = (one.ready() for one in supervisors)
    numbers = dict.fromkeys(SENDERS, 0)
    spoken = asyncio.Event()

    async def speak(asker: Asker, sender: str) -> None:
        for number in range(MESSAGES):
            for hearer in HEARERS:
                await said(asker, hearer, sender, number)
            numbers[sender] = number
            spoken.set()

    async def everybody_said(number: int) -> None:
        while min(numbers.values()) < number:
            spoken.clear()
            await spoken.wait()

    async with speaking(system) as asker, asyncio.TaskGroup() as group:
        for sender in SENDERS:
            group.create_task(speak(asker, sender))
        await everybody_said(MESSAGES // 4)
        first.kill()
        for part, server in ((2, system.servers.valkey), (3, system.servers.nats)):
            await everybody_said(part * MESSAGES // 4)
            server.kill()
            await server.start()
    await delivered(system)

    async with valkey.connect(system.servers.redis_url) as redis:
        inbox = Inbox(redis, PATIENCE_S, window=1_000)
        for hearer in HEARERS:
            taken = await inbox.take(hearer, "look")
            heard = [
                one.message_id
                for one in taken.history.current
                if one.message_id.startswith("n")
            ]
            for sender in SENDERS:
                assert [one for one in heard if one.endswith(sender)] == [
                    f"n{n}-{sender}" for n in range(MESSAGES)
                ]


async def said(asker: Asker, hearer: str, sender: str, number: int) -> None:
    """Say something, again and again under its id, until it is stored."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await asker.tell(
                    hearer,
                    sender,
                    f"number {number}",
                    time=number,
                    message_id=f"n{number}-{sender}",
                )
            except NotAccepted:
                continue
            return
