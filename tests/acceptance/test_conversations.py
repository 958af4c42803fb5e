"""One conversation for people, the supervisor and agents, and one memory for whoever asks, in real processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import CompletionReport, PersonReply
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.runtime.servers import valkey
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.system import AGENTS, BUDGET, System, running_system
from tests.http_client import ask

COMPANION = str(AGENTS / "companion.py")
LIMIT = "My budget limit is 50,000"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run one supervisor and one worker without a model."""
    with running_system(tmp_path_factory.mktemp("conversations")) as system:
        worker = system.worker(COMPANION, BUDGET, llm_base_url="", llm_api_key="")
        supervisor = system.supervisor(llm_base_url="", llm_api_key="")
        worker.ready()
        supervisor.ready().await_agents(2)
        yield system


@pytest.fixture
async def asker(system: System) -> AsyncIterator[Asker]:
    """Connect a program that asks for tasks."""
    async with asking(
        "Tests", nats_url=system.servers.nats_url, redis_url=system.servers.redis_url
    ) as asker:
        yield asker


async def test_what_people_and_agents_say_is_one_conversation(system: System) -> None:
    """What a person said is new to an agent once; answers of the assistant never are."""
    conversation = new_id(0)
    first = "limit 50k, spent 42000: how is my budget?"
    second = "Listen, companion"
    third = "Listen again, companion"

    async def say(text: str) -> PersonReply:
        api = system.environment["TASKLORE_API_URL"]
        body = {"text": text, "conversation": conversation}
        asked = await ask(api, "POST", "/v1/requests", body)
        return PersonReply.model_validate(asked.body["reply"])

    answer = await say(first)
    assert answer.kind == "answer"
    heard = _result(await say(second))
    again = _result(await say(third))

    assert heard["new"] == [f"person: {first}", f"person: {second}"]
    assert heard["past"] == [f"BudgetTrackerAgent: {answer.text}"]
    assert again["new"] == [f"person: {third}"]
    speakers = [line.partition(":")[0] for line in again["past"]]
    assert speakers == ["person", "BudgetTrackerAgent", "person", "CompanionAgent"]


def _result(reply: PersonReply) -> dict[str, Any]:
    assert reply.report is not None
    return dict(reply.report.result)


async def test_an_agent_that_asks_is_given_the_documents_of_who_asked_and_of_nobody_else(
    system: System, asker: Asker
) -> None:
    ann = f"ann-{new_id(0)[-8:]}"
    ben = f"ben-{new_id(0)[-8:]}"
    now = datetime.now(UTC)
    facts = [make_item(LIMIT, added=now.date(), source="told")]
    body = {
        "_metadata": {"resource_id": "resource_user_money"},
        "budget": {"facts": facts},
    }
    async with valkey.connect(system.servers.redis_url, name="tests") as redis:
        store = DocumentStore(redis, Kinds.load(), deadline_s=PATIENCE_S)
        await store.import_document(ann, json.dumps(body).encode(), at=now)

    async def tell(**who: str) -> CompletionReport:
        return await asker.ask("CompanionAgent", "tell_memory", {}, **who)

    of_ann, of_ben, of_nobody = await asyncio.gather(
        tell(user_id=ann), tell(user_id=ben), tell()
    )

    assert f'\u00a6 - "{LIMIT}"' in of_ann.result
    assert (of_ben.status, of_ben.result) == ("completed", "")
    assert of_nobody.status == "rejected"
    assert of_nobody.error is not None
    assert "user_id" in of_nobody.error.message
