"""One conversation for people, the supervisor and agents, and one memory for whoever asks, in real processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.identifiers import new_id
from contracts.messages import ChatTurn, PersonReply
from memory.conversations.conversation import Conversations
from memory.documents.items import make_item
from memory.documents.kinds import Kinds
from memory.documents.storage.store import DocumentStore
from runtime.servers import valkey
from runtime.servers.embedded import EmbeddedServers
from supervisor.program_client import Asker, asking
from tasklore.ask.ask import ask, make_request
from tests.acceptance.house import AGENTS, BUDGET, House, Served
from tests.acceptance.outside import PATIENCE_S, outside
from tests.llm_double import Asked, ScriptedLlm

COMPANION = str(AGENTS / "companion.py")
LIMIT = "My budget limit is 50,000"
#: What a supervisor logs when the store did not answer within half a second: on a busy machine it may not.
WITHOUT_MEMORY = "answered_without_memory"
_TRIES = 20
NOW = datetime.now(UTC)


@dataclass
class Running:
    """A supervisor and a worker with a model."""

    house: House
    supervisor: Served
    model: ScriptedLlm
    asker: Asker

    async def ask(self, text: str, **fields: Any) -> PersonReply:
        """Ask as `tasklore ask` does."""
        return await ask(self.house.servers.nats_url, "SupervisorAgent", make_request(text, **fields))

    async def ask_reminded(self, text: str, user: str) -> PersonReply:
        """Ask as *user*; once more when the supervisor says that it had no time to look what it remembers."""
        for _ in range(_TRIES):
            self.model.requests.clear()
            before = self.supervisor.log().count(WITHOUT_MEMORY)
            reply = await self.ask(text, user_id=user)
            if self.supervisor.log().count(WITHOUT_MEMORY) == before:
                break
        return reply

    async def run(self, task: str, **fields: Any) -> Any:
        """Return the result of a task of the companion."""
        report = await self.asker.ask("CompanionAgent", task, {}, **fields)
        assert report.status == "completed", report.error
        return report.result


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedLlm]:
    """Run a model for all tests of this module."""
    with ScriptedLlm(respond=_answer) as model:
        yield model


def _answer(asked: Asked) -> dict[str, Any]:
    """Say what a good model would: take the limit from memory, and sum up."""
    if asked.schema_name == "Summary":
        return {"reasoning": "numbers", "summary": "The person counted."}
    limit = {"field": "budget_limit", "value": "50000", "quotation": "50,000", "source": "m1"}
    spent = {"field": "spent", "value": "42000", "quotation": "42000", "source": "now"}
    task = {"agent_id": "BudgetTrackerAgent", "task_name": "analyze_budget", "slots": [limit, spent]}
    return {"reasoning": "as usual", "intents": [task], "unfit": []}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model: ScriptedLlm) -> Iterator[tuple[House, Served]]:
    """Run one supervisor and one worker for all of them."""
    folder = tmp_path_factory.mktemp("conversations")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    house = House(servers, folder)
    try:
        worker = house.worker(COMPANION, BUDGET, llm_base_url=model.base_url)
        supervisor = house.supervisor(llm_base_url=model.base_url)
        worker.ready()
        supervisor.ready()
        asyncio.run(_known(servers, supervisor.get))
        yield house, supervisor
    finally:
        house.close()
        asyncio.run(servers.stop())


async def _known(servers: EmbeddedServers, get: Any) -> None:
    async def knows_both() -> bool:
        return "2 agents known" in get("/readyz")[1]["checks"]["reports"]["detail"]

    async with outside(servers.nats_url) as program:
        await program.eventually(knows_both)


@pytest.fixture
async def running(served: tuple[House, Served], model: ScriptedLlm) -> AsyncIterator[Running]:
    """Return the house with a program that asks it for tasks."""
    model.requests.clear()
    house, supervisor = served
    servers = house.servers
    async with asking("Tests", nats_url=servers.nats_url, redis_url=servers.redis_url) as asker:
        yield Running(house, supervisor, model, asker)


async def remember(house: House, user: str, fact: str) -> None:
    """Store what is remembered of *user*."""
    body = {
        "_metadata": {"resource_id": "resource_user_money"},
        "budget": {"facts": [make_item(fact, added=NOW.date(), source="told")]},
    }
    async with valkey.connect(house.servers.redis_url, name="tests") as redis:
        store = DocumentStore(redis, Kinds.load(), deadline_s=PATIENCE_S)
        await store.import_document(user, json.dumps(body).encode(), at=NOW)


async def test_what_people_and_agents_say_is_one_conversation(running: Running) -> None:
    """What was asked with `ask --conversation` is new to an agent once; answers of the assistant never are."""
    conversation = new_id(0)
    first, second, third = "limit 50k, spent 42000: how is my budget?", "Listen, companion", "Listen again, companion"

    answer = await running.ask(first, conversation_id=conversation)
    assert answer.kind == "answer"
    heard = await running.ask(second, conversation_id=conversation)
    again = await running.ask(third, conversation_id=conversation)

    assert heard.report is not None
    assert isinstance(heard.report.result, dict)
    assert heard.report.result["new"] == [f"person: {first}", f"person: {second}"]
    assert heard.report.result["past"] == [f"BudgetTrackerAgent: {answer.text}"]
    assert again.report is not None
    assert isinstance(again.report.result, dict)
    assert again.report.result["new"] == [f"person: {third}"]
    assert [line.partition(":")[0] for line in again.report.result["past"]] == [
        "person",
        "BudgetTrackerAgent",
        "person",
        "CompanionAgent",
    ]
    assert running.model.requests == []


async def test_what_is_remembered_of_who_asks_completes_a_question_and_is_named(running: Running) -> None:
    """Once they have agreed; of nobody else: another user, and one who does not say who they are, are asked."""
    ann, ben = f"ann-{new_id(0)[-8:]}", f"ben-{new_id(0)[-8:]}"
    await remember(running.house, ann, LIMIT)
    text = "Check my budget as usual, I spent 42000"

    reply = await running.ask_reminded(text, ann)

    assert (reply.kind, "as I remember it" in reply.text, LIMIT in reply.text) == ("question", True, True)
    assert LIMIT in running.model.requests[0].user
    agreed = await running.ask("yes", user_id=ann, conversation_id=reply.conversation_id)
    assert agreed.task is not None
    assert (agreed.kind, agreed.task.parameters["budget_limit"]) == ("answer", 50_000)
    for user in (ben, None):
        reply = await running.ask(text, user_id=user)
        assert (reply.kind, reply.text) == ("question", "What is budget limit? What may be spent in all.")
    assert not any(LIMIT in asked.user for asked in running.model.requests[1:])


async def test_an_agent_that_asks_is_given_the_documents_of_who_asked(running: Running) -> None:
    """And of nobody else."""
    ann, ben = f"ann-{new_id(0)[-8:]}", f"ben-{new_id(0)[-8:]}"
    await remember(running.house, ann, LIMIT)

    assert f'\u00a6 - "{LIMIT}"' in await running.run("tell_memory", user_id=ann)
    assert await running.run("tell_memory", user_id=ben) == ""
    refused = await running.asker.ask("CompanionAgent", "tell_memory", {})
    assert (refused.status, refused.error is not None and "user_id" in refused.error.message) == ("rejected", True)


async def test_a_worker_has_what_fell_out_summarised(running: Running) -> None:
    """By the model of the role's own file; the next task is shown the summary."""
    conversation = new_id(0)
    async with valkey.connect(running.house.servers.redis_url, name="tests") as redis:
        conversations = Conversations(redis, deadline_s=PATIENCE_S)
        for number in range(80):
            turn = ChatTurn(
                turn_id=f"p{number}", conversation_id=conversation, speaker="person", text=f"word {number}", at=NOW
            )
            await conversations.append(conversation, turn.model_dump_json().encode(), turn.turn_id)

    shown = [await running.run("listen", conversation_id=conversation) for _ in range(3)]

    assert [(len(one["new"]), len(one["past"]), one["summarised"]) for one in shown] == [
        (80, 0, 0),
        (0, 50, 0),
        (0, 50, 30),
    ]
    assert shown[2]["summary"] == "The person counted."
    [asked] = running.model.requests
    assert (asked.schema_name, asked.model) == ("Summary", "gpt-6-luna")
    assert ("word 29" in asked.user, "word 30" in asked.user) == (True, False)
