"""Who pays for the models that read words, listen to turns and rule on facts: the tenant and user who said them."""

from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import pytest
from redis.asyncio import Redis

from tasklore import Agent
from tasklore.contracts.admission.limits import CallUsage, ModelCall, Payer, Reservation
from tasklore.contracts.errors import BudgetSpent
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import (
    ChatTurn,
    Fact,
    PersonReply,
    PersonRequest,
)
from tasklore.runtime.models.llm import Llm, LlmSettings
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.service import Service
from tasklore.supervisor.understanding import make_interpreter
from tasklore.supervisor.understanding.model import Counted
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, Ruling
from tests.fakes.stores import FakeConversations
from tests.integration.listening import Room, eventually, now
from tests.llm_double import ScriptedLlm
from tests.llm_questions import GOOD, Colour
from tests.llm_servers import fitting
from tests.understanding.recorded import CATALOGUE

TENANT = "acme"
ANN = user_token("ann")


class Accounts:
    """A governor that keeps who pays, and refuses once a budget is spent."""

    def __init__(self) -> None:
        self.payers: list[Payer] = []
        self.is_spent = False

    async def reserve(self, call: ModelCall) -> Reservation:
        """Keep the payer, or refuse."""
        self.payers.append(call.payer)
        if self.is_spent:
            raise BudgetSpent("the budget 'acme a day' is spent", "acme a day")
        return Reservation(call_id="c", call=call, input_tokens=0, accounts=())

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Keep nothing."""

    def count(self, held: Reservation, text: str) -> tuple[int, int]:
        """Count nothing."""
        return 0, 0

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Return no other model."""
        return ()


@pytest.fixture
async def model() -> AsyncIterator[ScriptedLlm]:
    async with ScriptedLlm(lambda _asked: GOOD) as model:
        yield model


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


@pytest.fixture
async def llm(model: ScriptedLlm, accounts: Accounts) -> AsyncIterator[Llm]:
    async with Llm(LlmSettings(base_url=model.base_url), governor=accounts) as llm:
        yield llm


async def ask(llm: Llm, sent: list[bytes]) -> PersonReply:
    """Return the reply to words that the rules cannot read, and put what listeners hear into *sent*."""
    service = Service(
        "S",
        catalogue=lambda: CATALOGUE,
        interpreter=make_interpreter(Counted(llm)),
        dispatch=Mock(spec=Dispatch),
        reports=None,  # type: ignore[arg-type]
        conversations=FakeConversations(),  # type: ignore[arg-type] # a double
        publish=lambda _subject, body, _message_id: sent.append(body),
    )
    words = "Would you sing me a song?"
    return await service.answer(
        PersonRequest(text=words, request_id="r1", user_id="ann", tenant=TENANT)
    )


async def test_words_are_read_on_the_account_of_who_says_them(
    llm: Llm, accounts: Accounts, model: ScriptedLlm
) -> None:
    """A spent budget leaves them to the rules, and the reply says so; listeners hear whose they are."""
    sent: list[bytes] = []
    accounts.is_spent = True

    reply = await ask(llm, sent)

    assert set(accounts.payers) == {Payer(tenant=TENANT, user=ANN, agent="supervisor")}
    assert model.requests == []
    assert str(reply.read_by_rules).startswith("BudgetSpent: the budget 'acme a day'")
    assert "read_by_rules" in reply.model_dump_json()
    assert {ChatTurn.model_validate_json(body).tenant for body in sent} == {TENANT}


async def test_a_reply_whose_words_a_model_read_says_nothing_of_it(
    llm: Llm, model: ScriptedLlm
) -> None:
    model.respond = fitting
    reply = await ask(llm, [])
    assert len(model.requests) == 1
    assert "read_by_rules" not in reply.model_dump_json()


async def test_memory_asks_on_the_account_of_who_spoke(
    redis: Redis, llm: Llm, accounts: Accounts
) -> None:
    """Both listeners, and the facts on the way between them say whose they are."""
    agent = Agent("EarAgent")

    @agent.listen("turns")
    async def learn(turn: ChatTurn, context: ListenContext) -> list[Fact]:
        await listen(context)
        return [Fact(fact_id=f"{turn.turn_id}-0", text="User likes tea")]

    @agent.listen("facts")
    async def rule(batch: FactBatch, context: ListenContext) -> list[Ruling]:
        await listen(context)
        return [
            Ruling(fact_id=one.fact.fact_id, outcome="known") for one in batch.facts
        ]

    room = Room(redis)
    room.services.llm = llm  # type: ignore[assignment] # the real one
    turn = ChatTurn(
        turn_id="t1",
        conversation_id="c",
        user_id="ann",
        speaker="person",
        text="I like tea.",
        at=now(),
        tenant=TENANT,
    )
    await room.turns.append("ann", [("t1", turn.model_dump_json().encode())])
    async with room.listening(agent, "turns"):
        await reach(room, "turns", "t1", "done")
    (found,) = await room.found("ann")
    assert found.tenant == TENANT

    accounts.is_spent = True
    async with room.listening(agent, "facts"):
        await reach(room, "facts", "t1-0", "needs_model")

    assert {(one.tenant, one.user) for one in accounts.payers} == {(TENANT, ANN)}


async def listen(context: ListenContext) -> None:
    """Ask a model."""
    assert context.llm is not None
    await context.llm.ask("default", Colour, system="Name it.", user="grass")


async def reach(room: Room, queue: Any, row_id: str, state: str) -> None:
    """Wait until a row of Ann's is in *state*."""

    async def is_there() -> bool:
        return (await room.states(queue, "ann")).get(row_id) == state

    await eventually(is_there)
