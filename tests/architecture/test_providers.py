"""No way to a provider of models goes around the governor."""

import ast
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore.contracts.admission.limits import CallUsage, ModelCall, Reservation
from tasklore.contracts.errors import BudgetSpent
from tasklore.runtime.models.embeddings import Endpoint, ThreadGate
from tasklore.runtime.models.llm import Llm, LlmSettings
from tests.architecture.tree import ROOT
from tests.llm_double import ScriptedLlm

#: Where clients of providers are made, and requests sent by them; each passes the governor, which the tests below try.
DOORS = {
    "runtime/models/client.py",
    "runtime/models/embeddings.py",
    "workers/pydantic_agents/models.py",
}
#: What makes a client of a provider, or has one send something.
CLIENTS = {
    "OpenAI",
    "AsyncOpenAI",
    "Anthropic",
    "AsyncAnthropic",
    "with_raw_response",
    "OpenAIProvider",
}
ROOMS = ("contracts", "memory", "runtime", "supervisor", "workers", "tasklore")


class Refusing:
    """A governor that lets nothing pass."""

    async def reserve(self, call: ModelCall) -> Reservation:
        """Refuse."""
        raise BudgetSpent(f"nothing is left for {call.model}", "none")

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle nothing."""

    def count(self, held: Reservation, text: str) -> tuple[int, int]:
        """Count nothing."""
        return 0, 0

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Name none."""
        return ()


class Verdict(BaseModel):
    """What a model says."""

    reasoning: str


def test_clients_of_providers_are_made_at_known_doors_only() -> None:
    """A new one has to be listed above, and tried below."""
    found = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                name = getattr(node, "attr", getattr(node, "id", None))
                if isinstance(node, ast.Attribute | ast.Name) and name in CLIENTS:
                    found.add(path.relative_to(ROOT).as_posix())
    # Its name in a type is no client.
    assert found - {"runtime/models/llm.py"} == DOORS


async def test_a_question_passes_the_governor() -> None:
    async with ScriptedLlm() as model:
        settings = LlmSettings(base_url=model.base_url)
        async with Llm(settings, governor=Refusing()) as llm:
            with pytest.raises(BudgetSpent):
                await llm.ask("default", Verdict, system="a", user="b")
        assert model.requests == []


async def test_a_request_of_another_client_passes_the_governor() -> None:
    """Agents of pydantic-ai send theirs in this block."""
    sent: list[Any] = []
    async with Llm(
        LlmSettings(base_url="http://127.0.0.1:1"), governor=Refusing()
    ) as llm:
        with pytest.raises(BudgetSpent):
            async with llm.request("default", "gpt-6-luna", text="hello") as request:
                sent.append(request)
    assert sent == []


async def test_an_embedder_passes_the_governor() -> None:
    """It asks in a thread of its own."""
    import asyncio

    async with ScriptedLlm() as model:
        door = ThreadGate(Refusing(), asyncio.get_running_loop())
        endpoint = Endpoint(
            "text-embedding-3-small", base_url=model.base_url, api_key=None, door=door
        )
        with pytest.raises(BudgetSpent):
            await asyncio.to_thread(endpoint.embed, ["hello"])
        assert model.requests == []
